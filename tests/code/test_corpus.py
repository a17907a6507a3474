"""Every sound file of the corpus passes, every broken one is found where it was broken."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.code.check import check_syntax
from tests.code.corpus_files import EXPECTED, FOLDER, SOUND, text_of

CLOSING = {
    "html": re.compile(r"\s*</(?!(li|p|tr|td|option|dt|dd|body|html|head)>)\w+>\s*"),
}
BRACKETS = re.compile(r"\s*[)\]}]+[;,]?\s*")
MUTATED = [path for path in SOUND if path.parent.parent.name not in {"python", "yaml", "shell"}]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_sound_files_pass(path: Path) -> None:
    assert check_syntax(path.name, text_of(path)) == []


# bash judges shell files: tests/checks/test_shell_syntax.
@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if not name.startswith("shell/")))
def test_broken_files_are_found_where_they_are_broken(name: str) -> None:
    found = check_syntax(Path(name).name, text_of(FOLDER / name), code="delivery.syntax")
    assert 1 <= len(found) <= 3
    assert all(one.code == "delivery.syntax" and one.severity.blocks and one.fix for one in found)
    line = EXPECTED[name]
    assert line is None or abs((found[0].where.line or 0) - line) <= 1, str(found[0])


def test_the_corpus_is_large_enough() -> None:
    for folder in (path for path in FOLDER.iterdir() if path.is_dir()):
        assert len(list((folder / "sound").iterdir())) >= 3
        assert len(list((folder / "broken").iterdir())) >= 8
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/broken/*")} == set(EXPECTED)


def closers(path: Path) -> Iterator[int]:
    """The lines that do nothing but close something."""
    pattern = CLOSING.get(path.parent.parent.name, BRACKETS)
    return (number for number, line in enumerate(text_of(path).split("\n")) if pattern.fullmatch(line))


def mutants(path: Path) -> Iterator[str]:
    """The file without each line that closes, cut before it, and with it twice: nothing of it is balanced."""
    lines = text_of(path).split("\n")
    for number in closers(path):
        if path.name == "list.html":
            continue  # a template's elements are not judged
        yield "\n".join([*lines[:number], *lines[number + 1 :]])
        yield "\n".join(lines[:number]) + "\n"
        yield "\n".join([*lines[: number + 1], *lines[number:]])


@pytest.mark.parametrize("path", MUTATED, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_nothing_unbalanced_passes(path: Path) -> None:
    passed = [text for text in mutants(path) if not check_syntax(path.name, text)]
    assert passed == []


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
        if path.name == "list.html" or path.suffix == ".toml":
            continue
        lines = text_of(path).split("\n")
        for number, opener in openers(path).items():
            found = check_syntax(path.name, "\n".join([*lines[:number], *lines[number + 1 :]]))
            told += 1
            right += any(one.where.line is not None and abs(one.where.line - 1 - opener) <= 1 for one in found[:1])
    assert told > 150
    assert right >= 0.9 * told, f"{right} of {told}"
