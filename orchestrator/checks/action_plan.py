"""An action plan held against the files that are there, and what it comes to: changes, a delivery or a suite. Pure.

Actions and pairs are applied in their order, each to what the earlier ones left. Nothing is changed unless every check
holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from orchestrator.checks.action_plan_files import PlanWorld, Walked, create, delete, edit, execute, move, prune, read
from orchestrator.checks.breakdown_rules import MAX_FILES
from orchestrator.checks.delivery import read_delivery
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Prune, Read, is_url
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.paths import RepoPath, unsafe_reason

_CHECKS: Mapping[type, Callable[[Any, Walked], Iterable[Finding]]] = {
    Create: create, Edit: edit, Delete: delete, Move: move, Read: read, Prune: prune, Execute: execute,
}  # fmt: skip


_MOST_REFUSED = 20
"""Refusals after which a plan is looked at no further: for each the nearest file or text is looked for."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """What a plan comes to."""

    findings: tuple[Finding, ...]
    changes: Mapping[str, str | None]
    """Path → its new text, None for a file that is taken away. Empty when a finding blocks, and for what changes
    nothing in the end."""

    @property
    def valid(self) -> bool:
        """Whether every check holds."""
        return not blocking(self.findings)


def apply_plan(plan: ActionPlan, world: PlanWorld) -> Applied:
    """Returns what a plan says and does: all of its changes, or findings and none."""
    count = sum(len(action.pairs) or 1 if isinstance(action, Edit) else 1 for action in plan.actions)
    if count > MAX_FILES:
        fix = "Change what the task asks for; files that a program makes are made by a command."
        message = f"the plan has {count} actions and FIND blocks, more than {MAX_FILES}"
        return Applied(findings=(major("plan.too_long", message, fix=fix),), changes={})
    walked = Walked(world)
    findings = list(_unknown_context(plan, world))
    said = (finding for action in plan.actions for finding in _CHECKS[type(action)](action, walked))
    refused = 0
    for finding in said:
        findings.append(finding)
        refused += finding.severity.blocks
        if refused == _MOST_REFUSED:
            break
    if blocking(findings):
        return Applied(findings=tuple(findings), changes={})
    changes = {
        path: text
        for path, text in walked.changes.items()
        if (text != world.texts.get(path) if text is not None else path in world.paths)
    }
    return Applied(findings=tuple(findings), changes=changes)


def named_paths(plan: ActionPlan) -> tuple[str, ...]:
    """Returns the safe paths that a plan writes, takes away or asks for: what a caller reads as `PlanWorld.texts`."""
    named = [path for action in plan.actions for path in _paths(action)]
    return tuple(dict.fromkeys(path for path in named if unsafe_reason(path) is None))


def delivery_of(applied: Applied, story_id: str, task_id: str) -> Delivery:
    """Returns the changes as a delivery, as if it had come as JSON; empty for a plan that changes nothing."""
    changes = {RepoPath(path): text for path, text in applied.changes.items()}
    return Delivery(
        story_id=story_id,
        task_id=task_id,
        files=tuple(FileChange(path=path, content=text) for path, text in changes.items() if text is not None),
        removed=tuple(path for path, text in changes.items() if text is None),
    )


def _paths(action: Action) -> tuple[str, ...]:
    if isinstance(action, Move):
        return action.path, action.target
    if isinstance(action, Read | Prune):
        return () if is_url(action.resource) else (action.resource,)
    return () if isinstance(action, Execute) else (action.path,)


def _unknown_context(plan: ActionPlan, world: PlanWorld) -> Iterable[Finding]:
    """Returns the finding that "read before you change" could not be checked."""
    first = next((one for one in plan.actions if _needs_context(one)), None)
    if world.context is None and first is not None:
        message = "whether what is changed was shown before could not be checked: nobody said what was shown"
        fix = "Name the files that were shown, or look at this by hand."
        yield minor("plan.context_unknown", message, where=Where(line=first.line or None), fix=fix)


def _needs_context(action: Action) -> bool:
    return isinstance(action, Edit | Delete | Move | Prune) or (isinstance(action, Create) and action.overwrite)


TEST_CASES = "test cases"
"""Section of a suite's plan that says which test shows which criterion."""


def read_plan_delivery(
    plan: ActionPlan, world: PlanWorld, story_id: str, task_id: str
) -> tuple[Delivery | None, list[Finding]]:
    """Returns what the plan makes of the files that were shown; None, with findings, when it cannot be applied whole.

    The texts go through what JSON's files go through (`read_delivery`).
    """
    applied = apply_plan(plan, world)
    where = Where(story=story_id, task=task_id)
    findings = [finding.placed(story=story_id, task=task_id) for finding in applied.findings]
    if blocking(findings):
        return None, findings
    said_of_it = {"commands": plan.commands, "title": plan.title, "rationale": plan.rationale}
    meant = delivery_of(applied, story_id, task_id).model_copy(update=said_of_it)
    if not meant.files and not meant.removed and not meant.commands:
        fix = "CREATE or EDIT at least one file of the task."
        return None, [*findings, major("delivery.no_files", "the plan changes no file", where=where, fix=fix)]
    if not meant.files:
        return meant, findings
    texts = {"files": {change.path: change.content for change in meant.files}}
    delivery, said = read_delivery(texts, story_id, task_id)
    if delivery is None:
        return None, [*findings, *said]
    return meant.model_copy(update={"files": delivery.files}), [*findings, *said]


def suite_value(
    plan: ActionPlan,
    older: Mapping[str, str] = MappingProxyType({}),
    covered: Mapping[str, str] = MappingProxyType({}),
    so_far: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Any] | None, Sequence[Finding]]:
    """Returns the suite in a plan with one CREATE, or EDITs of a file of `covered`, as JSON; and a CREATE or EDITs per
    file of `older` that it changes. The suite `so_far` stays where the plan changes nothing else.

    All are paths and texts. None, with findings, when the plan has other actions or an EDIT that does not apply.
    """
    created = [action for action in plan.actions if isinstance(action, Create)]
    texts = {**older, **covered}
    edited = [action for action in plan.actions if isinstance(action, Edit) and action.path in texts]
    paths = [*dict.fromkeys((*(file.path for file in created), *(file.path for file in edited)))]
    own = [path for path in paths if path not in older] or [*so_far] or paths[:1]
    if len(own) != 1 or len(plan.actions) != len(created) + len(edited):
        verbs = ", ".join(f"`{action.verb}`" for action in plan.actions) or "no action"
        place = next(iter(covered), "")
        what = f"EDITs of `{place}`, where the tests go" if place else "one CREATE, the test file"
        also = ", ".join(f"`{path}`" for path in older)
        fix = f"Answer with one plan that has under `## Action Plan` {what}, and nothing else"
        fix += f" but EDITs of {also}." if also else "."
        return None, [major("suite.shape", f"a suite is one test file; the plan has {verbs}", fix=fix)]
    # A long file may have been shown in part: what FIND names exactly once is known well enough.
    world = PlanWorld(paths=frozenset(texts), texts=texts, context=frozenset(texts))
    applied = apply_plan(plan.model_copy(update={"actions": tuple(edited)}), world)
    if not applied.valid:
        return None, applied.findings
    after = {file.path: file.content for file in created} | {
        path: text for path, text in applied.changes.items() if text is not None
    }
    cases = [_case(item) for item in plan.lists.get(TEST_CASES, ())]
    value = {"test_file": own[0], "test_content": after.pop(own[0], so_far.get(own[0], "")), "test_cases": cases}
    changed = [{"path": path, "content": text} for path, text in after.items()]
    return {**value, **({"changed_tests": changed} if changed else {})}, ()


def _case(item: str) -> dict[str, str]:
    """`` `name`: criterion `` as a test case."""
    if item.startswith("`") and "`" in item[1:]:
        name, _, rest = item[1:].partition("`")
    else:
        name, _, rest = item.partition(":")
    return {"name": name.strip(), "criterion": rest.strip().lstrip(":-–— ").strip()}
