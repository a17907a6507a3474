"""Computes what a run would do and could cost, without doing anything. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from orchestrator.checks.backlog import all_problems, without_criteria
from orchestrator.core.finding import Finding
from orchestrator.core.story import BacklogContent, Story, closers, done_rows, waves
from orchestrator.core.value import Value
from orchestrator.settings import Settings
from orchestrator.sprint.selection import needs_within, outside_dependencies

EXPECTED_TASKS = 3
"""Of a story that nobody has planned yet."""


class JudgedTasks(Value):
    """What the rules say about a person's plan."""

    count: int | None
    """Number of tasks; None where the architect follows the text."""
    findings: tuple[Finding, ...] = ()


class SpendingEstimate(Value):
    """Tokens and money of the expected calls."""

    input_tokens: int
    output_tokens: int
    measured: bool
    """Whether the tokens of a call are those of the last sprints."""
    usd: float | None
    """None where a price is unknown, or no model is named."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is unknown."""


class CallEstimate(Value):
    """Paid calls of the whole run."""

    expected: int
    """When every answer is right at once."""
    maximal: int
    """`budget.calls_per_story` for each story."""


class DryRun(Value):
    """`as_json()` is the object `--dry-run --json` prints."""

    stories: int
    waves: tuple[tuple[str, ...], ...]
    """Each wave has, in backlog order, the stories whose dependencies are all in earlier waves."""
    problems: tuple[Finding, ...]
    """By line; one of severity major or worse means that the run would not start."""
    calls: CallEstimate
    tasks: int = Field(0, exclude=True)
    """Expected of all stories together."""
    closed: dict[str, str] = {}
    """Row that is not run → the story that closes it."""
    spending: SpendingEstimate | None = None
    missing: str = ""
    """What a run would not begin without: says which model, key or script; "" when all are there."""

    def as_json(self) -> dict[str, Any]:
        """Returns a JSON object without what has nothing to tell."""
        empty = {name for name in ("closed", "spending", "missing") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude=empty)


def expected_calls(settings: Settings, tasks: int) -> int:
    """Returns a story's calls when every answer is right at once: a plan, a suite, for each task a delivery and its
    reviews."""
    return 2 + tasks * (1 + len(settings.review.names))


def dry_run(
    content: BacklogContent,
    *,
    stories: Sequence[Story] | None,
    settings: Settings,
    strict: bool = False,
    plans: Mapping[str, JudgedTasks] | None = None,
) -> DryRun:
    """Plans a run of `stories`, or of all rows when None. Never raises for the backlog's content.

    Rows that are completed, and rows that are closed with another story, are not run: they are neither counted nor in a
    wave, and the dependents of a closed row wait for the closer.

    Dependencies outside the selected rows count as met; those not completed are findings (major when `strict`).
    On a cycle `waves` has the stories that can be ordered. `plans` are people's plans by story: they replace the
    architect's planning.
    """
    plans = plans or {}
    closer_of = closers(content.stories)
    left_out = closer_of.keys() | done_rows(content.stories)
    rows = [story for story in (content.stories if stories is None else stories) if story.id not in left_out]
    needs = needs_within(content.stories, frozenset(story.id for story in rows))
    closed = {row: closer for row, closer in closer_of.items() if closer in needs}
    layers, _ = waves(needs, needs)
    counts = [plans[story].count if story in plans else None for story in needs]
    tasks = [EXPECTED_TASKS if count is None else count for count in counts]
    cap = settings.budget.calls_per_story
    return DryRun(
        stories=len(rows),
        waves=layers,
        problems=(
            *all_problems(content),
            *outside_dependencies(content, rows, strict=strict),
            *without_criteria(rows, content.source),
            *(finding for story in needs if story in plans for finding in plans[story].findings),
        ),
        calls=CallEstimate(
            expected=sum(min(expected_calls(settings, count), cap) for count in tasks), maximal=cap * len(tasks)
        ),
        tasks=sum(tasks),
        closed=closed,
    )
