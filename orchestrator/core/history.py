"""Folds over the event log: what happened to each story of a sprint in its current generation, and what all cost."""

import base64
import json
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from orchestrator.core.breakdown import ArchitecturalConflict
from orchestrator.core.calls.spending import PersonaSpending, amount_in
from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, Gate
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding, major
from orchestrator.core.sprint import (
    SprintRecord,
    StoryOutcome,
    StoryStatus,
    Tokens,
)
from orchestrator.core.suite import BASE_TRIED

STARTED, FINISHED, CONFLICT = "story_started", "story_finished", "conflict_detected"
TURN, SHOWN = "turn_finished", "files_shown"
SPENT = frozenset({TURN, "turn_failed"})
"""Events with tokens and money in them."""
_FOLDED = frozenset({STARTED, FINISHED, SHOWN, *SPENT})
_CONTRACTS = frozenset({"contract_frozen", "contract_amended"})
"""Events whose data is half of the log, and that only who shows one story looks at."""
# Of an event as it is stored: within a text its quotes would be escaped, and before it stand an id and a time alone.
_DATA = '"data": {'
_NAME = re.compile(r'"level": "\w+", "name": "(\w+)"')


class Logged(NamedTuple):
    """An event as it is stored. Decoding is what takes the time where a sprint has a thousand stories."""

    id: str
    story: str | None
    body: str

    @classmethod
    def of(cls, event: Event) -> "Logged":
        """Returns the event as it would be stored."""
        return cls(event.id, event.story, body_of(event.model_dump(mode="json")))

    @property
    def name(self) -> str:
        """Returns the event's name."""
        found = _NAME.search(self.body)
        return found[1] if found else str(self.decoded()["name"])

    def decoded(self) -> dict[str, Any]:
        """Returns the event as it was recorded."""
        return _decoded(self.body)

    def in_short(self) -> "Logged":
        """Returns the event without the contract, which neither a report nor resuming a sprint needs."""
        if self.name not in _CONTRACTS:
            return self
        head, _, _ = self.body.partition(_DATA)
        return self._replace(body=f"{head}{_DATA}}}}}")


@dataclass
class StoryHistory:
    """One story's events, added up."""

    started: datetime | None = None
    finished: datetime | None = None
    outcome: StoryOutcome | None = None
    calls: int = 0
    """All that were paid for, like tokens and cost: also before the story was reset or planned again."""
    earlier_calls: int = 0
    """Those before that."""
    looks: int = 0
    """Calls whose reply only asked to be shown files."""
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = 0.0
    usd: float = 0.0
    """The part of the cost that is known."""
    personas: dict[str, PersonaSpending] = field(default_factory=dict)
    """The same calls by persona."""
    criteria: tuple[str, ...] | None = None
    """The acceptance criteria that the story began with; None before, and for a log that does not tell."""
    keeps: Collection[str] | None = None
    """Names of the events that are kept besides the last one; None: all are kept."""
    _kept: list[tuple[str, str]] = field(default_factory=list)
    """Names of events, and events as JSON: of a thousand stories the values would take seven times as much."""

    @property
    def events(self) -> list[Event]:
        """In their order, built on every access."""
        return [event_of(body) for _, body in self._kept]

    def select(self, names: Collection[str]) -> list[Event]:
        """Returns the events of these names, in their order, built on every call."""
        return [event_of(body) for name, body in self._kept if name in names]

    @property
    def last(self) -> Event | None:
        """The last event; None before the first."""
        return event_of(self._kept[-1][1]) if self._kept else None

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
        asked = [Gate.model_validate(event.data["gate"]) for event in self.select({GATE_OPENED})]
        answered = {event.data["answer"]["number"] for event in self.select({GATE_ANSWERED})}
        return asked[-1] if asked and asked[-1].number not in answered else None

    @property
    def duration_s(self) -> float:
        """Seconds from start to end, 0 while either is missing."""
        return (self.finished - self.started).total_seconds() if self.started and self.finished else 0.0

    def add(self, logged: Logged) -> None:
        """Take in one more event."""
        name = logged.name
        if self._kept and self._is_passing(self._kept[-1][0]):
            self._kept[-1] = (name, logged.body)  # at once: other threads read meanwhile
        else:
            self._kept.append((name, logged.body))
        if name not in _FOLDED:
            return
        told = logged.decoded()
        data = told["data"]
        if name == STARTED:
            self.started = datetime.fromisoformat(told["time"])
            self.criteria = None if data.get("criteria") is None else tuple(data["criteria"])
        elif name == FINISHED:
            self.finished = datetime.fromisoformat(told["time"])
            self.outcome = StoryOutcome.model_validate(data["outcome"])
        elif name == SHOWN:
            self.looks += bool(data.get("only"))
        else:
            self._add_call(told)

    def _is_passing(self, name: str) -> bool:
        """Returns whether nothing is left of an event when the next one comes."""
        return self.keeps is not None and name not in self.keeps

    def add_earlier(self, logged: Logged) -> None:
        """Takes in an event of an earlier generation, of which only its cost counts."""
        if logged.name in SPENT:
            before = self.calls
            self._add_call(logged.decoded())
            self.earlier_calls += self.calls - before

    def _add_call(self, told: Mapping[str, Any]) -> None:
        data, persona = told["data"], told.get("persona") or ""
        took = amount_in(data)
        if took is None:
            return
        tokens = Tokens(input=data["input_tokens"], cached=data["cached_tokens"], output=data["output_tokens"])
        call = PersonaSpending(persona=persona, calls=took.calls, tokens=tokens, cost_usd=data["cost_usd"])
        before = self.personas.get(persona)
        self.personas[persona] = before + call if before is not None else call
        mine = PersonaSpending(persona="", calls=self.calls, tokens=self.tokens, cost_usd=self.cost_usd) + call
        self.calls, self.tokens, self.cost_usd = mine.calls, mine.tokens, mine.cost_usd
        self.usd += took.usd


def event_of(body: str) -> Event:
    """Returns the event of a row of the log."""
    # json.loads, because a model's text may hold half a surrogate pair, which pydantic's parser refuses.
    return Event.model_validate(_decoded(body))


LARGE_DATA = 1024
"""Characters of an event from which its data is stored deflated: a contract lists every file of the project."""


def body_of(told: dict[str, Any]) -> str:
    """Returns the row of the log for an event's fields. Raises ValueError for data that is no JSON."""
    body = json.dumps(told)
    if len(body) < LARGE_DATA:
        return body
    deflated = base64.b64encode(zlib.compress(json.dumps(told["data"]).encode())).decode("ascii")
    return json.dumps({**told, "data": {"deflated": deflated}})


def _decoded(body: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(body)
    if set(told["data"]) == {"deflated"}:
        told["data"] = json.loads(zlib.decompress(base64.b64decode(told["data"]["deflated"])))
    return told


def conflict_of(history: StoryHistory) -> ArchitecturalConflict | None:
    """Returns the conflict that the story ended in, if it did."""
    if history.status is not StoryStatus.CONFLICTED:
        return None
    found = [event.data["conflict"] for event in history.select({CONFLICT})]
    return ArchitecturalConflict.model_validate(found[-1]) if found else None


class SprintFold:
    """The histories of a sprint's stories, added up event by event."""

    def __init__(self, record: SprintRecord, *, keeps: Collection[str] | None = None) -> None:
        """`keeps`: as of StoryHistory."""
        self.histories = {story: StoryHistory(keeps=keeps) for story in record.story_ids}
        self._prefixes = {story: f"{record.workflow_id(story)}:" for story in record.story_ids}

    def add(self, event: Event | Logged) -> None:
        """Takes in an event; one of no story of the selection is left out."""
        if event.story not in self.histories:
            return
        logged = event if isinstance(event, Logged) else Logged.of(event)
        if event.id.startswith(self._prefixes[event.story]):
            self.histories[event.story].add(logged)
        else:
            self.histories[event.story].add_earlier(logged)


def fold(record: SprintRecord, events: Iterable[Event | Logged]) -> dict[str, StoryHistory]:
    """Story id → history, for every story of the selection."""
    folded = SprintFold(record)
    for event in events:
        folded.add(event)
    return folded.histories


def is_finished(histories: dict[str, StoryHistory]) -> bool:
    """Returns whether every story has its outcome."""
    return all(history.outcome is not None for history in histories.values())


def last_rest(events: Iterable[Event]) -> datetime | None:
    """Returns when the sprint last paused for its failures, None before; `events` are those of the sprint itself, in
    order. What people or budgets paused says nothing of failures."""
    times = [event.time for event in events if event.name == "sprint_stopped" and not event.data.get("ordered")]
    return times[-1] if times else None


def why_it_rests(events: Iterable[Event]) -> str:
    """Why no further story begins, "" unless the sprint paused and did not go on since; `events` as for `last_rest`."""
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


def kept_open(reason: str, status: StoryStatus) -> Finding:
    """What is said of a story that the pause kept from beginning, or from ending."""
    begun = "not started" if status is StoryStatus.PENDING else "not finished"
    return major(
        "sprint.paused",
        f"{begun}: the sprint paused: {reason}",
        fix="remove the cause, then give the same command again: it resumes this story",
    )
