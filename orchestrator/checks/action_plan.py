"""Stage 3 of an action plan: held against the files that are there, and applied to them. Pure.

Actions and pairs are walked through in their order, each against what the earlier ones left. Nothing is changed unless
every check holds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.checks.action_plan_files import create, delete, edit, move
from orchestrator.checks.action_plan_rules import execute, prune, read
from orchestrator.checks.action_plan_world import PlanWorld, Walked
from orchestrator.domain.action_plan import (
    Action,
    ActionPlan,
    Create,
    Delete,
    Edit,
    Execute,
    Move,
    Prune,
    Read,
    is_url,
)
from orchestrator.domain.delivery import Delivery, FileChange
from orchestrator.domain.findings import Finding, Where, blocking, minor
from orchestrator.domain.paths import RepoPath, unsafe_reason

__all__ = ["Applied", "PlanWorld", "apply_plan", "check_plan", "delivery_of", "named_paths", "revert"]

_CHECKS: Mapping[type, Callable[[Any, Walked], Iterable[Finding]]] = {
    Create: create, Edit: edit, Delete: delete, Move: move, Read: read, Prune: prune, Execute: execute,
}  # fmt: skip


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
    """What a plan says and does: all of its changes, or findings and none."""
    walked = Walked(world)
    findings = list(_unknown_context(plan, world))
    for action in plan.actions:
        findings += _CHECKS[type(action)](action, walked)
    if blocking(findings):
        return Applied(findings=tuple(findings), changes={})
    changes = {
        path: text
        for path, text in walked.changes.items()
        if (text != world.texts.get(path) if text is not None else path in world.paths)
    }
    return Applied(findings=tuple(findings), changes=changes)


def check_plan(plan: ActionPlan, world: PlanWorld) -> tuple[Finding, ...]:
    """What is wrong with a plan; nothing major: it can be applied."""
    return apply_plan(plan, world).findings


def revert(changes: Mapping[str, str | None], world: PlanWorld) -> dict[str, str | None]:
    """The changes that give a world back that `changes` were made in."""
    return {path: world.texts.get(path) for path in changes}


def named_paths(plan: ActionPlan) -> tuple[str, ...]:
    """The safe paths that a plan writes, takes away or asks for: what a caller reads as `PlanWorld.texts`."""
    named = [path for action in plan.actions for path in _paths(action)]
    return tuple(dict.fromkeys(path for path in named if unsafe_reason(path) is None))


def delivery_of(applied: Applied, story_id: str, task_id: str) -> Delivery:
    """The changes as a delivery, as if it had come as JSON; empty for a plan that changes nothing."""
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
    """The rule "read before you change" where nobody knows what was read."""
    first = next((one for one in plan.actions if _needs_context(one)), None)
    if world.context is None and first is not None:
        message = "whether what is changed was shown before could not be checked: nobody said what was shown"
        fix = "Name the files that were shown, or look at this by hand."
        yield minor("plan.context_unknown", message, where=Where(line=first.line or None), fix=fix)


def _needs_context(action: Action) -> bool:
    return isinstance(action, Edit | Delete | Move | Prune) or (isinstance(action, Create) and action.overwrite)
