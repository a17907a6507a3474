"""Code blocks of the documentation: which there are, of what kind, and why one is not run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {"docs/events.md", "docs/answers.md", "docs/figures.md"}
WITHOUT_COMMANDS = {*GENERATED, "CHANGELOG.md"}
"""Written by a tool, or the history of releases, which speaks of old commands."""
MARK = re.compile(r"<!-- not run: ((?:(?!-->).)+) -->\s*\Z", re.DOTALL)
FENCE = re.compile(r"^(`{3,})(\w*)$")
PROGRAMS = r"orchestrator|make|python3?|pip|uv|mv|cd|export|curl|token|docker|railway|git|\.|[A-Z_]+=\S+ .*orchestrator"
SHELL = re.compile(rf"(?:{PROGRAMS})\b|\. ")


class Block(NamedTuple):
    """A fenced or indented block of a page."""

    page: str
    line: int
    """Of its first line, counted from 1."""
    language: str
    """Behind the fence; of an indented block by its first line: shell, json, yaml or text."""
    text: str
    reason: str
    """Why it is not run, "" for one that is run."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> str:
        """The text without its comments."""
        return re.sub(r" +# .*$", "", self.text, flags=re.MULTILINE)


def all_blocks() -> list[Block]:
    """Returns the blocks of all pages that people write."""
    pages = [path for path in PAGES if str(path.relative_to(ROOT)) not in WITHOUT_COMMANDS]
    return [block for path in pages for block in blocks_of(str(path.relative_to(ROOT)), path.read_text("utf-8"))]


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yields the blocks of a page in their order."""
    lines = text.splitlines()
    start = 0
    while start < len(lines):
        fence = FENCE.match(lines[start])
        indented = lines[start].startswith("    ") and not "".join(lines[max(start - 1, 0) : start]).strip()
        if fence:
            end = lines.index(fence[1], start + 1)
            body, language, first = lines[start + 1 : end], fence[2], start + 2
        elif indented:
            end = start
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            body, first = [line[4:] for line in lines[start:end]], start + 1
            language = _language(body[0])
        else:
            start += 1
            continue
        mark = MARK.search("\n".join(lines[:start]).rstrip())
        yield Block(page, first, language, "\n".join(body).rstrip() + "\n", mark[1] if mark else "")
        start = end + 1


def _language(first: str) -> str:
    if SHELL.match(first):
        return "shell"
    if first.startswith("{"):
        return "json"
    return "yaml" if re.match(r"[a-z]+:( |$)", first) else "text"
