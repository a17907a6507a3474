"""An action plan in a model's or a person's text → its value, or why there is none.

Read by the tokens of a CommonMark parser, in two stages: structure, then actions. What a careful reader is sure of is
accepted with a minor finding; what would have to be guessed is refused.
"""

from orchestrator.answers.action_plan_actions import CutAction, actions_of
from orchestrator.answers.action_plan_document import Block, TooManyBlocks, blocks_of
from orchestrator.answers.action_plan_fields import field_of
from orchestrator.answers.action_plan_mend import lengthened
from orchestrator.answers.action_plan_source import Source, is_json, source_of, wrapped
from orchestrator.answers.action_plan_structure import has_parts, has_plan, structure_of
from orchestrator.answers.model import Status
from orchestrator.domain.action_plan import ActionPlan
from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, Where, blocking, major


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
