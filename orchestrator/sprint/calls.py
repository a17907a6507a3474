"""How many calls of models a story takes: when all goes well, and when every loop uses its whole budget. Pure.

The one place where the nested budgets are multiplied. A call is one request that ended, with a reply or
with an error; `budget.calls_per_story` counts the same.

    request   provider.max_attempts
    answer    (1 + answer.max_attempts + answer.repair_requests) x request
    delivery  (build.max_attempts + answer.repair_requests) x request
    review    reviewers x 2 (one without a verdict is asked for once more) x request

    reading   answer, when a person brought a plan
    plans     plan.max_iterations x answer, when nobody did
    builds    tasks x (test.max_attempts + review.max_iterations - 1) x delivery
    reviews   tasks x review.max_iterations x review
    suites    3 x answer (asked for once more when it shows nothing of the change, and when it is at fault); 2 x when
              test.max_attempts is 1
    analyses  (test.max_attempts - 1) x answer; the last red run ends the attempts
    single    (amendment.max_per_story + 1) x request: amendments of the contract, one resolution of a merge

Requests for missing tasks, continuations and replies that only ask to be shown something are replies of the answer
that they belong to; a stronger model answers in place of the usual one. The reviews of a task are counted over its
whole story: it is built once for each run of the tests, and once for each review that sends it back. With review off
both terms fall away.

Only `budget.calls_per_story` bounds what no other setting does: tasks beyond `plan.expected_tasks`, and what a person
asks for (another plan, another resolution).
"""

from collections.abc import Iterable

from orchestrator.domain.base import Value
from orchestrator.domain.review import REPLIES
from orchestrator.domain.words import counted
from orchestrator.settings import Settings


class StoryCalls(Value):
    """Calls of one story, by what they are for."""

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
        """All of them."""
        return sum(self.model_dump().values())


def expected_calls(settings: Settings, brought: int | None = None) -> StoryCalls:
    """When every answer is right at once. `brought`: how many tasks a person's plan has, None without one."""
    tasks = settings.plan.expected_tasks if brought is None else brought
    return StoryCalls(
        reading=int(brought is not None),
        plans=int(brought is None),
        builds=tasks,
        reviews=tasks * len(settings.review.names),
        suites=1,
    )


def most_calls(settings: Settings, brought: int | None = None) -> StoryCalls:
    """When every loop uses its whole budget, the story's cap aside. `brought` as for `expected_calls`."""
    tasks = settings.plan.expected_tasks if brought is None else brought
    request, attempts = settings.provider.max_attempts, settings.test.max_attempts
    repair = settings.answer.repair_requests
    answer = (1 + settings.answer.max_attempts + repair) * request
    delivery = (settings.build.max_attempts + repair) * request
    review = len(settings.review.names) * REPLIES * request
    sent_back = settings.review.max_iterations - 1 if review else 0
    return StoryCalls(
        reading=answer if brought is not None else 0,
        plans=settings.plan.max_iterations * answer if brought is None else 0,
        builds=tasks * (attempts + sent_back) * delivery,
        reviews=tasks * settings.review.max_iterations * review,
        suites=min(attempts + 1, 3) * answer,
        analyses=(attempts - 1) * answer,
        single=(settings.amendment.max_per_story + 1) * request,
    )


def capped(calls: StoryCalls, settings: Settings) -> int:
    """As many of them as `budget.calls_per_story` lets be made."""
    return min(calls.total, settings.budget.calls_per_story)


def explained(settings: Settings, brought: Iterable[int | None]) -> tuple[str, str]:
    """What the two numbers of a dry run are made of, a line each; `brought` as for `expected_calls`, one per story."""
    stories = [*brought]
    plans = len([one for one in stories if one is None])
    counts = sorted({settings.plan.expected_tasks if one is None else one for one in stories})
    tasks = counted(counts[0], "task") if len(counts) == 1 else f"{' or '.join(map(str, counts))} tasks"
    read = "a plan" if plans else "a person's plan read"
    reviewers = len(settings.review.names)
    reviewed = f" and {counted(reviewers, 'review')}" if reviewers else ""
    cap = settings.budget.calls_per_story
    needed = max((expected_calls(settings, one).total for one in {*stories}), default=0)
    short = f"; that is {needed}, and budget.calls_per_story ends a story at {cap}" if needed > cap else ""
    expected = f"a story: {read}, a delivery{reviewed} for each of {tasks}, a suite{short}"
    longest = max((most_calls(settings, one) for one in {*stories}), key=lambda one: one.total, default=StoryCalls())
    parts = ", ".join(f"{count} {_WORDS[name]}" for name, count in longest.model_dump().items() if count)
    ends = f"ends it at {cap}" if longest.total > cap else f"would end it at {cap}"
    most = (
        f"every loop of a story to its end, retries included: {longest.total} ({parts}); budget.calls_per_story {ends}"
    )
    return expected, most


_WORDS = {
    "reading": "reading a plan",
    "plans": "plans",
    "builds": "deliveries",
    "reviews": "reviews",
    "suites": "suites",
    "analyses": "analyses",
    "single": "amendments and merge",
}
