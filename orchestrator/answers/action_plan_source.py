"""The text of a plan freed from what does not belong to it: marks of its encoding, thoughts, a block around it.

Bars of code blocks: closed, and longer than any run of the same mark inside.

Stage 1 of reading a plan: closed fences, one title, the sections Rationale and Action Plan.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import (
    ACTIONS,
    RATIONALE,
    Block,
    action_heading,
    blocks_of,
    mark_of,
    section,
    words,
)
from orchestrator.core.action_plan import with_lf
from orchestrator.core.finding import Finding, Where, major, minor

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


_EXAMPLE = re.compile(r"^\W*(?:for )?(?:an? )?(?:example|sample|template|format)\b", re.IGNORECASE)


class Structure(NamedTuple):
    """One plan's parts; only to be used when no finding blocks."""

    title: str
    metadata: tuple[Block, ...]
    """Items under the title."""
    rationale: tuple[int, int]
    """First line of its text and the line behind it, 1-based."""
    actions: tuple[Block, ...]
    """What stands under the heading Action Plan."""
    last: bool
    """Whether the text ends with the actions."""
    lists: dict[str, tuple[str, ...]]
    """Other sections' list items, see `ActionPlan.lists`."""
    findings: tuple[Finding, ...]


def is_heading(block: Block, name: str) -> bool:
    """Whether a block is the heading of a section of this name."""
    return block.kind == "heading" and block.level in {2, 3} and section(block.text) == name


def has_plan(blocks: Sequence[Block]) -> bool:
    """Whether these blocks are meant as a plan: a section Action Plan with an action in it or a Rationale before it,
    or a title with a Rationale that nothing follows but its text."""
    headings = [block for block in blocks if block.kind == "heading"]
    if any(is_heading(block, ACTIONS) for block in headings):
        return any(is_heading(block, RATIONALE) for block in headings) or any(
            block.level > 1 and action_heading(block.text) for block in headings
        )
    return len(headings) == 2 and headings[0].level == 1 and is_heading(headings[1], RATIONALE)


def has_parts(blocks: Sequence[Block]) -> bool:
    """Whether anything of a plan is there, so that it can be said what is missing."""
    return any(
        is_heading(block, ACTIONS)
        or is_heading(block, RATIONALE)
        or (block.kind == "heading" and (found := action_heading(block.text)) is not None and found.exact)
        for block in blocks
    )


def structure_of(blocks: Sequence[Block]) -> Structure:
    """The plan in these blocks: of several the last one that is no example. All findings of the stage together."""
    start, end, notes = _chosen(blocks)
    own = blocks[start:end]
    titled = bool(own) and own[0].kind == "heading" and own[0].level == 1
    body = own[1:] if titled else own
    findings = [*notes, *_titles(blocks, start, end), *open_fences(own)]
    findings += _sections(body, blocks[-1].end if blocks else 1)
    if not titled and own:
        fix = "Begin with one line `# Title`."
        findings.append(minor("plan.no_title", "the plan has no title", where=Where(line=own[0].line), fix=fix))
    before = [block for block in blocks[:start] if block.kind != "rule"]
    if before and not notes:
        message = "the text before the title is no part of the plan"
        fix = "Answer with the plan and nothing else."
        findings.append(minor("plan.prose", message, where=Where(line=before[0].line), fix=fix))
    acts = next((at for at, block in enumerate(body) if is_heading(block, ACTIONS)), len(body))
    stop = next((at for at in range(acts + 1, len(body)) if _ends_actions(body[at])), len(body))
    findings += _outside([*body[:acts], *body[stop:]])
    findings += short_fences(body[acts + 1 : stop])
    findings += _comments(body[acts + 1 : stop])
    return Structure(
        title=own[0].text.rstrip("#").strip() if titled else "",
        metadata=tuple(_metadata(body)),
        rationale=_rationale(body, own),
        actions=tuple(body[acts + 1 : stop]),
        last=stop == len(body) and end == len(blocks),
        lists=_lists([*body[:acts], *body[stop:]]),
        findings=tuple(findings),
    )


def _chosen(blocks: Sequence[Block]) -> tuple[int, int, list[Finding]]:
    """Where the plan begins and ends, and what is said about others."""
    titles = [at for at, block in enumerate(blocks) if block.kind == "heading" and block.level == 1]
    ends = [*titles[1:], len(blocks)]
    plans = [
        (start, end)
        for start, end in zip(titles, ends, strict=False)
        if any(is_heading(block, ACTIONS) for block in blocks[start:end])
    ]
    if not plans:
        first = next(
            (at for at, block in enumerate(blocks) if is_heading(block, RATIONALE) or is_heading(block, ACTIONS)), 0
        )
        return max((at for at in titles if at < first), default=first), len(blocks), []
    real = [plan for plan in plans if not _is_example(blocks, plan[0])] or plans
    start, end = real[-1]
    if len(plans) == 1:
        return start, len(blocks), []
    lines = ", ".join(str(blocks[at].line) for at, _ in plans)
    message = f"there are {len(plans)} plans, at lines {lines}; the one at line {blocks[start].line} counts"
    end = end if any(other == end for other, _ in plans) else len(blocks)
    where = Where(line=blocks[start].line)
    return start, end, [minor("plan.several", message, where=where, fix="Answer with one plan.")]


def _is_example(blocks: Sequence[Block], at: int) -> bool:
    before = blocks[at - 1] if at else None
    announced = before is not None and before.kind == "paragraph" and before.text.rstrip().endswith(":")
    return bool(
        _EXAMPLE.match(words(blocks[at].text))
        or (announced and before is not None and re.search(r"\b(example|sample|template|format)\b", before.text, re.I))
    )


def _titles(blocks: Sequence[Block], start: int, end: int) -> Iterator[Finding]:
    """Titles that belong to no other whole plan."""
    titles = [at for at, block in enumerate(blocks) if block.kind == "heading" and block.level == 1]
    ends = dict(zip(titles, [*titles[1:], len(blocks)], strict=False))
    stray = [
        blocks[at].line
        for at in titles
        if at != start and not any(is_heading(block, ACTIONS) for block in blocks[at : ends[at]])
    ]
    if stray:
        own = blocks[start].line if start < len(blocks) else 1
        lines = ", ".join(str(line) for line in sorted({*stray, own}))
        message = f"there is more than one title (`# …`): lines {lines}"
        fix = "Keep one `# Title`; write other headings as `## …`."
        yield major("plan.titles", message, where=Where(line=stray[0]), fix=fix)


def _sections(body: Sequence[Block], last: int) -> Iterator[Finding]:
    for name, title in ((RATIONALE, "Rationale"), (ACTIONS, "Action Plan")):
        found = [block for block in body if is_heading(block, name)]
        fix = f"Give the plan one section `## {title}`."
        if not found:
            yield major("plan.section", f"the section `## {title}` is missing", where=Where(line=last), fix=fix)
        elif len(found) > 1 and name == ACTIONS:
            lines = ", ".join(str(block.line) for block in found)
            message = f"the section `## {title}` is there {len(found)} times: lines {lines}"
            yield major("plan.section", message, where=Where(line=found[1].line), fix=fix)
        elif found[0].level != 2 or words(found[0].text) != title:
            message = f"`{found[0].text[:60]}` was read as the section `## {title}`"
            fix = f"Write `## {title}`."
            yield minor("plan.section_form", message, where=Where(line=found[0].line), fix=fix)


def _ends_actions(block: Block) -> bool:
    """Whether another section begins."""
    if block.kind != "heading" or block.level > 2:
        return False
    return block.level == 1 or not (action_heading(block.text) or mark_of(block.text))


def _outside(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Actions that stand in no Action Plan would be lost without a word."""
    for block in blocks:
        found = action_heading(block.text) if block.kind == "heading" and block.level == 3 else None
        if found is not None and (found.exact or found.rest or block.text.strip("`*: ").isupper()):
            message = f"`{words(block.text)[:60]}` stands outside of the section `## Action Plan`"
            fix = "Move every action below `## Action Plan`."
            yield major("plan.outside", message, where=Where(line=block.line), fix=fix)


def _comments(blocks: Sequence[Block]) -> Iterator[Finding]:
    """A comment over several blocks hides actions from whoever reads the page, and not from the parser."""
    for block in blocks:
        if block.kind in {"paragraph", "item"} and block.text.rfind("<!--") > block.text.rfind("-->"):
            message = "an HTML comment begins here, so nobody can tell which actions are meant"
            fix = "Leave the comment out, and every action that is not meant."
            yield major("plan.comment", message, where=Where(line=block.line), fix=fix)


def _metadata(body: Sequence[Block]) -> Iterator[Block]:
    for block in body:
        if block.kind == "heading":
            return
        if block.kind == "item" and block.depth == 1:
            yield block


def _lists(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """The outer list items below each heading of the second level that the plan itself does not know."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for block in blocks:
        if block.kind == "heading":
            name = "" if block.level != 2 or is_heading(block, RATIONALE) else words(block.text).casefold()
        elif name and block.kind == "item" and block.depth == 1:
            found[name] = (*found.get(name, ()), " ".join(block.text.split()))
    return found


def _rationale(body: Sequence[Block], own: Sequence[Block]) -> tuple[int, int]:
    at = next((at for at, block in enumerate(body) if is_heading(block, RATIONALE)), None)
    if at is None:
        return 1, 1
    level = body[at].level
    behind = next((b.line for b in body[at + 1 :] if b.kind == "heading" and b.level <= max(level, 2)), None)
    if behind is None:
        behind = next((b.line for b in body[at + 1 :] if is_heading(b, ACTIONS)), own[-1].end + 1)
    return body[at].end + 1, behind


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
