"""Computes what a run would do and could cost, without doing anything. Pure.

Estimates a story's model calls: when all goes well, and when every loop uses its whole budget.

This is the one place where the nested budgets are multiplied. A call is one request that ended, with a reply or
an error; `budget.calls_per_story` counts the same.

    request   provider.max_attempts
    looks     look.max_per_turn, replies that only ask to be shown files
    answer    (1 + answer.max_attempts + answer.repair_requests + looks) x request
    delivery  (build.max_attempts + answer.repair_requests + looks) x request
    review    reviewers x (2 (one without a verdict is asked for once more) + looks) x request

    reading   answer without looks, when a person supplied a plan
    plans     plan.max_iterations x answer, when no person did
    builds    tasks x (test.max_attempts + review.max_iterations - 1) x delivery
    reviews   tasks x review.max_iterations x review
    suites    3 x answer (asked for once more when it shows nothing of the change, and when it is at fault); 2 x when
              test.max_attempts is 1
    analyses  (test.max_attempts - 1) x answer; the last red run ends the attempts
    single    (amendment.max_per_story + 1) x (1 + looks) x request: amendments of the contract, one resolution of a
              merge

Iterations are a persona's own where it has some; of several reviewers the most count.

Requests for missing tasks and continuations are replies of the answer that they belong to; a stronger model answers in
place of the usual one. The reviews of a task are counted over its whole story: it is built once for each run of the
tests, and once for each review that sends it back. With review off both terms fall away.

Only `budget.calls_per_story` bounds what no other setting does: tasks beyond `plan.expected_tasks`, and what a person
asks for (another plan, another resolution).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.checks.backlog import all_problems, without_criteria
from orchestrator.core.delivery import REPLIES
from orchestrator.core.finding import Finding
from orchestrator.core.story import BacklogContent, Story, closers, done_rows, waves
from orchestrator.core.value import Value, counted
from orchestrator.settings import Policies, Settings
from orchestrator.sprint.selection import needs_within, outside_dependencies


class StoryCalls(Value):
    """Calls of one story, by purpose."""

    reading: int = 0
    plans: int = 0
    builds: int = 0
    reviews: int = 0
    suites: int = 0
    analyses: int = 0
    single: int = 0
    """Amendments and the resolution of a merge."""

    @property
    def total(self) -> int:
        """Returns the sum."""
        return sum(self.model_dump().values())


def expected_calls(settings: Settings, plan_tasks: int | None = None) -> StoryCalls:
    """Returns the calls when every answer is right at once. `plan_tasks`: of a person's plan, if there is one."""
    tasks = settings.plan.expected_tasks if plan_tasks is None else plan_tasks
    return StoryCalls(
        reading=int(plan_tasks is not None),
        plans=int(plan_tasks is None),
        builds=tasks,
        reviews=tasks * len(settings.review.names),
        suites=1,
    )


def most_calls(settings: Settings, plan_tasks: int | None = None) -> StoryCalls:
    """Returns the calls when every loop uses its whole budget, ignoring the story's cap. `plan_tasks`: see above."""
    tasks = settings.plan.expected_tasks if plan_tasks is None else plan_tasks
    request, attempts = settings.provider.max_attempts, settings.test.max_attempts
    repair, looks = settings.answer.repair_requests, settings.look.max_per_turn
    reading = (1 + settings.answer.max_attempts + repair) * request
    answer = reading + looks * request
    delivery = (settings.build.max_attempts + repair + looks) * request
    review = len(settings.review.names) * (REPLIES + looks) * request
    policies = Policies.of(settings)
    sent_back = policies.most_reviews - 1 if review else 0
    return StoryCalls(
        reading=reading if plan_tasks is not None else 0,
        plans=policies.plan.max_iterations * answer if plan_tasks is None else 0,
        builds=tasks * (attempts + sent_back) * delivery,
        reviews=tasks * policies.most_reviews * review,
        suites=min(attempts + 1, 3) * answer,
        analyses=(attempts - 1) * answer,
        single=(settings.amendment.max_per_story + 1) * (1 + looks) * request,
    )


def capped(calls: StoryCalls, settings: Settings) -> int:
    """Returns the total, at most `budget.calls_per_story`."""
    return min(calls.total, settings.budget.calls_per_story)


def explained(settings: Settings, brought: Iterable[int | None]) -> tuple[str, str]:
    """Returns a line for each of a dry run's two numbers with its parts; `brought` has one entry per story."""
    stories = {*brought} or {None}
    usual = max((expected_calls(settings, one) for one in stories), key=lambda one: one.total)
    longest = max((most_calls(settings, one) for one in stories), key=lambda one: one.total)
    cap = settings.budget.calls_per_story
    return (
        f"a story in which every answer is right at once: {_parts(usual)}",
        f"every loop to its end, retries included: {_parts(longest)}; budget.calls_per_story ends it at {cap}",
    )


_WORDS = {
    "reading": ("reading of a plan", "readings of a plan"),
    "plans": ("plan", ""),
    "builds": ("delivery", "deliveries"),
    "reviews": ("review", ""),
    "suites": ("suite", ""),
    "analyses": ("analysis", "analyses"),
    "single": ("amendment or merge", "amendments and merge"),
}


def _parts(calls: StoryCalls) -> str:
    parts = ", ".join(counted(count, *_WORDS[name]) for name, count in calls.model_dump().items() if count)
    return f"{calls.total} ({parts})"


class JudgedTasks(Value):
    """A person's plan as read by rules, without a model."""

    count: int
    """Number of tasks."""
    findings: tuple[Finding, ...] = ()


class PastSprint(Value):
    """What an earlier sprint of the project came to."""

    sprint: str
    stories: int
    done: int
    calls: int
    input_tokens: int
    """Includes `cached_tokens`."""
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None when the price of a call is unknown."""


class PastStories(Value):
    """What a run takes when its stories go as the project's last ones did, failed ones included: from the lower to the
    upper quartile of these, or from the least to the most where they are fewer than four."""

    stories: int
    """That is reckoned from."""
    calls: tuple[int, int]
    input_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    usd: tuple[float, float] | None
    """At the prices of now; None where one is unknown, or no model is named."""


class SpendingEstimate(Value):
    """Tokens and money when every answer is right at once."""

    input_tokens: int
    output_tokens: int
    input_per_call: int
    output_per_call: int
    measured: bool
    """Whether the tokens of a call are those of the project's last sprints."""
    usd: float | None
    """None where a price is unknown, or no model is named."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is unknown."""
    as_before: PastStories | None = None
    """None before the project's first sprint."""


class CallEstimate(Value):
    """Paid calls of the whole run."""

    expected: int
    """When every answer is right at once."""
    maximal: int
    """When every loop uses its whole budget, at most the stories' own; see the top of this module."""


class DryRun(Value):
    """`as_json()` is the object `--dry-run --json` prints."""

    stories: int
    waves: tuple[tuple[str, ...], ...]
    """Each wave has, in backlog order, the stories whose dependencies are all in earlier waves."""
    problems: tuple[Finding, ...]
    """By line; one of severity major or worse means that the run would not start."""
    calls: CallEstimate
    closed: dict[str, str] = {}
    """Row that is not run → the story that closes it."""
    explained: tuple[str, str]
    """The parts of the expected and the maximal calls, for people."""
    usual: StoryCalls = StoryCalls()
    """The expected calls by purpose, before a story's budget ends it."""
    spending: SpendingEstimate | None = None
    past: tuple[PastSprint, ...] = ()
    """The last sprints of the project, oldest first."""
    missing: str = ""
    """What a run would not begin without: says which model, key or script; "" when all are there."""

    def as_json(self) -> dict[str, Any]:
        """Returns a JSON object; what came after its first release is there only where there is something to tell."""
        empty = {name for name in ("closed", "spending", "past", "missing") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude={"explained", "usual", *empty})


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
    tasks = [plans[story].count if story in plans else None for story in needs]
    usual = Counter[str]()
    for plan_tasks in tasks:
        usual.update(expected_calls(settings, plan_tasks).model_dump())
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
            expected=sum(capped(expected_calls(settings, plan_tasks), settings) for plan_tasks in tasks),
            maximal=sum(capped(most_calls(settings, plan_tasks), settings) for plan_tasks in tasks),
        ),
        closed=closed,
        explained=explained(settings, tasks),
        usual=StoryCalls(**usual),
    )
