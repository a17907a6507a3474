"""An action plan in a model's or a person's text → its value, or why there is none.

Read by the tokens of a CommonMark parser, in two stages: structure, then actions. Blocks are closed, and their bars
longer than any run of backticks inside; where a bar is too short, the plan is read only if it is certain what is meant.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from orchestrator.answers.action_plan_actions import (
    MARKS,
    NUMBER,
    CutAction,
    action_heading,
    actions_of,
    mark_of,
)
from orchestrator.answers.markdown import Block, Source, TooManyBlocks, blocks_of, field_of, source_of, words
from orchestrator.answers.paths import path_of
from orchestrator.answers.result import Extraction, Repair, Status
from orchestrator.core.action_plan import ActionPlan, Verb
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.value import Value

RATIONALE, ACTIONS = "rationale", "action plan"
PLAN_LAYER = "action_plan"
"""Layer of an extraction that was read as an action plan."""
MAX_WRAPS = 5
"""Code blocks that are looked into for a plan."""
TITLES = "plan.titles"
"""Code of the finding on titles beside the one at the beginning."""
_PLAN, _CUT = "action_plan", "cut"
_WRAPS = frozenset({"", "markdown", "md", "text", "txt", "plaintext"})
_NAMED = re.compile(r"action\s+plan|rationale", re.IGNORECASE)
_SECTION = re.compile(r"^ {0,3}#{2,6}[ \t]", re.MULTILINE)
_ACTED = re.compile(rf" {{0,3}}#{{2,4}}[ \t]+`(?:{'|'.join(Verb.__members__)})`")
"""An action's heading, its verb in backticks."""
_RUN = re.compile(r"`{3,}+|~{3,}+")
_OPENING = re.compile(r"^ {0,3}(?:(`{3,}+)[ \t]*[^`\s][^`\n]*|(~{3,}+)[ \t]*[^\s][^\n]*)$", re.MULTILINE)
"""A line inside a block that would open a block of its own."""
_BAR = re.compile(r"^ {0,3}(`{3,}+)[ \t]*([^`\n]*)$")
_MARKDOWN = (".md", ".markdown", ".mdx")


class PlanExtraction(Value):
    """The result of `parse_plan`: `plan` is None exactly when `status` is refused."""

    plan: ActionPlan | None
    """When truncated: the actions that are whole, maybe none."""
    status: Status
    findings: tuple[Finding, ...] = ()
    """What was read otherwise than it stands (minor), or why there is no whole plan; lines are those of the text."""
    cut: CutAction | None = None
    """The action that was cut off, exactly when truncated."""

    @property
    def repairs(self) -> tuple[Finding, ...]:
        """What was read otherwise than it stands."""
        return tuple(finding for finding in self.findings if not finding.severity.blocks)


def parse_plan(text: str) -> PlanExtraction:
    """Returns the plan in a text: whole, cut off, or refused with findings. Never raises; linear in the text.

    Whether a text that seems whole was cut off between two actions only its sender knows: look at the stop reason.
    """
    source = source_of(text)
    if blocking(source.findings):
        return _refused(source.findings)
    try:
        blocks = without_thoughts(blocks_of(source.text, source.first_line))
        inner = None if has_plan(blocks) else wrapped(source, blocks)
        if inner is None:
            return _mended(source, blocks)
        readings = [_mended(one, blocks_of(one.text, one.first_line)) for one in inner]
    except TooManyBlocks:
        fix = "Answer with one action plan and nothing else."
        return _refused((*source.findings, major("plan.too_many", "the text has too many parts to be a plan", fix=fix)))
    return next((one for one in readings if not blocking(one.findings)), readings[0])


def is_plan(text: str) -> bool:
    """Returns whether a reply is meant as an action plan, whole or not: it has its sections. Cheap where it is none."""
    begun = text[:2000].lstrip("\ufeff \t\r\n")
    is_json = begun.startswith("{") or re.match(r"\[\s*[{\"]", begun) is not None
    if is_json or _NAMED.search(text) is None:
        return False
    source = source_of(text)
    try:
        blocks = without_thoughts(blocks_of(source.text, source.first_line))
        return has_plan(blocks) or wrapped(source, blocks) is not None
    except TooManyBlocks:  # too large to be read, so not taken for a plan
        return False


def plan_answer(text: str) -> Extraction | None:
    """Returns what a text holds that is meant as an action plan; None for any other. Never raises.

    The value is `{"action_plan": …, "cut": …}`, see `plan_in` and `cut_in`; repairs are what was read otherwise than it
    stands, with the offset of its line.
    """
    if not is_plan(text):
        return None
    found = parse_plan(text)
    value = None
    if found.plan is not None:
        cut = found.cut.model_dump(mode="json") if found.cut is not None else None
        value = {_PLAN: found.plan.model_dump(mode="json"), _CUT: cut}
    starts = list(accumulate(map(len, text.split("\n")), lambda at, length: at + length + 1, initial=0))
    return Extraction(
        value=value,
        status=found.status,
        layer=PLAN_LAYER if value is not None else "none",
        repairs=tuple(
            Repair(one.code.removeprefix("plan."), starts[min((one.where.line or 1) - 1, len(starts) - 1)], "", "")
            for one in found.repairs
        ),
        complete=found.status in {Status.OK, Status.REPAIRED},
        candidates=1,
        problems=found.findings,
    )


def begins_with_an_action(text: str) -> bool:
    """Returns whether the first section of a reply is an action, as of a model that only wants to READ."""
    first = _SECTION.search(text)
    return first is not None and _ACTED.match(text, first.start()) is not None


def with_sections(text: str) -> str | None:
    """Returns a reply that begins with an action with the sections of a plan; None for any other text."""
    try:
        headings = [one for one in without_thoughts(blocks_of(text)) if one.kind == "heading"]
    except TooManyBlocks:
        return None
    first = next((one for one in headings if one.level > 1), None)
    named = any(is_heading(one, RATIONALE) or is_heading(one, ACTIONS) for one in headings)
    lines = re.split(r"\r\n|\r|\n", text)  # as Markdown counts them
    if first is None or named or _ACTED.match(lines[first.line - 1]) is None:
        return None
    begun = lines[: first.line - 1]
    return "\n".join([*begun, "## Rationale", "", "## Action Plan", "", *lines[first.line - 1 :]])


def plan_in(value: Any) -> ActionPlan | None:
    """Returns the plan in an extracted value, None where the answer came as JSON."""
    return ActionPlan.model_validate(value[_PLAN]) if isinstance(value, dict) and _PLAN in value else None


def cut_in(value: Any) -> CutAction | None:
    """Returns the action that a plan's end cut off; None when none was, or it is not known."""
    cut = value.get(_CUT) if isinstance(value, dict) and _PLAN in value else None
    return CutAction.model_validate(cut) if cut else None


def _refused(findings: tuple[Finding, ...]) -> PlanExtraction:
    return PlanExtraction(plan=None, status=Status.REFUSED, findings=findings)


def without_thoughts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Returns what stands behind the last line that ends a model's thoughts; one behind all else ended none."""
    tags = ("</think>", "</thinking>", "</reasoning>")
    ends = [at for at, one in enumerate(blocks) if one.kind == "paragraph" and one.text.rstrip().endswith(tags)]
    if not ends:
        return blocks
    behind = blocks[ends[-1] + 1 :]
    return behind if any(one.kind in {"heading", "fence"} for one in behind) else without_thoughts(blocks[: ends[-1]])


def _mended(source: Source, blocks: tuple[Block, ...]) -> PlanExtraction:
    """Returns the reading as it stands; where bars are too short and it is certain what they mean, with longer ones."""
    found = _read(source, blocks)
    if not any(finding.code == "plan.fence_short" for finding in blocking(found.findings)):
        return found
    longer = lengthened(source, blocks)
    if longer is None:
        return found
    again = _read(longer, without_thoughts(blocks_of(longer.text, longer.first_line)))
    return found if blocking(again.findings) else again


def _read(source: Source, blocks: tuple[Block, ...]) -> PlanExtraction:
    if not any(is_heading(one, ACTIONS) or is_heading(one, RATIONALE) or _is_exact(one) for one in blocks):
        where = Where(line=blocks[0].line) if blocks else Where()
        fix = "Answer with one `# Title`, `## Rationale`, `## Action Plan`, and below it the actions."
        return _refused((*source.findings, major("plan.none", "the text holds no action plan", where=where, fix=fix)))
    titles = [at for at, block in enumerate(blocks) if _is_title(block)]
    first = next((at for at, one in enumerate(blocks) if is_heading(one, RATIONALE) or is_heading(one, ACTIONS)), 0)
    start = max((at for at in titles if at < first), default=first)
    own = blocks[start:]
    titled = own[0].kind == "heading" and own[0].level == 1
    body = _without_titles(own[1:] if titled else own)
    acts = next((at for at, block in enumerate(body) if is_heading(block, ACTIONS)), len(body))
    stop = next((at for at in range(acts + 1, len(body)) if _ends_actions(body[at])), len(body))
    tops = [block.line for block in blocks if block.kind == "heading" and block.level == 1]
    told = [*source.findings, *_titles(tops, titled), *_open_fences(own)]
    told += [*_sections(body, blocks[-1].end), *_around(blocks[:start], own[0], titled)]
    drafted = blocks[:start] if any(at < start for at in titles) else ()
    told += [*_outside([*drafted, *body[:acts], *body[stop:]]), *_unclear(body[acts + 1 : stop])]
    if blocking(told):
        return _refused(_once(told))
    begun, behind = _rationale(body, own[-1].end + 1)
    found = actions_of(body[acts + 1 : stop], stop == len(body), body[acts + 1].line if acts + 1 < stop else behind)
    findings = _once([*told, *found.findings])
    if blocking(findings):
        return _refused(findings)
    metadata = [block for block in body[: _heading_at(body)] if block.kind == "item" and block.depth == 1]
    plan = ActionPlan(
        title=own[0].text.rstrip("#").strip() if titled else "",
        metadata={one.key: one.raw for item in metadata if (one := field_of(item.text, item.line))},
        rationale="\n".join(source.text.split("\n")[begun - source.first_line : behind - source.first_line]).strip(),
        lists=_lists([*body[:acts], *body[stop:]]),
        actions=found.actions,
    )
    if found.cut is None:
        return PlanExtraction(plan=plan, status=Status.REPAIRED if findings else Status.OK, findings=findings)
    action = f"{found.cut.verb} {found.cut.path}".rstrip()
    message = f"the plan was cut off in the action {action}"
    fix = "Send it again, whole and shorter."
    cut = major("plan.truncated", message, where=Where(line=found.cut.line), fix=fix)
    return PlanExtraction(plan=plan, status=Status.TRUNCATED, findings=(*findings, cut), cut=found.cut)


def _once(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Returns each finding once, in the order of the lines."""
    kept = {(one.code, one.message): one for one in reversed(findings)}
    return tuple(sorted(reversed(kept.values()), key=lambda one: one.where.line or 0))


def _is_exact(block: Block) -> bool:
    found = action_heading(block.text) if block.kind == "heading" else None
    return found is not None and found.exact


def is_heading(block: Block, name: str) -> bool:
    """Returns whether a block is the heading of a section of this name, whatever its number and marks."""
    if block.kind != "heading" or block.level not in {2, 3}:
        return False
    return NUMBER.sub("", words(block.text).casefold(), count=1).strip(MARKS) == name


def has_plan(blocks: Sequence[Block]) -> bool:
    """Returns whether these blocks are meant as a plan: a section Action Plan with an action in it or a Rationale
    before it, or a title with a Rationale that nothing follows but its text."""
    headings = [block for block in blocks if block.kind == "heading"]
    if any(is_heading(block, ACTIONS) for block in headings):
        return any(
            is_heading(block, RATIONALE) or (block.level > 1 and action_heading(block.text)) for block in headings
        )
    return len(headings) == 2 and headings[0].level == 1 and is_heading(headings[1], RATIONALE)


def _titles(lines: Sequence[int], titled: bool) -> Iterator[Finding]:
    further = lines[titled:]
    if further:
        message = f"a title (`# …`) stands elsewhere than at the beginning: lines {', '.join(map(str, lines))}"
        fix = "Answer with one plan and one `# Title`; write other headings as `## …`."
        yield minor(TITLES, message, where=Where(line=further[0]), fix=fix)


def _is_title(block: Block) -> bool:
    """Returns whether a block is a heading of the first level, and no action or mark that was written as one."""
    return block.kind == "heading" and block.level == 1 and not _is_exact(block) and mark_of(block.text) is None


def _without_titles(body: Sequence[Block]) -> list[Block]:
    """Returns the blocks without further titles between the actions: it is certain that those behind them are meant."""
    acts = next((at for at, block in enumerate(body) if is_heading(block, ACTIONS)), len(body))
    last = max((at for at, block in enumerate(body) if _is_exact(block)), default=0)
    return [block for at, block in enumerate(body) if not (acts < at < last and _is_title(block))]


def _sections(body: Sequence[Block], last: int) -> Iterator[Finding]:
    for name, title in ((RATIONALE, "Rationale"), (ACTIONS, "Action Plan")):
        found = [block for block in body if is_heading(block, name)]
        fix = f"Give the plan one section `## {title}`."
        if not found:
            yield major("plan.section", f"the section `## {title}` is missing", where=Where(line=last), fix=fix)
        elif len(found) > 1 and name == ACTIONS:
            message = f"the section `## {title}` is there {len(found)} times"
            yield major("plan.section", message, where=Where(line=found[1].line), fix=fix)
        elif found[0].level != 2 or words(found[0].text) != title:
            message = f"`{found[0].text[:60]}` was read as the section `## {title}`"
            yield minor("plan.section_form", message, where=Where(line=found[0].line), fix=f"Write `## {title}`.")


def _around(before: Sequence[Block], begin: Block, titled: bool) -> Iterator[Finding]:
    if not titled:
        fix = "Begin with one line `# Title`."
        yield minor("plan.no_title", "the plan has no title", where=Where(line=begin.line), fix=fix)
    if (stray := next((block for block in before if block.kind != "rule"), None)) is not None:
        message, fix = "the text before the title is no part of the plan", "Answer with the plan and nothing else."
        yield minor("plan.prose", message, where=Where(line=stray.line), fix=fix)


def _ends_actions(block: Block) -> bool:
    """Returns whether another section begins."""
    if block.kind != "heading" or block.level > 2:
        return False
    return _is_title(block) or not (action_heading(block.text) or mark_of(block.text))


def _outside(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Actions that stand in no Action Plan would be lost without a word."""
    for block in blocks:
        found = action_heading(block.text) if block.kind == "heading" and block.level in {1, 3} else None
        if found is not None and (found.exact or found.rest or block.text.strip("`*: ").isupper()):
            message = f"`{words(block.text)[:60]}` stands outside of the section `## Action Plan`"
            fix = "Move every action below `## Action Plan`."
            yield major("plan.outside", message, where=Where(line=block.line), fix=fix)


def _unclear(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Comments, which hide actions from people and not from the parser; bars that are too short."""
    for block in blocks:
        if block.kind == "fence":
            yield from _short_fence(block)
        elif block.text.rfind("<!--") > block.text.rfind("-->"):
            message = "an HTML comment begins here, so nobody can tell which actions are meant"
            fix = "Leave the comment out, and every action that is not meant."
            yield major("plan.comment", message, where=Where(line=block.line), fix=fix)


def _open_fences(blocks: Sequence[Block]) -> Iterator[Finding]:
    """Blocks that are open although the text goes on: behind them, or swallowed by them."""
    for at, block in enumerate(blocks):
        if block.kind != "fence" or block.closed:
            continue
        lines = block.text.split("\n") if block.depth == 0 else []
        swallowed = any(line.startswith("#") and action_heading(line.lstrip("#").strip()) for line in lines)
        if swallowed or at + 1 < len(blocks):
            others = " and takes in other actions" if swallowed else ""
            message = f"the code block that begins at line {block.line} is never closed{others}"
            fix = f"Close it with a line `{block.mark}` at the left margin; it is longer than any bar inside."
            yield major("plan.fence_open", message, where=Where(line=block.line), fix=fix)


def longest_run(text: str, mark: str = "`") -> int:
    """Returns the length of the longest run of the mark, 0 below three."""
    return max((len(run[0]) for run in _RUN.finditer(text) if run[0][0] == mark), default=0)


def _short_fence(block: Block) -> Iterator[Finding]:
    """Yields a bar no longer than a run inside: the block may end there where it was not meant to."""
    mark, length = block.mark[0], len(block.mark)
    longest = longest_run(block.text, mark)
    if longest < length:
        return
    fix = f"Write a bar of {longest + 1}: `{mark * (longest + 1)}` before and behind this block."
    runs = ((run, run[1] or run[2]) for run in _OPENING.finditer(block.text))
    inner = next((run for run, bar in runs if bar[0] == mark and len(bar) >= length), None)
    short = f"the bar of the block at line {block.line} ({length}) is no longer than a run inside it"
    if inner is not None:
        line = block.line + 1 + block.text.count("\n", 0, inner.start())
        message = f"{short} at line {line}, so it is not known where it ends; the right length is {longest + 1}"
        yield major("plan.fence_short", message, where=Where(line=block.line), fix=fix)
    elif block.closed:
        message = f"{short}; the right length is {longest + 1}"
        yield minor("plan.fence_short", message, where=Where(line=block.line), fix=fix)


def _heading_at(blocks: Sequence[Block]) -> int:
    return next((at for at, block in enumerate(blocks) if block.kind == "heading"), len(blocks))


def _lists(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Returns the outer list items below each heading of the second level that the plan itself does not know."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for block in blocks:
        if block.kind == "heading":
            name = "" if block.level != 2 or is_heading(block, RATIONALE) else words(block.text).casefold()
        elif name and block.kind == "item" and block.depth == 1:
            found[name] = (*found.get(name, ()), " ".join(block.text.split()))
    return found


def _rationale(body: Sequence[Block], end: int) -> tuple[int, int]:
    """First line of the Rationale's text and the line behind it."""
    at = next(at for at, block in enumerate(body) if is_heading(block, RATIONALE))
    level = max(body[at].level, 2)
    following = [block for block in body[at + 1 :] if block.kind == "heading"]
    stops = [one.line for one in following if one.level <= level or is_heading(one, ACTIONS)]
    return body[at].end + 1, stops[0] if stops else end


def wrapped(source: Source, blocks: Sequence[Block]) -> list[Source] | None:
    """Returns the plan in the last code block that holds one: as the block ends, and where a block inside it seems to
    have closed it, up to the last line that could close it; None when no block holds a plan."""
    fences = [
        block
        for block in blocks
        if block.kind == "fence" and not block.depth and block.info.lower() in _WRAPS and _NAMED.search(block.text)
    ]
    block = next((one for one in reversed(fences[-MAX_WRAPS:]) if has_plan(blocks_of(one.text))), None)
    if block is None:
        return None
    where, fix = Where(line=block.line), "Write the plan without a block around, or with a bar longer than any inside."
    said = minor("plan.wrapped", "the plan stands in a code block", where=where, fix=fix)
    if not any(other.line > block.line and other.kind == "fence" for other in blocks):
        return [Source(block.text, block.line + 1, (*source.findings, said))]
    early = major("plan.wrapped", "the plan stands in a code block that a block inside it closes", where=where, fix=fix)
    lines = source.text.split("\n")
    begins = block.line - source.first_line + 1
    ends = (at for at in range(len(lines) - 1, begins, -1) if _closes(lines[at].rstrip(), block.mark))
    last = next(ends, None)
    whole = [] if last is None else [Source("\n".join(lines[begins:last]), block.line + 1, (*source.findings, said))]
    return [*whole, Source(block.text, block.line + 1, (*source.findings, early))]


def _closes(line: str, bar: str) -> bool:
    return len(line) >= len(bar) and not line.strip(bar[0])


def lengthened(source: Source, blocks: Sequence[Block]) -> Source | None:
    """Returns the text with longer bars around each Markdown file in a CREATE whose own blocks are all named and
    closed, and behind which the text ends or another action begins; None when there is no such file.

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
        if end is None or end == block.end - source.first_line:
            continue
        bar = "`" * (longest_run("\n".join(lines[start + 1 : end])) + 1)
        lines[start] = bar + lines[start].lstrip().lstrip("`")
        lines[end] = bar
        behind = end + source.first_line
        message = f"the bar of the Markdown file at line {block.line} is too short; it was read up to line {behind}"
        fix = f"Write a bar of {len(bar)}: `{bar}` before and behind this block."
        findings.append(minor("plan.fence_short", message, where=Where(line=block.line), fix=fix))
    return Source("\n".join(lines), source.first_line, tuple(findings)) if behind else None


def _is_markdown(blocks: Sequence[Block], at: int) -> bool:
    """Returns whether the block is the first one of a CREATE whose path says that it is Markdown."""
    for block in reversed(blocks[:at]):
        if block.kind == "fence":
            return False
        if block.kind == "heading":
            found = action_heading(block.text)
            return found is not None and found.verb is Verb.CREATE and found.rest.lower().endswith(_MARKDOWN)
        field = field_of(block.text, block.line) if block.kind == "item" else None
        if field is not None and field.key.casefold() in {"file path", "path", "file"}:
            return path_of(field.raw).path.lower().endswith(_MARKDOWN)
    return False


def _end(lines: Sequence[str], start: int, length: int) -> int | None:
    """Returns the line that closes the block from `start` if blocks inside it are named; None when in doubt."""
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
    """Returns whether nothing is left but the end, or a rule and the heading of an action."""
    ahead = [line.strip() for line in lines[at : at + 40] if line.strip()]
    if not ahead:
        return at + 40 >= len(lines)
    heading = ahead[1] if ahead[0] == "---" and len(ahead) > 1 else ahead[0]
    level = len(heading) - len(heading.lstrip("#"))
    return level == 3 and action_heading(heading[level:].strip()) is not None
