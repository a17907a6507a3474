"""A story's path in one line of words, for the report (pure)."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.domain.decisions import Loop, Verdict
from orchestrator.domain.status import TaskStatus
from orchestrator.domain.words import counted
from orchestrator.sprint.path import PathStep
from orchestrator.sprint.routing import PlanRoute

_ENDS = {
    Verdict.MERGED: "merged",
    Verdict.CONFLICT: "not merged: conflict",
    Verdict.RED: "not merged: red",
    Verdict.VANISHED: "not merged: older tests vanished",
    Verdict.RESOLVED: "resolved and tested again",
    Verdict.NOT_RESOLVED: "not resolved",
    Verdict.REFUSED: "the whole diff breaks the contract",
}


def in_words(steps: Sequence[PathStep]) -> str:
    """The decisions with their counts, `2 plans (1 revised) → 3 tasks (…) → …`; "" when there were none."""
    of = {loop: [step for step in steps if step.stage == loop] for loop in Loop}
    parts = (
        _plans(of[Loop.PLAN]),
        _counts("asked a person", Counter(step.verdict for step in of[Loop.GATE] if step.verdict != Verdict.ASKED)),
        _tasks(of[Loop.BUILD]),
        _reviews(of[Loop.REVIEW]),
        _counts("contract", Counter(f"amendment {step.verdict}" for step in of[Loop.AMENDMENT])),
        _tests(of[Loop.TEST]),
        *(_ENDS[Verdict(step.verdict)] for step in of[Loop.MERGE] if step.verdict in set(_ENDS)),
    )
    told = " → ".join(part for part in parts if part)
    back = sum(step.verdict == Verdict.SENT_BACK for step in of[Loop.ANSWER])
    return f"{told}; {counted(back, 'answer')} sent back on the way" if told and back else told


def _counts(what: str, counts: Counter[str]) -> str:
    told = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count)
    return f"{what} ({told})" if told else ""


def _with(what: str, *counts: tuple[str, int]) -> str:
    told = ", ".join(f"{count} {word}" for word, count in counts if count)
    return f"{what} ({told})" if told else what


def _plans(steps: Sequence[PathStep]) -> str:
    routes = Counter(step.verdict for step in steps)
    judged = sum(routes[route] for route in PlanRoute)
    more = [(word, routes[verdict]) for verdict, word in _PLANS.items()]
    return _with(counted(judged, "plan"), *more) if steps else ""


_PLANS = {
    PlanRoute.REVISE: "revised",
    PlanRoute.ESCALATE: "escalated",
    Verdict.MENDED: "mended",
    Verdict.CONFLICT: "conflicting",
}


def _tasks(steps: Sequence[PathStep]) -> str:
    ended = {step.task: step for step in steps}
    verdicts = Counter(step.verdict for step in ended.values())
    again = len(steps) - len(ended)
    told = _with(
        counted(len(ended), "task"),
        ("partial", verdicts[TaskStatus.PARTIAL]),
        ("unapproved", verdicts[TaskStatus.UNAPPROVED]),
        ("failed", verdicts[TaskStatus.FAILED]),
        ("asked for again", again),
    )
    return told if ended else ""


def _reviews(steps: Sequence[PathStep]) -> str:
    verdicts = Counter(step.verdict for step in steps)
    return _with(counted(len(steps), "review"), ("sent back", verdicts[Verdict.SENT_BACK])) if steps else ""


def _tests(steps: Sequence[PathStep]) -> str:
    runs = Counter(step.verdict for step in steps if step.verdict in {Verdict.GREEN, Verdict.MEND, Verdict.GIVE_UP})
    red = runs[Verdict.MEND] + runs[Verdict.GIVE_UP]
    return _with(counted(runs.total(), "test run"), ("red", red)) if runs else ""
