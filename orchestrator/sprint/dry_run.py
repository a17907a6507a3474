"""What a run would do and could cost, told without doing anything. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orchestrator.checks.backlog import all_problems
from orchestrator.checks.backlog_needs import LOOKED_FOR, needs_told
from orchestrator.domain.base import Value
from orchestrator.domain.closing import closers, effective_needs
from orchestrator.domain.findings import Finding
from orchestrator.domain.graph import waves
from orchestrator.domain.story import BacklogContent, Story
from orchestrator.settings import Settings
from orchestrator.sprint.calls import capped, expected_calls, explained, most_calls
from orchestrator.sprint.selection import outside_dependencies


class JudgedTasks(Value):
    """A person's plan as the rules alone read it."""

    count: int
    """Its tasks."""
    findings: tuple[Finding, ...] = ()


class CallEstimate(Value):
    """Paid calls of the whole run."""

    expected: int
    """When every answer is right at once."""
    maximal: int
    """When every loop uses its whole budget, at most the stories' own; see sprint/calls.py."""


class DryRun(Value):
    """`as_json()` is the object `--dry-run --json` prints."""

    stories: int
    waves: tuple[tuple[str, ...], ...]
    """Each wave holds, in backlog order, the stories whose dependencies all stand in earlier waves."""
    problems: tuple[Finding, ...]
    """By line; one of severity major or worse means that the run would not start."""
    calls: CallEstimate
    closed: dict[str, str] = {}
    """Row that is not run itself → the story that closes it."""
    explained: tuple[str, str]
    """What the expected and the maximal calls are made of, for people."""

    def as_json(self) -> dict[str, Any]:
        """JSON-able; `closed` is there only when rows are closed with others."""
        return self.model_dump(mode="json", exclude={"explained"} | (set() if self.closed else {"closed"}))


def dry_run(
    content: BacklogContent,
    *,
    stories: Sequence[Story] | None,
    settings: Settings,
    strict: bool = False,
    plans: Mapping[str, JudgedTasks] | None = None,
    programs: Collection[str] = LOOKED_FOR,
) -> DryRun:
    """Look at `stories`, or at all rows when None. Never raises for what the backlog holds.

    Rows that are closed with another story are not run: they are neither counted nor in a wave, and what waits for them
    waits for their closer.

    Dependencies outside the rows looked at count as met; those not completed are findings (major when `strict`).
    On a cycle `waves` holds what can be ordered. `plans` are those that people bring, by story: they are read, the
    architect plans nothing there. `programs` are those of `LOOKED_FOR` that this machine has.
    """
    plans = plans or {}
    closer_of = closers(content.stories)
    rows = [story for story in (content.stories if stories is None else stories) if story.id not in closer_of]
    wanted = effective_needs(content.stories)
    needs = {story.id: wanted[story.id] for story in rows}
    closed = {row: closer for row, closer in closer_of.items() if closer in needs}
    layers, _ = waves(needs, needs)
    tasks = [plans[story].count if story in plans else None for story in needs]
    return DryRun(
        stories=len(rows),
        waves=layers,
        problems=(
            *all_problems(content),
            *outside_dependencies(content, rows, strict=strict),
            *needs_told(rows, settings.environment, programs),
            *(finding for story in needs if story in plans for finding in plans[story].findings),
        ),
        calls=CallEstimate(
            expected=sum(capped(expected_calls(settings, brought), settings) for brought in tasks),
            maximal=sum(capped(most_calls(settings, brought), settings) for brought in tasks),
        ),
        closed=closed,
        explained=explained(settings, tasks),
    )
