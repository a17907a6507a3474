"""A story's path as steps to draw, with repeated ones folded, and the current activity (pure)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from orchestrator.core.command import Loop, Verdict
from orchestrator.core.event import Event
from orchestrator.core.history import StoryHistory
from orchestrator.core.secrets import redact
from orchestrator.reports.path import Mark, PathStep, counted_attempt, span, story_path, verdict_of

SMOOTH = 4
"""As many tasks in a row that went without trouble become one line."""
_APPROVED = "approved"
_ENDED = frozenset({"turn_finished", "turn_failed"})


def of_story(history: StoryHistory, *, running: bool, full: bool = False) -> tuple[PathStep, ...]:
    """Returns the steps to draw of a story as the log tells it now."""
    finished = history.outcome is not None
    return timeline(history.events, running=running, now=datetime.now(UTC), finished=finished, full=full)


def timeline(
    events: Sequence[Event], *, running: bool, now: datetime, finished: bool, full: bool = False
) -> tuple[PathStep, ...]:
    """Returns the steps to draw; `running`: a process works on the sprint, `finished`: the story has its outcome."""
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
    """Steps that repeat the one before, and runs of tasks without trouble, as one each.

    The approval of a task is shown with its end.
    """
    lines: list[PathStep] = []
    for step in _with_approvals(steps):
        if lines and _same(lines[-1], step):
            lines[-1] = _again(lines[-1], step)
        else:
            lines.append(step)
    return tuple(_without_smooth(lines))


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
    """Returns the later step, with how often it came."""
    times = next((int(note.split()[0]) for note in before.notes if note.endswith(" times")), 1)
    others = [note for note in dict.fromkeys((*before.notes, *step.notes)) if not note.endswith(" times")]
    return step.model_copy(update={"time": before.time, "notes": (f"{times + 1} times", *others)})


def _without_smooth(lines: Sequence[PathStep]) -> Iterator[PathStep]:
    run: list[PathStep] = []
    for before, line in zip((None, *lines), (*lines, None), strict=True):
        troubled = before is not None and before.inner
        if line is not None and _smooth(line) and not troubled:
            run.append(line)
            continue
        if len(run) < SMOOTH:
            yield from run
        else:
            text = f"{run[0].task} to {run[-1].task}: {len(run)} tasks done"
            yield run[-1].model_copy(update={"text": text, "task": None})
        run = []
        if line is not None:
            yield line


def _smooth(step: PathStep) -> bool:
    plain = not [note for note in step.notes if note != _APPROVED and not note.startswith("command passed")]
    return step.stage == Loop.BUILD and step.mark is Mark.GOOD and step.attempt == 1 and plain and not step.codes


def _with_now(
    steps: tuple[PathStep, ...], events: Sequence[Event], running: bool, now: datetime
) -> tuple[PathStep, ...]:
    """Returns the current activity, or that no process works on it."""
    if steps and steps[-1].mark is Mark.WAIT:
        waited = [f"for {span(now - steps[-1].time)} now"] if steps[-1].verdict == Verdict.ASKED else []
        return (*steps[:-1], steps[-1].model_copy(update={"notes": (*steps[-1].notes, *waited)}))
    if not running:
        text = "nobody works on it: the command that began the sprint goes on"
        return (*steps, PathStep(time=events[-1].time, mark=Mark.NOW, text=text))
    asked = [event for event in events if event.name == "turn_started" or event.name in _ENDED]
    open_turn = asked[-1] if asked and asked[-1].name not in _ENDED else None
    last = open_turn or events[-1]
    text = f"{last.message if open_turn else 'at work'}, for {span(now - last.time)} now"
    return (*steps, PathStep(time=last.time, mark=Mark.NOW, text=text))


def as_data(steps: Iterable[PathStep]) -> list[dict[str, Any]]:
    """Returns the steps for `--json`."""
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
    """Returns the steps that `as_data` told. Raises ValueError for what are none."""
    names = PathStep.model_fields.keys()
    kept = [{name: value for name, value in one.items() if name in names and value is not None} for one in told]
    return tuple(PathStep.model_validate(one) for one in kept)
