"""When no further story of a sprint begins: too many failed one after the other, or the credentials are refused.

Counted from the log, so that a kill forgets nothing. A pause lasts until what ran has ended and the report says so, or
somebody ended it: the next start then goes on, and counts anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from orchestrator.domain.base_trial import BASE_TRIED
from orchestrator.domain.events import Event, Level
from orchestrator.domain.findings import Finding, major
from orchestrator.domain.outcome import StoryOutcome
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.words import counted
from orchestrator.ports import Clock, EventSink
from orchestrator.sprint.history import StoryHistory


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
