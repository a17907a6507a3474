"""A task plan's blocks → its head and its tasks, each with the blocks below its heading; headings that nearly are one.

A task goes on to the next task's heading, or to one of a higher level. What is commented out is not there.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, words

LEVEL = 3
"""Of a task's heading: `### Task 1`."""
_NUMBER = re.compile(r"task\s+#?(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
_ORDINAL = r"[a-z]\b|[ivx]+\b|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b"
_NEARLY = re.compile(rf"(?P<marks>[^\w<]*(?:\[x?\]\s*)?)task(?:\s*[:#\d]|\s+(?:{_ORDINAL}))", re.IGNORECASE)
_UNSPACED = re.compile(r"#{1,6}task\s*\d", re.IGNORECASE)
_BOLD = re.compile(r"\*\*task\s+\d[^\n]*", re.IGNORECASE)


class Header(NamedTuple):
    """A task's heading."""

    number: str
    """Without zeros before it."""
    title: str
    line: int


class Section(NamedTuple):
    """A task's heading and what stands below it."""

    header: Header
    blocks: tuple[Block, ...]
    end: int
    """Number of its last line."""


class Parts(NamedTuple):
    """A plan's parts."""

    head: tuple[Block, ...]
    """Before the first task."""
    sections: tuple[Section, ...]
    tail: tuple[Block, ...]
    """Outside the tasks, behind the first one."""
    nearly: tuple[Block, ...]
    """What looks like a task's heading, is none, and so keeps its task from being read."""


def header_of(block: Block) -> Header | None:
    """The task that a block begins, None for any other block."""
    if block.kind != "heading" or block.level != LEVEL:
        return None
    text = words(block.text).rstrip("# ")
    match = _NUMBER.match(text)
    if match is None:
        return None
    rest = text[match.end() :]
    if rest[:1].isalnum() or rest[:1] in {"_", "/", "+"} or (rest[:1] in {".", "-", "–", "—"} and rest[1:2].isdigit()):
        return None  # `Task 1a`, `Task 1/3`, `Task 1-3`, `Task 1.2.3`: which task that is can only be guessed
    number = ".".join(str(int(part)) for part in match[1].split("."))
    return Header(number, rest.strip(" \t:–—-).").strip("* "), block.line)


def parts_of(blocks: Sequence[Block], last_line: int) -> Parts:
    """The parts of a plan that ends in `last_line`."""
    blocks = tuple(_uncommented(blocks))
    headers = [header_of(block) for block in blocks]
    first = next((at for at, header in enumerate(headers) if header is not None), len(blocks))
    sections: list[Section] = []
    tail: list[Block] = []
    at = first
    while at < len(blocks):
        header, stop = headers[at], _end(blocks, headers, at)
        if header is None:
            tail += blocks[at:stop]
        else:
            end = blocks[stop].line - 1 if stop < len(blocks) else last_line
            sections.append(Section(header, blocks[at + 1 : stop], end))
        at = stop
    return Parts(blocks[:first], tuple(sections), tuple(tail), tuple(_nearly(blocks, headers)))


def _end(blocks: Sequence[Block], headers: Sequence[Header | None], at: int) -> int:
    """The place behind a task, or behind a stretch that belongs to none."""
    inside = headers[at] is not None
    for place in range(at + 1, len(blocks)):
        block = blocks[place]
        if headers[place] is not None or (inside and block.kind == "heading" and block.level < LEVEL):
            return place
    return len(blocks)


def _uncommented(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks outside of comments; one that is never closed comments nothing out."""
    closings = deque(at for at, block in enumerate(blocks) if block.kind != "fence" and "-->" in block.text)
    behind = 0
    for at, block in enumerate(blocks):
        if at < behind:
            continue
        if block.kind == "paragraph" and block.text.startswith("<!--"):
            while closings and closings[0] < at:
                closings.popleft()
            if closings:
                behind = closings[0] + 1
                continue
        yield block


def _nearly(blocks: Sequence[Block], headers: Sequence[Header | None]) -> Iterator[Block]:
    there = any(header is not None for header in headers)
    seen = False
    for at, block in enumerate(blocks):
        title = block.kind == "heading" and block.level == 1 and not seen and there
        seen = seen or block.kind == "heading"
        if headers[at] is not None or title:
            continue
        if block.kind == "heading" and (block.level <= LEVEL or not there):
            found = _NEARLY.match(words(block.text))
            if found and not _groups(blocks, headers, at):
                yield block
        elif block.kind == "paragraph" and (_UNSPACED.match(block.text) or (not there and _BOLD.match(block.text))):
            yield block


def _groups(blocks: Sequence[Block], headers: Sequence[Header | None], at: int) -> bool:
    """Whether a heading only gathers tasks that are numbered below it: `## Task 1` before `### Task 1.1`."""
    found = _NUMBER.match(words(blocks[at].text))
    for place in range(at + 1, len(blocks)):
        header = headers[place]
        if header is not None:
            return found is not None and header.number.startswith(f"{found[1]}.")
        if blocks[place].kind == "heading" and blocks[place].level <= blocks[at].level:
            return False
    return False
