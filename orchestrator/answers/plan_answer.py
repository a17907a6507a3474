"""An action plan as an answer: the value it makes, beside the JSON that says the same."""

from itertools import accumulate
from typing import Any

from orchestrator.answers.action_plan import PlanExtraction, is_plan, parse_plan
from orchestrator.answers.action_plan_actions import CutAction
from orchestrator.answers.model import Extraction, Repair, Status
from orchestrator.domain.action_plan import ActionPlan

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
