"""An action plan as a persona's answer: the delivery or the suite it comes to, as if it had come as JSON."""

from collections.abc import Collection, Sequence
from typing import Any

from orchestrator.checks.action_plan import PlanWorld, apply_plan, delivery_of
from orchestrator.checks.delivery import read_delivery
from orchestrator.domain.action_plan import ActionPlan, Create
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Where, blocking, major

TEST_CASES = "test cases"
"""Section of a suite's plan that says which test shows which criterion."""


def read_plan_delivery(
    plan: ActionPlan, world: PlanWorld, story_id: str, task_id: str, examples: frozenset[str] = frozenset()
) -> tuple[Delivery | None, list[Finding]]:
    """What the plan makes of the files that were shown; None, with findings, when it cannot be applied whole.

    The texts go through what JSON's files go through (`read_delivery`); `examples` are the prompt's own.
    """
    applied = apply_plan(plan, world)
    where = Where(story=story_id, task=task_id)
    findings = [_placed(finding, where) for finding in applied.findings]
    if blocking(findings):
        return None, findings
    meant = delivery_of(applied, story_id, task_id).model_copy(update={"commands": plan.commands})
    if not meant.files and not meant.removed and not meant.commands:
        fix = "CREATE or EDIT at least one file of the task."
        return None, [*findings, major("delivery.no_files", "the plan changes no file", where=where, fix=fix)]
    if not meant.files:
        return meant, findings
    texts = {"files": {change.path: change.content for change in meant.files}}
    delivery, said = read_delivery(texts, story_id, task_id, examples)
    if delivery is None:
        return None, [*findings, *said]
    return meant.model_copy(update={"files": delivery.files}), [*findings, *said]


def suite_value(plan: ActionPlan, older: Collection[str] = ()) -> tuple[dict[str, Any] | None, Sequence[Finding]]:
    """The suite in a plan with one CREATE, and one more per file of `older` that it rewrites, as its JSON would be."""
    created = [action for action in plan.actions if isinstance(action, Create)]
    own = [file for file in created if file.path not in older] or created[:1]
    if len(own) != 1 or len(plan.actions) != len(created):
        verbs = ", ".join(f"`{action.verb}`" for action in plan.actions) or "no action"
        fix = "Answer with one plan that has one CREATE, the test file, and nothing else under `## Action Plan`."
        return None, [major("suite.shape", f"a suite is one CREATE; the plan has {verbs}", fix=fix)]
    file = own[0]
    cases = [_case(item) for item in plan.lists.get(TEST_CASES, ())]
    changed = [{"path": one.path, "content": one.content} for one in created if one is not file]
    value = {"test_file": file.path, "test_content": file.content, "test_cases": cases}
    return {**value, **({"changed_tests": changed} if changed else {})}, ()


def _case(item: str) -> dict[str, str]:
    """`` `name`: criterion `` as a test case."""
    if item.startswith("`") and "`" in item[1:]:
        name, _, rest = item[1:].partition("`")
    else:
        name, _, rest = item.partition(":")
    return {"name": name.strip(), "criterion": rest.strip().lstrip(":-–— ").strip()}


def _placed(finding: Finding, where: Where) -> Finding:
    return finding.model_copy(
        update={"where": finding.where.model_copy(update={"story": where.story, "task": where.task})}
    )
