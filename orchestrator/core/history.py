"""Folds over the event log: what happened to each story of a sprint, in its current generation.

When no further story of a sprint begins: too many failed one after the other, or the credentials are refused.

Counted from the log, so that a kill forgets nothing. A pause lasts until what ran has ended and the report says so, or
somebody ended it: the next start then goes on, and counts anew.

Stories of a sprint whose events were pruned, as its report tells them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from orchestrator.core.breakdown import ArchitecturalConflict
from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, Gate
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import Finding, major
from orchestrator.core.ports import Clock, EventSink
from orchestrator.core.sprint import (
    PLAN_READING,
    Pruning,
    SprintRecord,
    SprintReport,
    StoryOutcome,
    StoryReport,
    StoryStatus,
    Tokens,
)
from orchestrator.core.suite import BASE_TRIED
from orchestrator.core.value import counted

STARTED, FINISHED, CONFLICT = "story_started", "story_finished", "conflict_detected"
_CONTRACTS = frozenset({"contract_frozen", "contract_amended"})
"""Events whose data is half of the log, and that only who shows one story looks at."""


@dataclass
class StoryHistory:
    """One story's events, added up."""

    started: datetime | None = None
    finished: datetime | None = None
    outcome: StoryOutcome | None = None
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = 0.0
    last_message: str = ""
    criteria: tuple[str, ...] | None = None
    """The acceptance criteria that the story began with; None before, and for a log that does not tell."""
    _kept: list[str] = field(default_factory=list)
    """The events as JSON: of a thousand stories the values would take seven times as much."""

    @property
    def events(self) -> list[Event]:
        """In their order, made anew each time."""
        return [Event.model_validate(json.loads(kept)) for kept in self._kept]

    @property
    def status(self) -> StoryStatus:
        """Where the story is."""
        if self.outcome is not None:
            return self.outcome.status
        return StoryStatus.EXECUTING if self.started else StoryStatus.PENDING

    @property
    def waits_for(self) -> Gate | None:
        """What a person is asked and has not answered yet."""
        if self.outcome is not None:
            return None
        events = self.events
        asked = [Gate.model_validate(event.data["gate"]) for event in events if event.name == GATE_OPENED]
        answered = {event.data["answer"]["number"] for event in events if event.name == GATE_ANSWERED}
        return asked[-1] if asked and asked[-1].number not in answered else None

    @property
    def duration_s(self) -> float:
        """Seconds from start to end, 0 while either is missing."""
        return (self.finished - self.started).total_seconds() if self.started and self.finished else 0.0

    def add(self, event: Event) -> None:
        """Take in one more event."""
        self._kept.append(json.dumps(event.model_dump(mode="json"), separators=(",", ":")))
        self.last_message = event.message
        if event.name == STARTED:
            self.started = event.time
            told = event.data.get("criteria")
            self.criteria = None if told is None else tuple(told)
        elif event.name == FINISHED:
            self.finished = event.time
            self.outcome = StoryOutcome.model_validate(event.data["outcome"])
        elif event.name == "turn_finished" and event.data.get("paid"):
            self._add_call(event)

    def _add_call(self, event: Event) -> None:
        self.calls += 1
        self.tokens = Tokens(
            input=self.tokens.input + event.data["input_tokens"],
            cached=self.tokens.cached + event.data["cached_tokens"],
            output=self.tokens.output + event.data["output_tokens"],
        )
        cost = event.data["cost_usd"]
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost


def conflict_of(history: StoryHistory) -> ArchitecturalConflict | None:
    """The conflict that the story ended in, if it did."""
    if history.status is not StoryStatus.CONFLICTED:
        return None
    found = [event.data["conflict"] for event in history.events if event.name == CONFLICT]
    return ArchitecturalConflict.model_validate(found[-1]) if found else None


def in_short(event: Event) -> Event:
    """The event, without the contract, which neither a report nor going on with a sprint asks for."""
    return event.model_copy(update={"data": {}}) if event.name in _CONTRACTS else event


def fold(record: SprintRecord, events: Iterable[Event]) -> dict[str, StoryHistory]:
    """Story id → history, for every story of the selection."""
    histories = {story: StoryHistory() for story in record.story_ids}
    # What was paid for reading a person's plan was paid for the story, also where another text took its place.
    own = {story: record.workflow_id(story) for story in record.story_ids}
    prefixes = {story: (f"{workflow_id}:", f"{workflow_id}{PLAN_READING}") for story, workflow_id in own.items()}
    for event in events:
        if event.story in histories and event.id.startswith(prefixes[event.story]):
            histories[event.story].add(event)
    return histories


def is_finished(histories: dict[str, StoryHistory]) -> bool:
    """Whether every story has its outcome."""
    return all(history.outcome is not None for history in histories.values())


class Rest(NamedTuple):
    """That a paused sprint came to rest."""

    since: datetime
    reason: str
    """Why no further story began."""
    interrupted: bool
    """Whether somebody ended it, and knows; else its report tells."""


def rests(events: Iterable[Event]) -> list[Rest]:
    """`events` are those of the sprint itself, in order. What people or budgets paused says nothing of failures."""
    return [
        Rest(event.time, event.data["reason"], event.data["interrupted"])
        for event in events
        if event.name == "sprint_stopped" and not event.data.get("ordered")
    ]


def why_it_rests(events: Iterable[Event]) -> str:
    """Why no further story begins, "" unless the sprint paused and did not go on since; `events` as for `rests`."""
    names = {"sprint_started", "sprint_continued", "sprint_stopped", BASE_TRIED}
    return next((event.data.get("reason", "") for event in reversed([*events]) if event.name in names), "")


def failed_in_a_row(histories: Mapping[str, StoryHistory], since: datetime | None) -> tuple[str, ...]:
    """The stories that ended last and failed, one after the other, oldest first; only those that ended after `since`.

    Blocked stories never began and say nothing.
    """
    ended = [
        (history.finished, story, history.status is StoryStatus.FAILED)
        for story, history in histories.items()
        if history.finished is not None and history.status is not StoryStatus.BLOCKED
    ]
    late = sorted(one for one in ended if since is None or one[0] > since)
    return tuple(story for _, story, _ in takewhile(lambda one: one[2], reversed(late)))[::-1]


def not_begun(reason: str) -> Finding:
    """What is said of a story that the pause kept from beginning."""
    return major(
        "sprint.paused",
        f"not begun: the sprint paused: {reason}",
        fix="remove the cause, then give the same command again: it goes on with this story",
    )


def _why(outcome: StoryOutcome) -> str:
    """What concerns every story."""
    lacks = (finding.message for finding in outcome.findings if finding.code.startswith("environment."))
    return next(lacks, "the provider refuses our credentials")


class Brake:
    """Whether further stories begin; `failed` are those that failed in a row up to now."""

    def __init__(
        self, record: SprintRecord, sink: EventSink, clock: Clock, *, stop_after: int, failed: Sequence[str] = ()
    ) -> None:
        self._record, self._sink, self._clock = record, sink, clock
        self._stop_after, self._failed = stop_after, [*failed]
        self.reason: str | None = None
        """Why none begins, when that is so."""
        self._rests = False
        self._budget = ""
        self._held = ""

    async def look(self) -> None:
        """Pause when too many have failed by now; they may have before this process began."""
        count = len(self._failed)
        if self._stop_after and count >= self._stop_after:
            reason = f"{counted(count, 'story', 'stories')} failed in a row (sprint.stop_after_failures)"
            await self._pause(reason, self._failed[-1])

    async def after(self, outcome: StoryOutcome) -> None:
        """A story ended."""
        self._failed = [*self._failed, outcome.id] if outcome.status is StoryStatus.FAILED else []
        if outcome.stop_sprint:
            await self._pause(_why(outcome), outcome.id)
        await self.look()

    async def at_rest(self, left: Sequence[str], why: str = "", *, interrupted: bool = False) -> None:
        """Nothing runs any more, or will in a moment; `left` are the stories that did not begin.

        `why` is what holds the sprint where that is no failure: an order, a budget. Told once until it goes on.
        """
        reason = self.reason or why
        if not reason or self._rests:
            return
        self._rests = not interrupted
        told = f"the sprint rests; {', '.join(left) or 'no story'} not begun: {reason}"
        data = {"reason": reason, "not_begun": [*left], "interrupted": interrupted, "ordered": self.reason is None}
        level = Level.ERROR if self.reason else Level.WARN
        await self._emit("sprint_stopped", self._clock.now().isoformat(), told, level=level, data=data)

    async def goes_on(self) -> None:
        """Something runs, or may begin, again."""
        if self._rests:
            self._rests = False
            which = self._clock.now().isoformat()
            await self._emit("sprint_continued", which, f"sprint {self._record.sprint} goes on", data={})

    async def held(self, paused: Mapping[str, str], *, alone: bool) -> None:
        """Tell once what is waited for when nothing else happens (`alone`); `paused` is by whom and why, per story."""
        why = "; ".join(paused.values())
        if alone and why and why != self._held:
            which = next(iter(paused)) if len(paused) == 1 else "STORY"
            told = f"the sprint waits: {why}; `orchestrator resume {which}` lets it go on"
            data = {"reason": why, "stories": [*paused]}
            await self._emit("sprint_held", self._clock.now().isoformat(), told, level=Level.WARN, data=data)
        if alone or not why:
            self._held = why

    def released(self) -> None:
        """People want it to go on, and failures are counted anew."""
        self.reason, self._failed = None, []

    async def budget(self, used_up: str) -> None:
        """Tell which budget is used up, once for each; "" when none is."""
        if used_up and used_up != self._budget:
            told = f"the sprint pauses: {used_up}"
            data = {"reason": used_up}
            await self._emit("sprint_paused", f"budget:{used_up}", told, level=Level.ERROR, data=data)
        self._budget = used_up

    async def _pause(self, reason: str, story: str) -> None:
        if self.reason is not None:
            return
        self.reason = reason
        told = f"the sprint pauses: {reason}; once what runs has ended, the same command goes on with the open stories"
        by = self._record.workflow_id(story)
        await self._emit("sprint_paused", by, told, level=Level.ERROR, data={"reason": reason})

    async def _emit(
        self, name: str, which: str, message: str, *, level: Level = Level.INFO, data: dict[str, Any]
    ) -> None:
        sprint = self._record.sprint
        id_ = f"{sprint}:{name.removeprefix('sprint_')}:{which}"
        time = self._clock.now()
        await self._sink.emit(
            Event(id=id_, time=time, level=level, name=name, message=message, sprint=sprint, data=data)
        )


def expect_kept(record: SprintRecord) -> None:
    """Raises ConfigError for a sprint that was pruned, of which only record, report and result branch are left."""
    if record.pruned is not None:
        raise ConfigError(
            f"sprint {record.sprint} is over and was pruned on {record.pruned.at:%Y-%m-%d}: its report "
            f"(reports/{record.sprint}/report.md in the state folder) and its result branch are left; "
            "`orchestrator reset STORY` frees a row of it for another sprint"
        )


def kept_histories(record: SprintRecord, pruning: Pruning, report: SprintReport | None) -> dict[str, StoryHistory]:
    """Story id → its outcome and what it cost, without events or times; without a report how it had ended."""
    told = {story.id: story for story in report.stories} if report else {}
    said = f"pruned on {pruning.at:%Y-%m-%d}; its report is kept"
    return {story: _history(story, told.get(story), pruning, said) for story in record.story_ids}


def _history(story: str, told: StoryReport | None, pruning: Pruning, said: str) -> StoryHistory:
    if told is None:
        status = pruning.statuses.get(story, StoryStatus.FAILED)
        return StoryHistory(outcome=StoryOutcome(id=story, status=status), last_message=said)
    outcome = StoryOutcome(
        id=story,
        status=told.status,
        attempts=told.attempts,
        tasks=told.tasks,
        tests=told.tests,
        findings=told.findings,
        branch=told.branch,
        commit=told.commit,
    )
    return StoryHistory(
        outcome=outcome, calls=told.calls, tokens=told.tokens, cost_usd=told.cost_usd, last_message=said
    )
