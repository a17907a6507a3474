"""Every sound file of the corpus passes, every broken text of it is found where it was broken."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.code.check import check_syntax
from tests.code.corpus_files import EVERYWHERE, FOLDER, SOUND, broken, entities, prose_after, prose_before, text_of

# bash judges shell files: tests/checks/test_shell_syntax.
LANGUAGES = sorted({path.parent.name for path in SOUND} - {"shell"})
BRACKETS = re.compile(r"\s*[)\]}]+[;,]?\s*")
MUTATED = [path for path in SOUND if path.parent.name not in {"python", "yaml", "shell"}]
SOUND_AS_WELL = {
    prose_before: {"compose.yaml", "stack.yaml", "workflow.yml", "orders.js"},
}
"""Files that a change leaves sound (one YAML text more), or broken elsewhere."""


def test_sound_files_pass() -> None:
    assert [found for path in SOUND for found in check_syntax(path.name, text_of(path))] == []
    assert all(len(list(FOLDER.glob(f"{language}/*"))) >= 3 for language in LANGUAGES)


def is_found(path: Path, text: str, line: int | None) -> bool:
    found = check_syntax(path.name, text, code="delivery.syntax")
    assert all(one.code == "delivery.syntax" and one.severity.blocks and one.fix for one in found)
    return 1 <= len(found) <= 3 and (line is None or abs((found[0].where.line or 0) - line) <= 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_broken_files_are_found_where_they_are_broken(language: str) -> None:
    missed = [(path, line, text) for path, text, line in broken(language) if not is_found(path, text, line)]
    assert missed == []


@pytest.mark.parametrize("change", EVERYWHERE)
def test_what_models_leave_is_found_in_every_language(change: Callable[[str, str], tuple[str, int | None]]) -> None:
    shells = change in (entities, prose_before, prose_after)  # bash judges these
    paths = [path for path in SOUND if not (shells and path.parent.name == "shell")]
    judged = [path for path in paths if path.name not in SOUND_AS_WELL.get(change, ())]
    assert [path for path in judged if not is_found(path, *change(path.name, text_of(path)))] == []


def closers(path: Path) -> Iterator[int]:
    """The lines that do nothing but close something."""
    return (number for number, line in enumerate(text_of(path).split("\n")) if BRACKETS.fullmatch(line))


def mutants(path: Path) -> Iterator[str]:
    """The file without each line that closes, cut before it, and with it twice: nothing of it is balanced."""
    lines = text_of(path).split("\n")
    for number in closers(path):
        yield "\n".join([*lines[:number], *lines[number + 1 :]])
        yield "\n".join(lines[:number]) + "\n"
        yield "\n".join([*lines[: number + 1], *lines[number:]])


def test_nothing_unbalanced_passes() -> None:
    assert [(path, text) for path in MUTATED for text in mutants(path) if not check_syntax(path.name, text)] == []


def openers(path: Path) -> dict[int, int]:
    """Line that closes → line of what it closes, for texts indented as people do."""
    lines = text_of(path).split("\n")
    indents = [len(line) - len(line.lstrip()) if line.strip() else 99 for line in lines]
    found = {}
    for number in closers(path):
        above = [at for at in range(number) if indents[at] == indents[number]]
        found[number] = above[-1] if above else 0
    return found


def test_the_line_that_was_left_open_is_named() -> None:
    told = right = 0
    for path in MUTATED:
        if path.suffix == ".toml":
            continue
        lines = text_of(path).split("\n")
        for number, opener in openers(path).items():
            found = check_syntax(path.name, "\n".join([*lines[:number], *lines[number + 1 :]]))
            told += 1
            right += any(one.where.line is not None and abs(one.where.line - 1 - opener) <= 1 for one in found[:1])
    assert told > 150
    assert right >= 0.9 * told, f"{right} of {told}"
