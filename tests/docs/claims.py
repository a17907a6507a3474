"""What stands behind the promises of the documentation: `make claims`.

A comment behind a paragraph, `<!-- claim: SOURCE, SOURCE -->`, names tests (`tests/FILE.py::test_name`), benchmarks
(`benchmark NAME`) or the day of a measurement (`measured 2026-11-27`).
"""

import ast
import re
import sys
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from benchmarks.__main__ import NAMES
from tests.docs.blocks import PAGES, ROOT, blocks_of

COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
STRICT = {"README.md"}
"""Pages on which each sentence that promises needs a source."""
PROMISE = re.compile(r"\d\s?(?:%|ms|s|MB|kB|×)(?!\w)|\b(?:never|always|nothing|cannot|no\s\w+\stwice)\b", re.IGNORECASE)
BENCHMARKS = {*NAMES, "answers"}


class Claim(NamedTuple):
    """A paragraph, and what stands behind it."""

    page: str
    line: int
    text: str
    sources: tuple[str, ...]

    @property
    def promises(self) -> tuple[str, ...]:
        """The sentences that say a number, or that something is always or never so."""
        return tuple(one for one in re.split(r"(?<=[.:])\s+", self.text) if PROMISE.search(one))


def claims_of(page: str, text: str) -> Iterator[Claim]:
    """Yields the paragraphs, items and rows of a page that have a source or promise something."""
    line = 1
    for part in re.split(r"(?<=\n)(?=\n|[-|#] |[-*] )", _without_code(text)):
        sources = [source for body in COMMENT.findall(part) for source in _sources(body)]
        words = " ".join(COMMENT.sub("", part).split()) or "the table above"
        claim = Claim(page, line + len(part) - len(part.lstrip("\n")), words, tuple(sources))
        if sources or claim.promises:
            yield claim
        line += part.count("\n")


def _without_code(text: str) -> str:
    """Returns the text with empty lines in place of blocks of code."""
    lines = text.split("\n")
    for block in blocks_of("", text):
        count = block.text.count("\n")
        lines[block.line - 1 : block.line - 1 + count] = [""] * count
    return "\n".join(lines)


def _sources(comment: str) -> list[str]:
    _, marked, named = comment.strip().partition("claim:")
    return [source.strip() for source in named.split(",")] if marked else []


def problem(source: str) -> str:
    """Returns why nothing stands behind a source, "" where something does."""
    kind, _, what = source.partition(" ")
    if kind == "benchmark":
        return "" if what in BENCHMARKS else "there is no such benchmark"
    if kind == "measured":
        return _day_problem(what)
    file, _, name = source.partition("::")
    if not file.startswith("tests/") or not (ROOT / file).is_file():
        return "there is no such test"
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return "" if name in defined else f"{file} has no such test"


def _day_problem(day: str) -> str:
    try:
        date.fromisoformat(day)
    except ValueError:
        return "it is no day, as 2026-11-27"
    return ""


def all_claims() -> list[Claim]:
    """Returns the claims of all pages, in their order."""
    return [claim for path in PAGES for claim in claims_of(str(path.relative_to(ROOT)), path.read_text("utf-8"))]


def problems(claims: list[Claim]) -> list[str]:
    """Returns a line for each source that is not there, and for each promise of a strict page that has none."""
    wrong = [
        f"{one.page}:{one.line}: {source}: {problem(source)}"
        for one in claims
        for source in one.sources
        if problem(source)
    ]
    bare = [one for one in claims if one.page in STRICT and not one.sources]
    return wrong + [f"{one.page}:{one.line}: nothing stands behind: {text}" for one in bare for text in one.promises]


def main() -> int:
    claims = all_claims()
    for one in claims:
        if one.sources:
            print(f"{one.page}:{one.line}: {one.text[:100]}")
            print("".join(f"    {source}\n" for source in one.sources), end="")
    found = problems(claims)
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
