"""A story's path: folds its events into decisive steps, each described in one line.

An event of an older log, without the keys of a decision, is shown by its message.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, GATE_SETTLED, Choice, Loop, Verdict
from orchestrator.core.event import Event, Level
from orchestrator.core.history import CONFLICT, FINISHED, STARTED
from orchestrator.core.sprint import StoryStatus, TaskStatus
from orchestrator.core.value import Value, counted
from orchestrator.story.routing import PlanRoute

MOST_CHARS, MOST_ISSUES = 110, 2
"""Of a finding's message, and findings of a step; the others are counted."""


class Mark(StrEnum):
    """Result of a step."""

    BEGIN = "begin"
    GOOD = "good"
    AGAIN = "again"
    """Something is asked for once more."""
    WAIT = "wait"
    BAD = "bad"
    NOW = "now"
    """Not a decision: what is going on."""


Teller = Callable[[Event, "Told"], tuple[Mark, str] | None]
"""An event → how it went and its text; None: it is no step."""


class Told:
    """Facts from events that belong to the next step, or that it needs."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        self.asked_at: datetime | None = None
        self.answered: int | None = None
        """Index of the step with a person's answer, until the story continues with it."""

    def note(self, text: str) -> None:
        """Told with the next step, when there is something to tell."""
        self.notes.update([text] if text else [])

    def taken(self) -> tuple[str, ...]:
        """Returns the notes so far, once."""
        notes, self.notes = self.notes, Counter()
        retries = notes.pop("retried", 0)
        told = [f"{note} x{count}" if count > 1 else note for note, count in notes.items()]
        return (*([counted(retries, "retry", "retries")] if retries else []), *told)


def verdict_of(event: Event) -> str:
    """Returns the verdict in one word, also where an older log names it otherwise; "" for no decision."""
    return str(event.data.get("verdict") or event.data.get("route") or event.data.get("status") or "")


def number(value: object) -> int | None:
    """A count of an event's data, None when it holds none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def findings_of(event: Event) -> list[Mapping[str, Any]]:
    """Returns the findings of an event as they were recorded."""
    found = event.data.get("findings")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def issues(event: Event) -> str:
    """` (2 issues: …; …)` for what is major or worse, or ""."""
    found = [one for one in findings_of(event) if one.get("severity") != "minor"]
    if not found:
        return ""
    shown = [_short(str(one.get("message", ""))) for one in found[:MOST_ISSUES]]
    rest = f"; and {len(found) - MOST_ISSUES} more" if len(found) > MOST_ISSUES else ""
    count = f"{len(found)} issues: " if len(found) > 1 else ""
    return f" ({count}{'; '.join(shown)}{rest})"


def _short(text: str) -> str:
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]}…"


def counted_attempt(event: Event) -> str:
    """` 2 of 3`, ` 2` where the budget is not told, "" where the attempt is not either."""
    attempt, left = number(event.data.get("attempt")), number(event.data.get("budget_left"))
    if attempt is None:
        return ""
    return f" {attempt}" if left is None else f" {attempt} of {attempt + left}"


def span(time: timedelta) -> str:
    """`45 s`, `12 m`, `3 h 12 m`, `2 d 5 h`."""
    seconds = max(0, round(time.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} m"
    return f"{minutes} m" if minutes else f"{seconds} s"


def _started(event: Event, told: Told) -> tuple[Mark, str]:
    return Mark.BEGIN, "begins"


def _given(event: Event, told: Told) -> tuple[Mark, str]:
    """Describes the reading of a person's plan, with or without a model; it is judged when the story starts."""
    weighs = event.level.rank >= Level.WARN.rank
    return Mark.AGAIN if weighs else Mark.GOOD, f"{event.data.get('plan_file') or 'a plan'} is read{issues(event)}"


def _plan(event: Event, told: Told) -> tuple[Mark, str]:
    verdict, plan = verdict_of(event), event.data.get("plan")
    tasks = plan.get("tasks") if isinstance(plan, dict) else None
    size = f" with {counted(len(tasks), 'task')}" if isinstance(tasks, list) else ""
    file = event.data.get("plan_file")
    whose = f"a person's plan ({file})" if file else f"plan{counted_attempt(event)}"
    return _MARKS.get(verdict, Mark.BAD), f"{whose}{size}: {verdict}{issues(event)}"


def _gate_opened(event: Event, told: Told) -> tuple[Mark, str]:
    told.asked_at = event.time
    gate = event.data.get("gate")
    reason = gate.get("reason") if isinstance(gate, dict) else None
    return Mark.WAIT, f"waits for a person: {_short(str(reason))}" if reason else _short(event.message)


def _gate_answered(event: Event, told: Told) -> tuple[Mark, str]:
    return Mark.WAIT, f"{_short(event.message)}; it counts when the story goes on"


def _gate_settled(event: Event, told: Told) -> tuple[Mark, str]:
    if told.asked_at is not None:
        told.note(f"after {span(event.time - told.asked_at)}")
    return _MARKS.get(verdict_of(event), Mark.BAD), _short(event.message)


def _contract(event: Event, told: Told) -> tuple[Mark, str]:
    return Mark.GOOD, f"contract frozen: {_short(event.message.rpartition(': ')[2])}"


def _answer(event: Event, told: Told) -> tuple[Mark, str]:
    """Describes a refused answer."""
    again = event.name == "answer_sent_back"
    mark, purpose = Mark.AGAIN if again else Mark.BAD, event.data.get("purpose")
    if not purpose:
        return mark, _short(event.message)
    task = f"{event.task}: " if event.task else ""
    what = "sent back" if again else "not accepted"
    return mark, f"{task}{purpose}{counted_attempt(event)} {what}{issues(event)}"


def _task(event: Event, told: Told) -> tuple[Mark, str]:
    status, attempt = str(event.data.get("status")), number(event.data.get("attempt")) or 1
    again = f" for test run{counted_attempt(event)}" if attempt > 1 else ""
    return _MARKS.get(status, Mark.BAD), f"{event.task} {status}{again}{issues(event)}"


def _review(event: Event, told: Told) -> tuple[Mark, str]:
    verdict, count = verdict_of(event), counted_attempt(event)
    said = {str(Verdict.APPROVED): "approved", str(Verdict.SENT_BACK): "sent back"}.get(verdict, "goes on unapproved")
    reviews = event.data.get("reviews")
    by = [str(one.get("by")) for one in reviews if isinstance(one, dict)] if isinstance(reviews, list) else []
    whose = f" by {', '.join(by)}" if by else ""
    return _MARKS.get(verdict, Mark.BAD), f"{event.task} review{count}{whose}: {said}{issues(event)}"


def _tests(event: Event, told: Told) -> tuple[Mark, str]:
    verdict = verdict_of(event)
    green = event.data.get("green") is True
    goes_on = {str(Verdict.MEND): ", to be mended", str(Verdict.GIVE_UP): ", given up"}.get(verdict, "")
    mark = Mark.GOOD if green else Mark.BAD if verdict == Verdict.GIVE_UP else Mark.AGAIN
    result = event.message.partition(": ")[2] if event.data.get("stage") else event.message
    return mark, f"tests{counted_attempt(event)}: {_short(result)}{goes_on}"


def _finished(event: Event, told: Told) -> tuple[Mark, str]:
    return Mark.GOOD if event.data.get("status") == StoryStatus.DONE else Mark.BAD, _short(event.message)


def _diff(event: Event, told: Told) -> tuple[Mark, str] | None:
    return None if verdict_of(event) == Verdict.ACCEPTED else (Mark.BAD, _short(event.message))


def other(event: Event, told: Told) -> tuple[Mark, str] | None:
    """Describes any other event, if it is important."""
    return (Mark.BAD, _short(event.message)) if event.level.rank >= Level.WARN.rank else None


def _by_message(mark: Mark) -> Teller:
    return lambda event, told: (mark, _short(event.message))


def _healed(event: Event) -> str:
    repairs = event.data.get("repairs")
    kinds = ", ".join(str(kind).replace("_", " ") for kind in repairs) if isinstance(repairs, dict) else ""
    return f"healed: {kinds}" if kinds else "healed"


def _accepted(event: Event) -> str:
    attempt = number(event.data.get("attempt")) or 1
    return f"accepted at reply{counted_attempt(event)}" if attempt > 1 else ""


def _command(event: Event) -> str:
    failed = event.level.rank >= Level.WARN.rank
    allowed = " (it may)" if event.data.get("verdict") == Verdict.ALLOWED else ""
    return f"command failed{allowed}" if failed else "command passed"


_MARKS: Mapping[str, Mark] = {
    **dict.fromkeys((PlanRoute.APPROVED, Verdict.APPROVED, Choice.APPROVE, Choice.EDIT, TaskStatus.DONE), Mark.GOOD),
    **dict.fromkeys((PlanRoute.REVISE, Verdict.SENT_BACK, Choice.REJECT, Choice.REPLAN), Mark.AGAIN),
    TaskStatus.PARTIAL: Mark.AGAIN,
}
STEPS: dict[str, Teller] = {
    STARTED: _started,
    "plan_given": _given,
    "plan_judged": _plan,
    "plan_mended": _by_message(Mark.AGAIN),
    CONFLICT: _by_message(Mark.BAD),
    GATE_OPENED: _gate_opened,
    GATE_ANSWERED: _gate_answered,
    GATE_SETTLED: _gate_settled,
    "contract_frozen": _contract,
    "contract_amended": _by_message(Mark.GOOD),
    "amendment_refused": _by_message(Mark.BAD),
    "answer_sent_back": _answer,
    "answer_given_up": _answer,
    "review_judged": _review,
    "task_finished": _task,
    "suite_committed": lambda event, told: (Mark.GOOD, f"suite {_short(event.message)}"),
    "tests_finished": _tests,
    "older_tests_failed": _tests,
    "failure_repeated": _by_message(Mark.AGAIN),
    "tests_run_before": _by_message(Mark.GOOD),
    "tests_run_hollow": _by_message(Mark.GOOD),
    "suite_kept": _by_message(Mark.AGAIN),
    "suite_replaced": _by_message(Mark.AGAIN),
    "failure_analysed": _by_message(Mark.AGAIN),
    "diff_checked": _diff,
    "story_merged": _by_message(Mark.GOOD),
    "merge_refused": _by_message(Mark.BAD),
    "merge_resolved": _by_message(Mark.GOOD),
    "merge_unresolved": _by_message(Mark.BAD),
    FINISHED: _finished,
}
NOTES: dict[str, Callable[[Event], str]] = {
    "call_retried": lambda event: "retried",
    "answer_accepted": _accepted,
    "answer_healed": _healed,
    "answer_truncated": lambda event: "cut off",
    "answer_refused": lambda event: "unreadable",
    "answer_repaired_by_model": lambda event: "repaired on request",
    "answer_repair_failed": lambda event: "repair failed",
    "breakdown_completed": lambda event: "missing tasks came on request",
    "breakdown_left_short": lambda event: "missing tasks did not come",
    "delivery_completed": lambda event: "missing files came on request",
    "delivery_left_short": lambda event: "missing files did not come",
    "files_shown": lambda event: "files shown",
    "review_read": lambda event: "",
    "secret_masked": lambda event: event.message,
    "review_diff_cut": lambda event: "not shown whole to a reviewer",
    "command_finished": _command,
}

INNER = frozenset(
    {
        "answer_sent_back",
        "answer_given_up",
        "review_judged",
        "contract_amended",
        "amendment_refused",
        "failure_analysed",
    }
)


class PathStep(Value):
    """One step of a story's path."""

    time: datetime
    mark: Mark
    stage: str = ""
    """Of the decision, like the three that follow; empty or None where the event tells none."""
    verdict: str = ""
    attempt: int | None = None
    budget_left: int | None = None
    task: str | None = None
    text: str
    notes: tuple[str, ...] = ()
    """Minor events on the way: retries, repairs, commands."""
    inner: bool = False
    """True when it belongs to a loop within the next step."""
    codes: tuple[str, ...] = ()
    """Of the findings that decided."""


def story_path(events: Iterable[Event]) -> tuple[PathStep, ...]:
    """Returns the steps of one story in order; `events` are those of its present generation."""
    told, steps = Told(), list[PathStep]()
    for event in events:
        if event.name in NOTES:
            told.note(NOTES[event.name](event))
            continue
        if event.name == GATE_SETTLED and told.answered is not None:
            del steps[told.answered]
        told.answered = len(steps) if event.name == GATE_ANSWERED else None
        teller = STEPS.get(event.name, other)
        said = teller(event, told)
        if said is not None:
            steps.append(_step(event, *said, told.taken()))
    return tuple(steps)


def _step(event: Event, mark: Mark, text: str, notes: tuple[str, ...]) -> PathStep:
    data = event.data
    return PathStep(
        time=event.time,
        mark=mark,
        stage=str(data.get("stage") or ""),
        verdict=verdict_of(event),
        attempt=number(data.get("attempt")),
        budget_left=number(data.get("budget_left")),
        task=event.task,
        text=text,
        notes=notes,
        inner=event.name in INNER,
        codes=tuple(str(finding.get("code")) for finding in findings_of(event)),
    )


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
        _tests_table(of[Loop.TEST]),
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


def _tests_table(steps: Sequence[PathStep]) -> str:
    runs = Counter(step.verdict for step in steps if step.verdict in {Verdict.GREEN, Verdict.MEND, Verdict.GIVE_UP})
    red = runs[Verdict.MEND] + runs[Verdict.GIVE_UP]
    return _with(counted(runs.total(), "test run"), ("red", red)) if runs else ""
