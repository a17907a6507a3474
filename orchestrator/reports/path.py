"""A story's path: its events folded into the steps that decided something, and what goes on now."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from orchestrator.core.command import CONTROL_SETTLED, GATE_ANSWERED, GATE_OPENED, GATE_SETTLED, Choice, Loop, Verdict
from orchestrator.core.event import ACTIVITY_BEGUN, Event, Level
from orchestrator.core.history import CONFLICT, FINISHED, STARTED, StoryHistory
from orchestrator.core.secrets import redact
from orchestrator.core.sprint import StoryStatus, TaskStatus
from orchestrator.core.value import Value, counted, cut_at_word

MOST_CHARS, MOST_ISSUES = 110, 2
"""Of a finding's message, and findings of a step; the others are counted."""
END_CHARS = 500
"""Of the line that ends a story: it names the cause, the cost and what helps."""


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


Teller = Callable[[Event], tuple[Mark, str] | None]
"""An event → how it went and its text; None: it is no step."""


def verdict_of(event: Event) -> str:
    """Returns the verdict, or the status, in one word; "" for no decision."""
    return str(event.data.get("verdict") or event.data.get("status") or "")


def issues(event: Event) -> str:
    """` (2 issues: …; …)` for what is major or worse, or ""."""
    found = [one for one in event.data.get("findings", ()) if one["severity"] != "minor"]
    if not found:
        return ""
    shown = [_short(one["message"]) for one in found[:MOST_ISSUES]]
    rest = f"; and {len(found) - MOST_ISSUES} more" if len(found) > MOST_ISSUES else ""
    count = f"{len(found)} issues: " if len(found) > 1 else ""
    return f" ({count}{'; '.join(shown)}{rest})"


def _short(text: str, most: int = MOST_CHARS) -> str:
    return cut_at_word(text.split("\n", 1)[0], most)


def counted_attempt(event: Event) -> str:
    """` 2 of 3`, ` 2` where the budget is not told, "" where the attempt is not either."""
    attempt, left = event.data.get("attempt"), event.data.get("budget_left")
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


def _given(event: Event) -> tuple[Mark, str]:
    """A person's plan, which is judged next, or a text that the architect follows."""
    return Mark.GOOD, f"{event.data['plan_file']} is {'followed' if event.data['followed'] else 'read'}"


def _plan(event: Event) -> tuple[Mark, str]:
    verdict, plan = verdict_of(event), event.data.get("plan")
    size = f" with {counted(len(plan['tasks']), 'task')}" if plan else ""
    file = event.data.get("plan_file")
    whose = f"a person's plan ({file})" if file else f"plan{counted_attempt(event)}"
    return _MARKS.get(verdict, Mark.BAD), f"{whose}{size}: {verdict}{issues(event)}"


def _gate_opened(event: Event) -> tuple[Mark, str]:
    return Mark.WAIT, f"waits for a person: {_short(event.data['gate']['reason'])}"


def _answer(event: Event) -> tuple[Mark, str]:
    """An answer that was not accepted."""
    again = event.name == "answer_sent_back"
    task = f"{event.task}: " if event.task else ""
    what = "sent back" if again else "not accepted"
    told = f"{task}{event.data['purpose']}{counted_attempt(event)} {what}{issues(event)}"
    return Mark.AGAIN if again else Mark.BAD, told


def _task(event: Event) -> tuple[Mark, str]:
    status = event.data["status"]
    again = f" for attempt{counted_attempt(event)}" if event.data["attempt"] > 1 else ""
    return _MARKS.get(status, Mark.BAD), f"{event.task} {status}{again}{issues(event)}"


def _review(event: Event) -> tuple[Mark, str]:
    verdict, count = verdict_of(event), counted_attempt(event)
    said = {str(Verdict.APPROVED): "approved", str(Verdict.SENT_BACK): "sent back"}.get(verdict, "goes on unapproved")
    by = [one["by"] for one in event.data.get("reviews", ())]
    whose = f" by {', '.join(by)}" if by else ""
    return _MARKS.get(verdict, Mark.BAD), f"{event.task} review{count}{whose}: {said}{issues(event)}"


def _tests(event: Event) -> tuple[Mark, str]:
    verdict = verdict_of(event)
    green = event.data["green"]
    goes_on = {str(Verdict.MEND): ", to be mended", str(Verdict.GIVE_UP): ", given up"}.get(verdict, "")
    mark = Mark.GOOD if green else Mark.BAD if verdict == Verdict.GIVE_UP else Mark.AGAIN
    return mark, f"tests{counted_attempt(event)}: {_short(event.message.partition(': ')[2])}{goes_on}"


def _proof(event: Event) -> tuple[Mark, str]:
    """A run that had to fail: it shows something where a test was judged by it."""
    judged = any(one != "not judged" for one in event.data["results"].values())
    return Mark.GOOD if judged else Mark.BEGIN, _short(event.message)


def other(event: Event) -> tuple[Mark, str] | None:
    """What no other teller knows is shown when it weighs something."""
    return (Mark.BAD, _short(event.message)) if event.level.rank >= Level.WARN.rank else None


def _by_message(mark: Mark) -> Teller:
    return lambda event: (mark, _short(event.message))


def _healed(event: Event) -> str:
    kinds = ", ".join(kind.replace("_", " ") for kind in event.data["repairs"])
    return f"healed: {kinds}" if kinds else "healed"


def _accepted(event: Event) -> str:
    return f"accepted at reply{counted_attempt(event)}" if event.data["attempt"] > 1 else ""


def _command(event: Event) -> str:
    failed = event.level.rank >= Level.WARN.rank
    allowed = " (it may)" if event.data.get("verdict") == Verdict.ALLOWED else ""
    return f"command failed{allowed}" if failed else "command passed"


_MARKS: Mapping[str, Mark] = {
    **dict.fromkeys((Verdict.VALID, Verdict.APPROVED, Choice.APPROVE, Choice.EDIT, TaskStatus.DONE), Mark.GOOD),
    **dict.fromkeys((Verdict.REVISE, Verdict.SENT_BACK, Choice.REJECT, Choice.REPLAN), Mark.AGAIN),
}
STEPS: dict[str, Teller] = {
    STARTED: lambda event: (Mark.BEGIN, "begins"),
    "plan_given": _given,
    "service_away": _by_message(Mark.WAIT),
    "model_switched": _by_message(Mark.AGAIN),
    "plan_judged": _plan,
    "plan_mended": _by_message(Mark.AGAIN),
    CONFLICT: _by_message(Mark.BAD),
    CONTROL_SETTLED: _by_message(Mark.WAIT),
    GATE_OPENED: _gate_opened,
    GATE_ANSWERED: lambda event: (Mark.WAIT, f"{_short(event.message)}; it counts when the story goes on"),
    GATE_SETTLED: lambda event: (_MARKS.get(verdict_of(event), Mark.BAD), _short(event.message)),
    "contract_frozen": lambda event: (
        Mark.GOOD,
        f"contract frozen: {_short(event.message.rpartition(': ')[2])}",
    ),
    "contract_amended": _by_message(Mark.GOOD),
    "older_tests_granted": _by_message(Mark.GOOD),
    "amendment_refused": _by_message(Mark.BAD),
    "answer_sent_back": _answer,
    "answer_given_up": _answer,
    "review_judged": _review,
    "task_finished": _task,
    "suite_committed": lambda event: (Mark.GOOD, f"suite {_short(event.message)}"),
    "tests_finished": _tests,
    "older_tests_failed": _tests,
    "failure_repeated": _by_message(Mark.AGAIN),
    "tests_run_before": _proof,
    "tests_run_hollow": _proof,
    "suite_kept": _by_message(Mark.AGAIN),
    "suite_replaced": _by_message(Mark.AGAIN),
    "failure_analysed": _by_message(Mark.AGAIN),
    "diff_checked": lambda event: None if verdict_of(event) == Verdict.ACCEPTED else (Mark.BAD, _short(event.message)),
    "story_merged": _by_message(Mark.GOOD),
    "merge_refused": _by_message(Mark.BAD),
    "merge_resolved": _by_message(Mark.GOOD),
    "merge_unresolved": _by_message(Mark.BAD),
    FINISHED: lambda event: (
        Mark.GOOD if event.data.get("status") == StoryStatus.DONE else Mark.BAD,
        _short(event.message, END_CHARS),
    ),
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
        "older_tests_granted",
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
    """The steps of one story in order; `events` are those of its present generation."""
    steps: list[PathStep] = []
    notes: Counter[str] = Counter()
    asked_at: datetime | None = None
    answered: int | None = None
    for event in events:
        if event.name in NOTES:
            notes.update(filter(None, [NOTES[event.name](event)]))
            continue
        if event.name == GATE_OPENED:
            asked_at = event.time
        elif event.name == GATE_SETTLED:
            # That a person answered is a step until the story goes on with it: then this event says so.
            if answered is not None:
                del steps[answered]
            notes.update([] if asked_at is None else [f"after {span(event.time - asked_at)}"])
        answered = len(steps) if event.name == GATE_ANSWERED else None
        outcome = STEPS.get(event.name, other)(event)
        if outcome is not None:
            steps.append(_step(event, *outcome, _told(notes)))
            notes.clear()
    return tuple(steps)


def _told(notes: Counter[str]) -> tuple[str, ...]:
    """The notes since the last step, retries first."""
    retries = [counted(notes["retried"], "retry", "retries")] if notes["retried"] else []
    others = ((note, count) for note, count in notes.items() if note != "retried")
    return (*retries, *(f"{note} x{count}" if count > 1 else note for note, count in others))


def _step(event: Event, mark: Mark, text: str, notes: tuple[str, ...]) -> PathStep:
    data = event.data
    return PathStep(
        time=event.time,
        mark=mark,
        stage=str(data.get("stage") or ""),
        verdict=verdict_of(event),
        attempt=data.get("attempt"),
        budget_left=data.get("budget_left"),
        task=event.task,
        text=text,
        notes=notes,
        inner=event.name in INNER,
        codes=tuple(finding["code"] for finding in data.get("findings", ())),
    )


_APPROVED = "approved"
_ENDED = frozenset({"turn_finished", "turn_failed"})


def of_story(
    history: StoryHistory, *, running: bool, full: bool = False, orders: Iterable[Event] = ()
) -> tuple[PathStep, ...]:
    """The steps to draw of a story as the log tells it now; `orders`: events of the sprint, which tell of pauses."""
    events, finished = history.events, history.outcome is not None
    if events:
        mine = [one for one in orders if one.time > events[0].time and _concerns(one, events[0].story)]
        for order in mine:  # before the first event that is later; events of a story keep their order
            place = next((number for number, one in enumerate(events) if one.time > order.time), len(events))
            events.insert(place, order)
    return timeline(events, running=running, now=datetime.now(UTC), finished=finished, full=full)


def _concerns(event: Event, story: str | None) -> bool:
    """Returns whether an order was carried out for the story."""
    settled = event.data.get("settled") if event.name == CONTROL_SETTLED else None
    return settled is not None and settled["done"] and story in settled["stories"]


def timeline(
    events: Sequence[Event], *, running: bool, now: datetime, finished: bool, full: bool = False
) -> tuple[PathStep, ...]:
    """The steps to draw; `running`: somebody works on the sprint, `finished`: the story has its outcome."""
    steps = tuple(_every(events)) if full else folded(story_path(events))
    if finished or not events:
        return steps
    return _with_now(steps, events, running, now)


def _every(events: Iterable[Event]) -> Iterator[PathStep]:
    """One step per event, whatever it is."""
    for event in events:
        (step,) = story_path([event]) or (PathStep(time=event.time, mark=Mark.NOW, text=""),)
        told = f"{event.name}{counted_attempt(event)}: {event.message}"
        yield step.model_copy(update={"text": told, "verdict": verdict_of(event), "notes": ()})


def folded(steps: Sequence[PathStep]) -> tuple[PathStep, ...]:
    """Steps that repeat the one before as one; that a task is approved stands with its end."""
    lines: list[PathStep] = []
    for step in _with_approvals(steps):
        if lines and _same(lines[-1], step):
            lines[-1] = _again(lines[-1], step)
        else:
            lines.append(step)
    return tuple(lines)


def _with_approvals(steps: Sequence[PathStep]) -> Iterator[PathStep]:
    notes: tuple[str, ...] = ()
    for step, after in zip_longest(steps, steps[1:]):
        ends = after is not None and (after.stage, after.task) == (Loop.BUILD, step.task)
        if ends and (step.stage, step.verdict) == (Loop.REVIEW, Verdict.APPROVED):
            notes = (*step.notes, _APPROVED if step.attempt == 1 else f"{_APPROVED} in review {step.attempt}")
        else:
            yield step.model_copy(update={"notes": (*notes, *step.notes)}) if notes else step
            notes = ()


def _same(one: PathStep, other: PathStep) -> bool:
    if not other.inner or not one.inner:
        return False
    return (one.mark, one.stage, one.verdict, one.task, one.codes) == (
        *(other.mark, other.stage, other.verdict, other.task),
        other.codes,
    )


def _again(before: PathStep, step: PathStep) -> PathStep:
    """The later step, with how often it came."""
    times = next((int(note.split()[0]) for note in before.notes if note.endswith(" times")), 1)
    others = [note for note in dict.fromkeys((*before.notes, *step.notes)) if not note.endswith(" times")]
    return step.model_copy(update={"time": before.time, "notes": (f"{times + 1} times", *others)})


def _with_now(
    steps: tuple[PathStep, ...], events: Sequence[Event], running: bool, now: datetime
) -> tuple[PathStep, ...]:
    """What goes on, or that nobody works on it."""
    if steps and steps[-1].mark is Mark.WAIT:
        waited = [f"for {span(now - steps[-1].time)} now"] if steps[-1].verdict == Verdict.ASKED else []
        return (*steps[:-1], steps[-1].model_copy(update={"notes": (*steps[-1].notes, *waited)}))
    if not running:
        text = "nobody works on it: the command that began the sprint goes on"
        return (*steps, PathStep(time=events[-1].time, mark=Mark.NOW, text=text))
    asked = [event for event in events if event.name == "turn_started" or event.name in _ENDED]
    open_turn = asked[-1] if asked and asked[-1].name not in _ENDED else None
    last = open_turn or events[-1]
    told = last.message if open_turn or last.name == ACTIVITY_BEGUN else "at work"
    text = f"{told}, for {span(now - last.time)} now"
    return (*steps, PathStep(time=last.time, mark=Mark.NOW, text=text))


def as_data(steps: Iterable[PathStep]) -> list[dict[str, Any]]:
    """The steps for `--json`."""
    return [
        {
            "time": step.time.isoformat(),
            "mark": step.mark.value,
            "stage": step.stage or None,
            "verdict": step.verdict or None,
            "attempt": step.attempt,
            "budget_left": step.budget_left,
            "task": step.task,
            "inner": step.inner,
            "text": redact(step.text),
            "notes": [redact(note) for note in step.notes],
        }
        for step in steps
    ]


def of_data(told: Iterable[Mapping[str, Any]]) -> tuple[PathStep, ...]:
    """The steps that `as_data` told. Raises ValueError for what are none."""
    names = PathStep.model_fields.keys()
    kept = [{name: value for name, value in one.items() if name in names and value is not None} for one in told]
    return tuple(PathStep.model_validate(one) for one in kept)
