"""Stage 1 of reading a plan: closed fences, one title, the sections Rationale and Action Plan."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Block, words
from orchestrator.answers.action_plan_fences import open_fences, short_fences
from orchestrator.answers.action_plan_words import ACTIONS, RATIONALE, action_heading, mark_of, section
from orchestrator.domain.findings import Finding, Where, major, minor

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
