"""A review's text → its lines, each with what it is in Markdown: thoughts, wrappers and what is quoted told apart."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, blocks_of
from orchestrator.answers.review_verdict import is_template, said_ready
from orchestrator.answers.review_words import Section, heading_of
from orchestrator.domain.action_plan import with_lf
from orchestrator.domain.review import PLACE

_TAGS = r"(?:think|thinking|reasoning|thoughts?|scratchpad|reflection|analysis|draft)"
_OPENS = re.compile(rf"\s*<({_TAGS})>", re.IGNORECASE)
_THOUGHT = re.compile(rf"<{_TAGS}>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"(?:.*[^`\s])?\s*</{_TAGS}>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,30}>")
_ANNOUNCED = re.compile(
    r"\W*(?:sure|certainly|okay|ok|below|here|hier)\b[^\n]{0,150}\breview\b[^\n]{0,80}", re.IGNORECASE
)
_UNDERLINE = re.compile(r"={2,}")
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_WRAPS = frozenset({"", "markdown", "md"})
_DIFF_BEGINS = re.compile(r"diff --git |@@ -\d|(?:--- a|\+\+\+ b)/|(?:---|\+\+\+) /dev/null")
_DIFF_GOES_ON = re.compile(
    r"[ \t+@\\-]|$|(?:diff --git|index|new file|deleted file|similarity|rename|Binary files|old mode|new mode)\b"
)
_ITEM = re.compile(r"\s*(?:[-*+]\s+)*([0-9]{1,9})[.)]\s")
_STARTS_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s")


class Line(NamedTuple):
    """One line of a review, or a whole block of code or quotation."""

    kind: str
    """heading, text, code, quote; draft: what stands before was one; hidden: a part of the text is not seen here."""
    text: str
    line: int
    """1-based."""
    level: int = 0
    """Of a heading; of what an open code block hides, the line of its bar."""
    depth: int = 0
    """How many lists it stands in."""
    item: bool = False
    """Whether a list item begins with it."""
    number: int | None = None
    """As it was written before an item."""
    added: bool = False
    """Whether the item's mark is a plus, which a diff's added line may be."""
    margin: bool = True
    """Whether it begins at the left margin; items may stand anywhere."""


def lines_of(text: str) -> tuple[Line, ...]:
    """The lines that are the review itself. Raises TooManyBlocks; nothing else, whatever the text is."""
    clean = _UNSEEN.sub("", with_lf(text.encode("utf-8", "backslashreplace").decode("utf-8")))
    clean = _without_opening_thoughts(clean)
    source = _unwrapped(clean)
    found = list(_lines(source, blocks_of(source)))
    return tuple(_without_comments(_without_thoughts(found)))


def _without_opening_thoughts(text: str) -> str:
    """Blank lines in place of thoughts before the answer; thoughts without an end are all there is."""
    begun = _OPENS.match(text)
    if begun is None:
        return text
    end = re.compile(rf"(?<!`)</{begun[1]}>(?!`)", re.IGNORECASE).search(text, begun.end())
    return "" if end is None else "\n" * text.count("\n", 0, end.end()) + text[end.end() :].lstrip(" \t")


def _unwrapped(text: str) -> str:
    """The text without the bars of a code block that stands around the review."""
    blocks = blocks_of(text)
    wrapper = next((block for block in blocks[:2] if _wraps(block, blocks)), None)
    if wrapper is None:
        return text
    lines = text.split("\n")
    lines[: wrapper.line] = [""] * wrapper.line
    again = blocks_of("\n".join(lines))
    if again and again[-1].kind == "fence" and not again[-1].closed and not again[-1].info:
        lines[again[-1].line - 1] = ""  # the bar that closed the wrapper
    return "\n".join(lines)


def _wraps(block: Block, blocks: Sequence[Block]) -> bool:
    """Whether the answer is in this block: nothing but its announcement stands before, so that it is no quotation."""
    if block.kind != "fence" or block.depth or block.info.lower() not in _WRAPS:
        return False
    sections = {
        found.section for line in block.text.split("\n") if line.startswith("#") and (found := heading_of(line))
    }
    if Section.SUMMARY not in sections and not {Section.ISSUES, Section.VERDICT} <= sections:
        return False
    if block is blocks[0]:
        return True
    announced = block is blocks[1] and blocks[0].kind == "paragraph" and _ANNOUNCED.fullmatch(blocks[0].text)
    return bool(announced) and not any(
        (other.kind == "heading" and heading_of(other.text)) or said_ready(line) is not None
        for other in blocks[2:]
        if other.kind != "fence"
        for line in other.text.split("\n")
    )


def _holds_review(block: Block) -> bool:
    """Whether a code block has the headings of a review; the format given back is none."""
    ready = [said for line in block.text.split("\n") if (said := said_ready(line)) is not None]
    if PLACE in block.text and ready and all(map(is_template, ready)):
        return False
    heads = (heading_of(line) for line in block.text.split("\n") if block.kind == "fence" and line.startswith("#"))
    sections = {found.section for found in heads if found is not None}
    return Section.SUMMARY in sections or {Section.ISSUES, Section.VERDICT} <= sections


def _lines(source: str, blocks: Sequence[Block]) -> Iterator[Line]:
    raw = source.split("\n")
    quoted = _quoted_diffs(raw, blocks)
    for block in blocks:
        if block.kind == "rule":
            continue
        if block.kind in {"fence", "code", "quote"}:
            kind = "quote" if block.kind == "quote" else "code"
            told = block.text.rstrip("\n") if block.kind != "quote" else "\n".join(raw[block.line - 1 : block.end])
            bar = block.mark or "```"
            told = f"{bar}{block.info}\n{told}\n{bar}" if kind == "code" else told
            yield Line(kind, told, block.line, depth=block.depth)
            if (not block.closed and block.text.strip()) or _holds_review(block):
                yield Line("hidden", "", block.end, level=0 if block.closed else block.line)
            continue
        for at, text in enumerate(block.text.split("\n"), start=block.line):
            as_it_is = raw[at - 1] if at <= len(raw) else ""
            if _UNDERLINE.fullmatch(text.strip()):
                continue
            yield Line("quote", as_it_is, at) if at in quoted else _line(block, at, text.strip(), as_it_is)


def _line(block: Block, at: int, text: str, raw: str) -> Line:
    first, margin = at == block.line, raw[:1].strip() != ""
    item = first and block.depth > 0 and (block.kind == "item" or bool(_STARTS_ITEM.match(raw)))
    # What goes on at the margin belongs to a list by the letter of Markdown only.
    depth = 0 if margin and not item else block.depth
    match = _ITEM.match(raw) if item else None
    return Line(
        "heading" if block.kind == "heading" else "text",
        text,
        at,
        level=block.level,
        depth=depth,
        item=item,
        number=int(match[1]) if match else None,
        added=block.mark == "+",
        margin=margin,
    )


def _quoted_diffs(raw: Sequence[str], blocks: Sequence[Block]) -> set[int]:
    """Numbers of the lines of a diff that stands in the text without a code block around it."""
    code = {at for block in blocks if block.kind == "fence" for at in range(block.line, block.end + 1)}
    found: set[int] = set()
    inside = False
    for at, line in enumerate(raw, start=1):
        inside = at not in code and bool(_DIFF_BEGINS.match(line) or (inside and _DIFF_GOES_ON.match(line)))
        if inside:
            found.add(at)
    return found


def _without_thoughts(lines: Sequence[Line]) -> list[Line]:
    """Thoughts whose tags stand on lines of their own; before an end without a beginning, everything is thought.

    If a review seems to stand there, it is kept as a draft: it may be no thought.
    """
    kept: list[Line] = []
    begun: int | None = None
    headed = False
    for line in lines:
        if line.kind in {"code", "quote", "hidden"}:
            kept.append(line)
        elif _THOUGHT.fullmatch(line.text):
            begun = len(kept) if begun is None else begun
        elif _THOUGHT_ENDS.fullmatch(line.text) and (begun is not None or not headed or _TAG.fullmatch(line.text)):
            if begun is None and headed:
                kept.append(Line("draft", "", line.line))
            else:
                del kept[begun or 0 :]
            begun = None
        elif not _TAG.fullmatch(line.text):
            headed = headed or (line.kind == "heading" and heading_of(line.text) is not None)
            kept.append(line)
    return kept if begun is None else [*kept[:begun], Line("hidden", "", lines[-1].line)]


def _without_comments(lines: Sequence[Line]) -> Iterator[Line]:
    """Without HTML comments: nobody reads them. One that does not end hides the rest."""
    inside = False
    for line in lines:
        if line.kind in {"code", "hidden", "draft"}:
            if not inside:
                yield line
            continue
        begins = line.text.startswith("<!--")
        if not (inside or begins):
            yield line
        inside = (inside or begins) and "-->" not in line.text
    if inside:
        yield Line("hidden", "", lines[-1].line)
