"""An action plan in a model's or a person's text → its value, or why there is none.

Read by the tokens of a CommonMark parser, in two stages: structure, then actions. What a careful reader is sure of is
accepted with a minor finding; what would have to be guessed is refused.

Stage 2 of reading a plan, second half: what stands below the headings becomes actions.

A Markdown file behind a bar that is too short: where its block ends when there can be no doubt.

An action plan as an answer: the value it makes, beside the JSON that says the same.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from rapidfuzz import process

from orchestrator.answers.action_plan_build import Unfinished, body_of, built, place_at
from orchestrator.answers.action_plan_document import (
    Block,
    Heading,
    TooManyBlocks,
    action_heading,
    blocks_of,
    field_of,
    mark_of,
    path_of,
    words,
)
from orchestrator.answers.action_plan_source import (
    Source,
    has_parts,
    has_plan,
    is_json,
    longest_run,
    source_of,
    structure_of,
    wrapped,
)
from orchestrator.answers.result import Extraction, Repair, Status
from orchestrator.core.action_plan import Action, ActionPlan, Verb
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.value import Value

_VERBS = ", ".join(f"`{verb}`" for verb in Verb)


class CutAction(Value):
    """An action that the end of the text cut off."""

    verb: Verb | None
    """None when its heading was cut."""
    path: str
    """As far as it is known: a path, a resource, else ""."""
    line: int


class Actions(NamedTuple):
    """The actions of one plan; not to be used when a finding blocks."""

    actions: tuple[Action, ...]
    cut: CutAction | None
    findings: tuple[Finding, ...]


def actions_of(blocks: Sequence[Block], last: bool, line: int) -> Actions:
    """The actions under `## Action Plan`; `last` says whether the text ends with them, `line` is where they begin."""
    findings: list[Finding] = []
    actions: list[Action] = []
    cut: CutAction | None = None
    groups = _groups(blocks, findings)
    for number, (heading, title, below) in enumerate(groups):
        ends = last and number == len(groups) - 1
        body = body_of(heading, title, below, ends)
        findings += _form(heading, title)
        if number + 1 < len(groups):
            findings += _separated(below, groups[number + 1][1])
        made = built(body)
        findings += body.findings
        if isinstance(made, Unfinished):
            cut = CutAction(verb=heading.verb, path=made.path, line=title.line)
        elif made is not None:
            actions.append(made)
    cut = cut or _cut_heading(blocks, last, findings)
    if not groups and cut is None and not blocking(findings):
        fix = f"Write each action as `### ` and one of {_VERBS}."
        findings.append(major("plan.no_actions", "the plan has no action", where=place_at(line), fix=fix))
    return Actions(tuple(actions), cut, tuple(findings))


Group = tuple[Heading, Block, list[Block]]


def _groups(blocks: Sequence[Block], findings: list[Finding]) -> list[Group]:
    """The blocks by action; headings that are none are told, with what stands below them left aside."""
    groups: list[Group] = []
    below: list[Block] | None = None
    aside: list[Block] = []
    for block in blocks:
        heading = action_heading(block.text) if block.kind == "heading" else None
        if heading is not None:
            below = []
            groups.append((heading, block, below))
        elif _is_lost(block):
            findings.append(_unknown(block))
            below = aside
        elif below is None:
            findings += _early(block)
        else:
            below.append(block)
    return groups


def _early(block: Block) -> Iterator[Finding]:
    """What is said of a block before the first action."""
    if block.kind == "fence":
        fix = "Put every block below the heading of its action."
        yield major("plan.block", "a code block stands before the first action", where=place_at(block.line), fix=fix)
    elif block.kind != "rule":
        message = "words before the first action are no part of the plan"
        yield minor("plan.stray", message, where=place_at(block.line), fix="Say such things in `## Rationale`.")


def _is_lost(block: Block) -> bool:
    """Whether a heading names no action, or words that are no heading can only be meant as one."""
    if block.kind == "heading":
        return block.level <= 3 and mark_of(block.text) is None
    heading = action_heading(block.text) if block.kind in {"paragraph", "item"} else None
    return heading is not None and (heading.exact or block.text.strip("*_`: ") == heading.verb)


def _unknown(block: Block) -> Finding:
    said = words(block.text)
    near = process.extractOne(said.split(" ")[0].upper(), list(Verb), score_cutoff=70) if said else None
    hint = f"; is `{near[0]}` meant?" if near and near[1] < 100 else ""
    message = f"`{said[:60]}` is no heading of an action{hint}"
    fix = f"Write each action as a heading `### ` with one of {_VERBS} and nothing else."
    return major("plan.verb", message, where=place_at(block.line), fix=fix)


def _form(heading: Heading, title: Block) -> Iterator[Finding]:
    if not heading.exact or title.level != 3:
        message = f"`{'#' * title.level} {title.text[:60]}` was read as the action {heading.verb}"
        yield minor("plan.heading_form", message, where=place_at(title.line), fix=f"Write `### `{heading.verb}``.")


def _separated(below: Sequence[Block], following: Block) -> Iterator[Finding]:
    if not any(block.kind == "rule" for block in below):
        message = "there is no `---` between two actions"
        yield minor("plan.separator", message, where=place_at(following.line), fix="Write `---` between two actions.")


def _cut_heading(blocks: Sequence[Block], last: bool, findings: list[Finding]) -> CutAction | None:
    """A verb that the end of the text cut: its finding goes, as nobody wrote it."""
    end = blocks[-1] if blocks else None
    if not last or end is None or end.kind != "heading" or end.level != 3:
        return None
    begun = end.text.strip("`").upper()
    if begun in Verb.__members__ or not any(verb.startswith(begun) for verb in Verb):
        return None
    findings[:] = [one for one in findings if not (one.code == "plan.verb" and one.where.line == end.line)]
    return CutAction(verb=None, path="", line=end.line)


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
    """The plan in a text: whole, cut off, or refused with findings. Never raises; linear in the text.

    Whether a text that seems whole was cut off between two actions only its sender knows: look at the stop reason.
    """
    source = source_of(text)
    if blocking(source.findings):
        return _refused(source.findings)
    try:
        blocks = _without_thoughts(blocks_of(source.text, source.first_line))
        if has_plan(blocks) or (inner := wrapped(source, blocks)) is None:
            return _mended(source, blocks)
        readings = [_mended(one, blocks_of(one.text, one.first_line)) for one in inner]
    except TooManyBlocks:
        fix = "Answer with one action plan and nothing else."
        return _refused((*source.findings, major("plan.too_many", "the text has too many parts to be a plan", fix=fix)))
    return next((one for one in readings if not blocking(one.findings)), readings[0])


def is_plan(text: str) -> bool:
    """Whether a reply is meant as an action plan, whole or not: it has its sections. Cheap where it is none."""
    told = text.casefold()
    if ("action plan" not in told and "rationale" not in told) or is_json(text):
        return False
    source = source_of(text)
    try:
        blocks = _without_thoughts(blocks_of(source.text, source.first_line))
        return has_plan(blocks) or wrapped(source, blocks) is not None
    except TooManyBlocks:
        return False


def _refused(findings: tuple[Finding, ...]) -> PlanExtraction:
    return PlanExtraction(plan=None, status=Status.REFUSED, findings=findings)


def _without_thoughts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """What stands behind the last line that ends a model's thoughts."""
    ends = [
        at
        for at, block in enumerate(blocks)
        if block.kind == "paragraph" and block.text.rstrip().endswith(("</think>", "</thinking>", "</reasoning>"))
    ]
    return blocks[ends[-1] + 1 :] if ends else blocks


def _mended(source: Source, blocks: tuple[Block, ...]) -> PlanExtraction:
    """The reading as it stands; where bars are too short and it is certain what they mean, with longer ones."""
    found = _read(source, blocks)
    if not any(finding.code == "plan.fence_short" for finding in blocking(found.findings)):
        return found
    longer = lengthened(source, blocks)
    if longer is None:
        return found
    again = _read(longer, _without_thoughts(blocks_of(longer.text, longer.first_line)))
    return found if blocking(again.findings) else again


def _read(source: Source, blocks: tuple[Block, ...]) -> PlanExtraction:
    if not has_parts(blocks):
        return _refused((*source.findings, _none(blocks)))
    structure = structure_of(blocks)
    told = _merged((*source.findings, *structure.findings))
    if blocking(told):
        return _refused(told)
    begins = structure.actions[0].line if structure.actions else structure.rationale[1]
    found = actions_of(structure.actions, structure.last, begins)
    told = _merged((*told, *found.findings))
    if blocking(told):
        return _refused(told)
    plan = ActionPlan(
        title=structure.title,
        metadata={one.key: one.raw for item in structure.metadata if (one := field_of(item.text, item.line))},
        rationale=_lines(source, *structure.rationale),
        lists=structure.lists,
        actions=found.actions,
    )
    if found.cut is not None:
        return PlanExtraction(
            plan=plan, status=Status.TRUNCATED, findings=(*told, _truncated(found.cut)), cut=found.cut
        )
    return PlanExtraction(plan=plan, status=Status.REPAIRED if told else Status.OK, findings=told)


def _none(blocks: tuple[Block, ...]) -> Finding:
    where = Where(line=blocks[0].line) if blocks else Where()
    fix = "Answer with one `# Title`, `## Rationale`, `## Action Plan`, and below it the actions."
    return major("plan.none", "the text holds no action plan", where=where, fix=fix)


def _truncated(cut: CutAction) -> Finding:
    what = f"in the action {cut.verb} {cut.path}".rstrip() if cut.verb else "in the heading of an action"
    fix = "Send what is missing; the actions before it were kept."
    return major("plan.truncated", f"the plan was cut off {what}", where=Where(line=cut.line), fix=fix)


def _lines(source: Source, first: int, behind: int) -> str:
    lines = source.text.split("\n")[first - source.first_line : behind - source.first_line]
    return "\n".join(lines).strip()


def _merged(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings that say the same as one, which names the other lines."""
    kept: dict[tuple[str, str], Finding] = {}
    lines: dict[tuple[str, str], list[int]] = {}
    for finding in findings:
        key = (finding.code, finding.message)
        kept.setdefault(key, finding)
        lines.setdefault(key, []).append(finding.where.line or 0)
    return tuple(
        finding
        if len(lines[key]) == 1
        else finding.model_copy(update={"message": f"{finding.message} (also at {_named(lines[key][1:])})"})
        for key, finding in sorted(kept.items(), key=lambda item: item[1].where.line or 0)
    )


def _named(lines: list[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:8])
    return f"line {shown}" + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")


PLAN_LAYER = "action_plan"
"""Layer of an extraction that was read as an action plan."""
_PLAN, _CUT = "action_plan", "cut"


def plan_answer(text: str) -> Extraction | None:
    """What a text holds that is meant as an action plan; None for any other. Never raises.

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
    return Extraction(
        value=value,
        status=found.status,
        layer=PLAN_LAYER if value is not None else "none",
        repairs=_repairs(text, found),
        complete=found.status in {Status.OK, Status.REPAIRED},
        candidates=1,
        problems=found.findings,
    )


def plan_in(value: Any) -> ActionPlan | None:
    """The plan in an extracted value, None where the answer came as JSON."""
    return ActionPlan.model_validate(value[_PLAN]) if isinstance(value, dict) and _PLAN in value else None


def cut_in(value: Any) -> CutAction | None:
    """The action that a plan's end cut off; None when none was, or it is not known."""
    cut = value.get(_CUT) if isinstance(value, dict) and _PLAN in value else None
    return CutAction.model_validate(cut) if cut else None


def _repairs(text: str, found: PlanExtraction) -> tuple[Repair, ...]:
    starts = list(accumulate(map(len, text.split("\n")), lambda at, length: at + length + 1, initial=0))
    return tuple(
        Repair(
            kind=finding.code.removeprefix("plan."),
            offset=starts[min((finding.where.line or 1) - 1, len(starts) - 1)],
            before="",
            after="",
        )
        for finding in found.repairs
    )
