"""The text of a plan freed from what does not belong to it: marks of its encoding, thoughts, a block around it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, blocks_of
from orchestrator.answers.action_plan_structure import has_plan
from orchestrator.domain.action_plan import with_lf
from orchestrator.domain.findings import Finding, Where, major, minor

_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning|thought|scratchpad|reflection)>", re.IGNORECASE)
_WRAPS = frozenset({"", "markdown", "md", "text", "txt", "plaintext"})
_NAMED = re.compile(r"action\s+plan|rationale", re.IGNORECASE)
MAX_WRAPS = 5
"""Code blocks that are looked into for a plan."""


class Source(NamedTuple):
    """A text with LF line ends, and what was said about it."""

    text: str
    first_line: int
    """Number of its first line in the text as it was given."""
    findings: tuple[Finding, ...]


def is_json(text: str) -> bool:
    """Whether a text begins like JSON."""
    begun = text[:2000].lstrip("\ufeff \t\r\n")
    return begun.startswith("{") or re.match(r"\[\s*[{\"]", begun) is not None


def source_of(text: str) -> Source:
    """The text without a byte order mark, CRLF and a model's thoughts before it; thoughts without an end are all."""
    findings: list[Finding] = []
    if (at := _half_character(text)) >= 0:
        where = Where(line=text.count("\n", 0, at) + 1)
        message = "the text holds half a character, which no file can hold"
        return Source("", 1, (major("plan.encoding", message, where=where, fix="Write whole Unicode characters."),))
    if text.startswith("\ufeff"):
        text = text[1:]
        message = "the text begins with a byte order mark"
        findings.append(minor("plan.encoding", message, where=Where(line=1), fix="Leave the mark out."))
    if "\r" in text:
        text = with_lf(text)
        message = "line ends other than LF were read as LF; files keep their own"
        findings.append(minor("plan.encoding", message, where=Where(line=1), fix="Write LF line ends."))
    begun = _THOUGHTS.match(text)
    if begun is None:
        return Source(text, 1, tuple(findings))
    end = re.compile(rf"</{begun[1]}>", re.IGNORECASE).search(text, begun.end())
    if end is None:
        return Source("", 1, tuple(findings))
    return Source(text[end.end() :].lstrip(" \t"), text.count("\n", 0, end.end()) + 1, tuple(findings))


def _half_character(text: str) -> int:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return -1


def wrapped(source: Source, blocks: Sequence[Block]) -> list[Source] | None:
    """The plan in the last code block that holds one: as the block ends, and where a block inside it seems to have
    closed it, as it ends when that is left open; None when no block holds a plan."""
    fences = [
        block
        for block in blocks
        if block.kind == "fence" and not block.depth and block.info.lower() in _WRAPS and _NAMED.search(block.text)
    ]
    for block in reversed(fences[-MAX_WRAPS:]):
        if not has_plan(blocks_of(block.text)):
            continue
        message = "the plan stands in a code block"
        said = minor(
            "plan.wrapped", message, where=Where(line=block.line), fix="Write the plan without a block around."
        )
        if not any(other.line > block.line and other.kind == "fence" for other in blocks):
            return [Source(block.text, block.line + 1, (*source.findings, said))]
        fix = "Write the plan without a block around, or with a bar longer than any inside."
        message = "the plan stands in a code block that a block inside it closes"
        early = major("plan.wrapped", message, where=Where(line=block.line), fix=fix)
        return [
            *_to_the_last_bar(source, block, said),
            Source(block.text, block.line + 1, (*source.findings, early)),
        ]
    return None


def _to_the_last_bar(source: Source, block: Block, said: Finding) -> list[Source]:
    """The text from behind a block's first bar to the last line that could close it; no reading when there is none."""
    lines = source.text.split("\n")
    begins = block.line - source.first_line + 1
    for at in range(len(lines) - 1, begins, -1):
        bare = lines[at].rstrip()
        if len(bare) >= len(block.mark) and not bare.strip(block.mark[0]):
            inside = "\n".join(lines[begins:at])
            return [Source(inside, block.line + 1, (*source.findings, said))]
    return []
