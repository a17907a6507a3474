"""What became of the actions of a plan that was carried out."""

from enum import StrEnum

from orchestrator.domain.action_plan import Verb
from orchestrator.domain.base import Value


class ActionState(StrEnum):
    """How one action ended."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class ActionResult(Value):
    """One action of a plan."""

    number: int
    """1-based."""
    verb: Verb
    subject: str
    """Path, resource or first line of the command."""
    line: int = 0
    """Of its heading in the plan."""
    state: ActionState
    reason: str = ""
    """Why it was skipped, or how it failed; of a chain of commands, which one."""
    output: str = ""
    """What a command printed."""


class ExecutionReport(Value):
    """All actions of a plan in their order."""

    title: str
    actions: tuple[ActionResult, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(action.state is not ActionState.FAILED for action in self.actions)
