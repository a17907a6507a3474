"""A story's path: its events folded into the steps that decided something, with what came about on the way (pure)."""

from collections.abc import Iterable
from datetime import datetime

from orchestrator.domain.base import Value
from orchestrator.domain.events import Event
from orchestrator.domain.gate import GATE_ANSWERED, GATE_SETTLED
from orchestrator.sprint.path_texts import INNER, NOTES, STEPS, Mark, Told, findings_of, number, other, verdict_of


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
    """What came about on the way: retries, healings, commands."""
    inner: bool = False
    """Whether it belongs to a loop within the next step."""
    codes: tuple[str, ...] = ()
    """Of the findings that decided."""


def story_path(events: Iterable[Event]) -> tuple[PathStep, ...]:
    """The steps of one story in order; `events` are those of its present generation."""
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
