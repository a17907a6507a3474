"""One status enum per thing that has a life, one transition table, one error for breaking it."""

from enum import StrEnum


class StoryStatus(StrEnum):
    """The life of a story in a sprint."""

    PENDING = "pending"
    EXECUTING = "executing"
    DONE = "done"
    NEEDS_ATTENTION = "needs_attention"
    FAILED = "failed"
    BLOCKED = "blocked"
    CONFLICTED = "conflicted"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether this is an outcome: only `reset` leaves it."""
        return not TRANSITIONS[self]

    @property
    def cell(self) -> str:
        """The word the original CSV uses for it in `Execution_Status`."""
        return {StoryStatus.DONE: "completed", StoryStatus.NEEDS_ATTENTION: "completed_with_failures"}.get(
            self, self.value
        )


TRANSITIONS: dict[StoryStatus, frozenset[StoryStatus]] = {
    StoryStatus.PENDING: frozenset({StoryStatus.EXECUTING, StoryStatus.BLOCKED, StoryStatus.CANCELLED}),
    StoryStatus.EXECUTING: frozenset(
        {
            StoryStatus.DONE,
            StoryStatus.NEEDS_ATTENTION,
            StoryStatus.FAILED,
            StoryStatus.CONFLICTED,
            StoryStatus.CANCELLED,
        }
    ),
    StoryStatus.DONE: frozenset(),
    StoryStatus.NEEDS_ATTENTION: frozenset(),
    StoryStatus.FAILED: frozenset(),
    StoryStatus.BLOCKED: frozenset(),
    StoryStatus.CONFLICTED: frozenset(),
    StoryStatus.CANCELLED: frozenset(),
}


class IllegalTransition(ValueError):
    """A status change the transition table does not hold: a defect of ours, never of the input."""

    def __init__(self, before: StoryStatus, after: StoryStatus) -> None:
        super().__init__(f"a story cannot go from {before} to {after}")
        self.before, self.after = before, after


def step_to(before: StoryStatus, after: StoryStatus) -> StoryStatus:
    """Return `after` if the table allows the change, else raise IllegalTransition."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(before, after)
    return after


class TaskStatus(StrEnum):
    """How far a task of a story has come."""

    PENDING = "pending"
    DONE = "done"
    PARTIAL = "partial"
    """Valid files were committed, but the last delivery did not satisfy every check, or its command failed."""
    UNAPPROVED = "unapproved"
    """Its delivery was committed, but its reviews ended without approval, or before everything was read."""
    FAILED = "failed"
