"""Words that the glossary replaces, in pages, help and messages: `python -m tests.docs.glossary`."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT

GLOSSARY = ROOT / "docs/development/glossary.md"
NO_PROSE = {GLOSSARY, ROOT / "CHANGELOG.md"}
PROMPTS = ("prompts", "personas")
"""Packages whose texts models see: another word there makes recorded prompts other ones."""


def words() -> dict[re.Pattern[str], str]:
    """Returns the table of the page: what is not written → what is, in its place."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("| do not write | write |")[2].partition("\n\n")[0]
    rows = (re.split(r" *\| *", line)[1:3] for line in table.splitlines()[2:])
    return {_pattern(phrases): instead for phrases, instead in rows}


def _pattern(phrases: str) -> re.Pattern[str]:
    alternatives = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases.split(", "))
    return re.compile(rf"\b(?:{alternatives})\b(?!\s+to\b)", re.IGNORECASE)  # a process may be told to end


def texts() -> Iterator[tuple[Path, int, str]]:
    """Yields what people read, with file and line: pages, the packaged settings, messages and help."""
    for page in [*PAGES, ROOT / "config.yaml"]:
        if page not in NO_PROSE:
            yield page, 1, page.read_text(encoding="utf-8")
    for module in sorted((ROOT / "orchestrator").rglob("*.py")):
        place = module.relative_to(ROOT / "orchestrator").parts[0]
        if place not in PROMPTS:
            tree = ast.parse(module.read_text(encoding="utf-8"))
            # Docstrings are for engineers, except where they are a command's help or a request's description.
            left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            shown = place == "cli" or module.stem.endswith("routes")
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and (shown or id(node) not in left_out)
                ):
                    yield module, node.lineno, node.value


def wrong_words(read: Iterable[tuple[Path, int, str]]) -> list[str]:
    """Returns a line for each: file, line, word, and the word to write."""
    return [
        f"{path.relative_to(ROOT)}:{line + text[: found.start()].count(chr(10))}: "
        f"{' '.join(found[0].split())!r}: write {instead}"
        for path, line, text in read
        for pattern, instead in words().items()
        for found in pattern.finditer(text)
    ]


if __name__ == "__main__":
    found = wrong_words(texts())
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
