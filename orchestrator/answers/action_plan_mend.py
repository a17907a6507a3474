"""A Markdown file behind a bar that is too short: where its block ends when there can be no doubt."""

import re
from collections.abc import Sequence

from orchestrator.answers.action_plan_document import Block
from orchestrator.answers.action_plan_fences import longest_run
from orchestrator.answers.action_plan_fields import field_of, path_of
from orchestrator.answers.action_plan_source import Source
from orchestrator.answers.action_plan_words import action_heading
from orchestrator.domain.action_plan import Verb
from orchestrator.domain.findings import Where, minor

_MARKDOWN = (".md", ".markdown", ".mdx")
_BAR = re.compile(r"^ {0,3}(`{3,}+)[ \t]*([^`\n]*)$")


def lengthened(source: Source, blocks: Sequence[Block]) -> Source | None:
    """The text with longer bars around each Markdown file in a CREATE whose own blocks are all named and closed, and
    behind which the text ends or another action begins; None when there is no such file.

    The reading of the result decides: a wrong end would leave bars over.
    """
    lines = source.text.split("\n")
    findings = list(source.findings)
    behind = 0
    for at, block in enumerate(blocks):
        if block.kind != "fence" or block.depth or block.line <= behind or not _is_markdown(blocks, at):
            continue
        start = block.line - source.first_line
        end = _end(lines, start, len(block.mark))
        if end is None or end + 1 == block.end - source.first_line + 1:
            continue
        inside = "\n".join(lines[start + 1 : end])
        bar = "`" * (longest_run(inside) + 1)
        lines[start] = bar + lines[start].lstrip().lstrip("`")
        lines[end] = bar
        behind = end + source.first_line
        message = (
            f"the bar of the Markdown file at line {block.line} is no longer than those inside it; "
            f"the file was read up to line {behind}, the right length is {len(bar)}"
        )
        fix = f"Write a bar of {len(bar)}: `{bar}` before and behind this block."
        findings.append(minor("plan.fence_short", message, where=Where(line=block.line), fix=fix))
    return Source("\n".join(lines), source.first_line, tuple(findings)) if behind else None


def _is_markdown(blocks: Sequence[Block], at: int) -> bool:
    """Whether the block is the first one of a CREATE whose path says that it is Markdown."""
    for block in reversed(blocks[:at]):
        if block.kind == "fence":
            return False
        if block.kind == "heading":
            found = action_heading(block.text)
            return found is not None and found.verb is Verb.CREATE and found.rest.lower().endswith(_MARKDOWN)
        field = field_of(block.text, block.line) if block.kind == "item" else None
        if field is not None and field.name == "File Path":
            return path_of(field.raw).path.lower().endswith(_MARKDOWN)
    return False


def _end(lines: Sequence[str], start: int, length: int) -> int | None:
    """The line that closes the block begun at `start` when blocks inside it are named; None when that leaves doubt."""
    depth = 0
    for at in range(start, len(lines)):
        bar = _BAR.match(lines[at])
        if bar is None or len(bar[1]) < length:
            continue
        depth += 1 if bar[2].strip() or at == start else -1
        if depth > 2:
            return None
        if depth == 0:
            return at if _action_follows(lines, at + 1) else None
    return None


def _action_follows(lines: Sequence[str], at: int) -> bool:
    """Whether nothing is left but the end, or a rule and the heading of an action."""
    ahead = [line.strip() for line in lines[at : at + 40] if line.strip()]
    if not ahead:
        return at + 40 >= len(lines)
    heading = ahead[1] if ahead[0] == "---" and len(ahead) > 1 else ahead[0]
    level = len(heading) - len(heading.lstrip("#"))
    return level == 3 and action_heading(heading[level:].strip()) is not None
