"""What a run would do and could cost, told without doing anything (DESIGN 7, Dry run). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.checks.backlog import all_problems
from orchestrator.domain.base import Value
from orchestrator.domain.closing import closers, effective_needs
from orchestrator.domain.findings import Finding
from orchestrator.domain.graph import waves
from orchestrator.domain.review import REPLIES
from orchestrator.domain.story import BacklogContent, Story
from orchestrator.settings import Settings
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
    """When every loop uses its whole budget; no run makes more."""


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

    def as_json(self) -> dict[str, Any]:
        """JSON-able; `closed` is there only when rows are closed with others."""
        return self.model_dump(mode="json", exclude=None if self.closed else {"closed"})


def dry_run(
    content: BacklogContent,
    *,
    stories: Sequence[Story] | None,
    settings: Settings,
    strict: bool = False,
    plans: Mapping[str, JudgedTasks] | None = None,
) -> DryRun:
    """Look at `stories`, or at all rows when None. Never raises for what the backlog holds.

    Rows that are closed with another story are not run: they are neither counted nor in a wave, and what waits for them
    waits for their closer.

    Dependencies outside the rows looked at count as met; those not completed are findings (major when `strict`).
    On a cycle `waves` holds what can be ordered. `plans` are those that people bring, by story: they are read, the
    architect plans nothing there.
    """
    plans = plans or {}
    closer_of = closers(content.stories)
    rows = [story for story in (content.stories if stories is None else stories) if story.id not in closer_of]
    wanted = effective_needs(content.stories)
    needs = {story.id: wanted[story.id] for story in rows}
    closed = {row: closer for row, closer in closer_of.items() if closer in needs}
    layers, _ = waves(needs, needs)
    return DryRun(
        stories=len(rows),
        waves=layers,
        problems=(
            *all_problems(content),
            *outside_dependencies(content, rows, strict=strict),
            *(finding for story in needs if story in plans for finding in plans[story].findings),
        ),
        calls=CallEstimate(
            expected=sum(expected_calls(settings, plans.get(story)) for story in needs),
            maximal=sum(maximal_calls(settings, plans.get(story)) for story in needs),
        ),
        closed=closed,
    )


def expected_calls(settings: Settings, plan: JudgedTasks | None = None) -> int:
    """Calls of one story that goes right at once: breakdown, or a person's plan read; one delivery per task and one
    review of each reviewer; suite."""
    return 1 + _tasks(settings, plan) * (1 + len(settings.review.names)) + 1


def _tasks(settings: Settings, plan: JudgedTasks | None) -> int:
    return settings.plan.expected_tasks if plan is None else plan.count


def maximal_calls(settings: Settings, plan: JudgedTasks | None = None) -> int:
    """Calls one story can make at most: what the nested policies allow (DESIGN 5.5), at most the story's budget.

    transport = provider.max_attempts
    answer    = (1 + answer.repair_requests + answer.max_attempts) x transport
    delivery  = (build.max_attempts + answer.repair_requests) x transport
    plan      = plan.max_iterations x answer
    review    = reviewers x 2 (without a verdict once more) x transport
    task      = test.max_attempts x delivery + review.max_iterations x review + (review.max_iterations - 1) x delivery
    attempt   = answer (suite; written anew once at most) + answer (analysis)
    story     = plan + plan.expected_tasks x task + test.max_attempts x attempt + 2 x transport (amendment, merge)

    Reviews of a task are counted over its whole story, not anew with each run of the tests. A person's plan costs one
    answer, beside the story's budget, and its tasks are counted.
    """
    transport = settings.provider.max_attempts
    repair = settings.answer.repair_requests
    answer = (1 + repair + settings.answer.max_attempts) * transport
    delivery = (settings.build.max_attempts + repair) * transport
    attempts, reviews = settings.test.max_attempts, settings.review.max_iterations
    review = len(settings.review.names) * REPLIES * transport
    task = attempts * delivery + (reviews * review + (reviews - 1) * delivery if review else 0)
    plans = settings.plan.max_iterations if plan is None else 0
    story = plans * answer + _tasks(settings, plan) * task + attempts * 2 * answer + 2 * transport
    return min(story, settings.budget.calls_per_story) + (answer if plan is not None else 0)
