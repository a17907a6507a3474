"""Bars of code blocks: closed, and longer than any run of the same mark inside."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.answers.action_plan_document import Block
from orchestrator.answers.action_plan_words import action_heading
from orchestrator.domain.findings import Finding, Where, major, minor

_RUNS = {"`": re.compile(r"`{3,}+"), "~": re.compile(r"~{3,}+")}
_OPENING = {
    "`": re.compile(r"^ {0,3}(`{3,}+)[ \t]*[^`\s][^`\n]*$", re.MULTILINE),
    "~": re.compile(r"^ {0,3}(~{3,}+)[ \t]*[^\s][^\n]*$", re.MULTILINE),
}
"""A line inside a block that would open a block of its own."""


def longest_run(text: str, mark: str = "`") -> int:
    """Length of the longest run of the mark, 0 below three."""
    return max((len(run[0]) for run in _RUNS[mark].finditer(text)), default=0)


def open_fences(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Blocks that are open although the text goes on: behind them, or swallowed by them."""
    for at, block in enumerate(blocks):
        if block.kind != "fence" or block.closed:
            continue
        swallowed = block.depth == 0 and any(
            line.startswith("#") and action_heading(line.lstrip("#").strip()) for line in block.text.split("\n")
        )
        if swallowed or at + 1 < len(blocks):
            yield major(
                "plan.fence_open",
                f"the code block that begins at line {block.line} is never closed"
                + (" and takes in other actions" if swallowed else ""),
                where=Where(line=block.line),
                fix=f"Close it with a line `{block.mark}` at the left margin; it is longer than any bar inside.",
            )


def short_fences(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Blocks whose bar is no longer than a run inside: a block may end there where it was not meant to."""
    for block in blocks:
        if block.kind != "fence":
            continue
        mark, length = block.mark[0], len(block.mark)
        longest = longest_run(block.text, mark)
        if longest < length:
            continue
        right = mark * (longest + 1)
        fix = f"Write a bar of {longest + 1}: `{right}` before and behind this block."
        inner = next((run for run in _OPENING[mark].finditer(block.text) if len(run[1]) >= length), None)
        if inner is not None:
            line = block.line + 1 + block.text.count("\n", 0, inner.start())
            message = (
                f"the bar of the block at line {block.line} ({length}) is no longer than the one inside it at line "
                f"{line} ({len(inner[1])}), so nobody can tell where the block ends; the right length is {longest + 1}"
            )
            yield major("plan.fence_short", message, where=Where(line=block.line), fix=fix)
        elif block.closed:
            message = (
                f"the bar of the block at line {block.line} ({length}) is no longer than a run inside it; "
                f"the right length is {longest + 1}"
            )
            yield minor("plan.fence_short", message, where=Where(line=block.line), fix=fix)
