"""The state of a running sprint: its stories, its commands, and the circuit breaker that stops further stories."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, Protocol

from orchestrator.core.command import CONTROL_GIVEN, CONTROL_SETTLED, Order, Settled, Verb
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import closing_notes, decisive
from orchestrator.core.history import FINISHED, STARTED, StoryHistory
from orchestrator.core.ports import Clock, EventSink
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus
from orchestrator.core.story import CellUpdate, Story
from orchestrator.core.value import counted, cut_at_word
from orchestrator.sprint.slots import closed_cells, story_cells

_CAUSE_CHARS = 300
"""Of the cause in the line that ends a story."""


class StoryRunner(Protocol):
    """Runs or joins one story's workflow."""

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """Runs or joins the workflow and returns the outcome, also of one that had ended before."""
        ...

    async def cut_story(self, workflow_id: str) -> None:
        """Interrupts the story, including a call in flight; the caller then calls `end_story` or `resume_story`."""
        ...

    async def end_story(self, workflow_id: str) -> None:
        """Ends the workflow permanently."""
        ...

    async def resume_story(self, workflow_id: str) -> None:
        """Resumes the story where it was interrupted; does nothing for one that has ended."""
        ...


class Renewer(Protocol):
    """Resets stories outside the supervisor's own state."""

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """Deletes their branches, logs it, and returns the record with a new generation for each."""
        ...

    async def clear(self, order: Order) -> None:
        """Does the same for the whole sprint."""
        ...

    async def merged(self, story: str) -> str | None:
        """Returns the commit that merged the story's current generation into the result, or None."""
        ...

    async def renewed_by(self, order: Order) -> bool:
        """Returns whether a process applied the order but died before it recorded that."""
        ...


class CellWriter(Protocol):
    """Accepts cell changes for the single writer of the backlog file."""

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        """Queues the changes."""
        ...


class SprintState:
    """The state of the stories: built from the log; changes go to the log and the backlog's cells."""

    def __init__(
        self,
        record: SprintRecord,
        histories: Mapping[str, StoryHistory],
        *,
        sink: EventSink,
        clock: Clock,
        cells: CellWriter,
        spent: Callable[[str], str] = lambda _story: "",
    ) -> None:
        """`spent` says in words what a story has cost so far."""
        self._spent = spent
        self.record, self.sink, self.clock, self.cells = record, sink, clock, cells
        self.status = {story: history.status for story, history in histories.items()}
        self.began = {story: history.started for story, history in histories.items() if history.started}
        self.blocked_by = {story: h.outcome.blocked_by for story, h in histories.items() if h.outcome}
        self.running: dict[asyncio.Task[StoryOutcome], str] = {}
        self.cleared = False
        """True once the whole sprint was reset."""

    @property
    def not_begun(self) -> list[str]:
        """Stories that have not started, in the order of the sprint."""
        return [story for story in self.record.story_ids if self.status[story] is StoryStatus.PENDING]

    @property
    def done(self) -> frozenset[str]:
        """Stories that are done."""
        return frozenset(story for story, status in self.status.items() if status is StoryStatus.DONE)

    async def start(self, story: Story) -> None:
        """Records that the story starts or is resumed; the time recorded first counts."""
        if self.status[story.id] is StoryStatus.PENDING:
            self.status[story.id] = StoryStatus.EXECUTING
        time = self.began[story.id] = await self._emit(
            story.id,
            STARTED,
            f"{story.id} starts: {story.title}",
            data={"criteria": list(story.acceptance_criteria), "texts": story.texts},
            known=self.began.get(story.id),
        )
        cells = story_cells(self.record, story.id, StoryStatus.EXECUTING, STARTED, {"Execution_Started_At": time})
        await self.cells.put([cells])

    async def end(self, outcome: StoryOutcome) -> None:
        """Records the story's outcome."""
        story, status = outcome.id, outcome.status
        self.status[story] = status
        self.blocked_by[story] = outcome.blocked_by
        good = status is StoryStatus.DONE
        why = "" if good else _why_ended(outcome, self._spent(story))
        notes = [cut_at_word(note, _CAUSE_CHARS) for note in closing_notes(outcome.findings) if note not in why]
        time = await self._emit(
            story,
            FINISHED,
            "; ".join((f"{story} is {status}{why}", *notes)),
            level=Level.ERROR if not good else Level.WARN if notes else Level.INFO,
            data={"outcome": outcome.model_dump(mode="json"), "status": status},
        )
        times = {"Execution_Completed_At": time}
        await self.cells.put([story_cells(self.record, story, status, FINISHED, times)])
        if good:
            times = {"Execution_Started_At": self.began.get(story, time), **times}
            await self.cells.put(closed_cells(self.record, story, times))

    def begin_again(self, stories: Sequence[str]) -> None:
        """Resets these stories to not started."""
        for story in stories:
            self.status[story] = StoryStatus.PENDING
            self.began.pop(story, None)
            self.blocked_by.pop(story, None)

    async def _emit(
        self,
        story: str,
        name: str,
        message: str,
        *,
        level: Level = Level.INFO,
        data: dict[str, Any],
        known: datetime | None = None,
    ) -> datetime:
        """Records a once-only fact of the story; returns the time recorded first."""
        event = Event(
            id=f"{self.record.workflow_id(story)}:{name}",
            time=known or self.clock.now(),
            level=level,
            name=name,
            message=message,
            sprint=self.record.sprint,
            story=story,
            data=data,
        )
        await self.sink.emit(event)
        return event.time


def _why(outcome: StoryOutcome) -> str:
    """Returns what the environment lacks, which concerns every story."""
    return next(finding.message for finding in outcome.findings if finding.code.startswith("environment."))


def _why_ended(outcome: StoryOutcome, spent: str) -> str:
    """Returns what decided the story's end, what it cost, and what helps."""
    finding = decisive(outcome.findings)
    if finding is None:
        return f" ({spent})" if spent else ""
    first = cut_at_word(finding.message.partition("\n")[0], _CAUSE_CHARS)
    return ": " + "; ".join(filter(None, (first, spent and f"it cost {spent}", finding.fix.rstrip("."))))


class CircuitBreaker:
    """Stops further stories when too many failed in a row, or one found that the environment lets none run.

    Counts from the log, so that a kill loses nothing; `failed` are those that failed in a row. A pause lasts until
    the running stories have ended and the report is written, or people end it; the next start counts from zero.
    """

    def __init__(
        self, record: SprintRecord, sink: EventSink, clock: Clock, *, stop_after: int, failed: Sequence[str] = ()
    ) -> None:
        self._record, self._sink, self._clock = record, sink, clock
        self._stop_after, self._failed = stop_after, [*failed]
        self.reason: str | None = None
        """Why no story may start, or None."""
        self._rests = False
        self._budget = self._refused = ""
        self._held = ""

    async def look(self) -> None:
        """Pauses if too many have failed, possibly before this process started."""
        count = len(self._failed)
        if self._stop_after and count >= self._stop_after:
            reason = f"{counted(count, 'story', 'stories')} failed in a row (sprint.stop_after_failures)"
            await self._pause(reason, self._failed[-1])

    async def after(self, outcome: StoryOutcome) -> None:
        """Counts the outcome of a story."""
        self._failed = [*self._failed, outcome.id] if outcome.status is StoryStatus.FAILED else []
        if outcome.stop_sprint:
            await self._pause(_why(outcome), outcome.id)
        await self.look()

    async def at_rest(self, left: Sequence[str], why: str = "", *, paused: str = "", interrupted: bool = False) -> None:
        """Reports that nothing runs any more; `left` are the stories that did not start.

        `why` names an order or a budget that holds the sprint without a failure, `paused` the sprint or story that
        people have paused. Reported once until it resumes.
        """
        reason = self.reason or why
        if not reason or self._rests:
            return
        self._rests = not interrupted
        told = f"the sprint rests: {reason}"
        told += f"; `orchestrator resume {paused}` ends the pause" if paused else ""
        told += f"; not started: {', '.join(left)}" if left else ""
        data = {"reason": reason, "not_begun": [*left], "interrupted": interrupted, "ordered": self.reason is None}
        level = Level.ERROR if self.reason else Level.WARN
        await self._emit("sprint_stopped", self._clock.now().isoformat(), told, level=level, data=data)

    async def goes_on(self) -> None:
        """Notes that something runs, or may start, again."""
        if self._rests:
            self._rests = False
            which = self._clock.now().isoformat()
            await self._emit("sprint_continued", which, f"sprint {self._record.sprint} goes on", data={})

    async def held(self, paused: Mapping[str, str], *, alone: bool) -> None:
        """Reports once what the sprint waits for when nothing else runs (`alone`); `paused`: who and why, by story."""
        why = "; ".join(paused.values())
        if alone and why and why != self._held:
            which = next(iter(paused)) if len(paused) == 1 else "STORY"
            told = f"the sprint waits: {why}; `orchestrator resume {which}` resumes it"
            data = {"reason": why, "stories": [*paused]}
            await self._emit("sprint_held", self._clock.now().isoformat(), told, level=Level.WARN, data=data)
        if alone or not why:
            self._held = why

    def released(self) -> None:
        """Resumes on people's request; failures count from zero."""
        self.reason, self._failed = None, []

    async def budget(self, used_up: str) -> None:
        """Reports an exhausted budget, once for each; "" when there is none."""
        # What is spent rises while calls that are under way end.
        if used_up and used_up.partition(")")[0] != self._budget.partition(")")[0]:
            told = f"the sprint pauses: {used_up}"
            data = {"reason": used_up}
            await self._emit("sprint_paused", f"budget:{used_up}", told, level=Level.ERROR, data=data)
        self._budget = used_up

    async def refused(self, reason: str) -> None:
        """Reports that the provider refuses our key or model, each time that this begins; "" when it does not."""
        if reason and reason != self._refused:
            then = f"`orchestrator resume {self._record.sprint}`" if self._record.executor else "the same command"
            told = f"the sprint pauses: {reason}; then {then} goes on"
            data = {"reason": reason}
            now = self._clock.now().isoformat()
            await self._emit("sprint_paused", f"refused:{now}", told, level=Level.ERROR, data=data)
        self._refused = reason

    async def _pause(self, reason: str, story: str) -> None:
        if self.reason is not None:
            return
        self.reason = reason
        told = (
            f"the sprint pauses: {reason}; once the running stories have ended, the same command resumes the open ones"
        )
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


def _nothing() -> str:
    return ""


class Board:
    """The orders of one sprint: current pauses, and orders not applied yet."""

    def __init__(self, sprint: str, over_budget: Callable[[], str] = _nothing, *, takes_slots: bool = True) -> None:
        """`over_budget` returns why no further call may be paid for, or "". With `takes_slots`, each workflow holds
        one of `concurrency.stories`."""
        self.sprint, self.takes_slots = sprint, takes_slots
        self._over = over_budget
        self._pause: Order | None = None
        self._held: dict[str, Order] = {}
        self._given: dict[int, Order] = {}
        self._settled: dict[str, bool] = {}
        self._open: tuple[Order, ...] = ()
        self._closing = False
        self._refused = ""
        self._moved = asyncio.Event()
        self.version = 0
        """Incremented with every change."""

    def read(self, events: Iterable[tuple[int, Event]]) -> None:
        """Adds events with their sequence numbers, in any order; ignores known ones and those without orders."""
        before = len(self._given) + len(self._settled)
        for number, event in events:
            if event.name == CONTROL_SETTLED:
                self._settled[event.data["settled"]["order"]] = event.data["settled"]["done"]
            elif event.name == CONTROL_GIVEN:
                self._given[number] = Order.model_validate(event.data["order"])
        if len(self._given) + len(self._settled) > before:
            self._add_up()

    def _add_up(self) -> None:
        orders = [self._given[number] for number in sorted(self._given)]
        self._pause, self._held = self._holding(orders)
        self._open = tuple(order for order in orders if order.id not in self._settled)
        self.look_again()

    def _holding(self, orders: Iterable[Order]) -> tuple[Order | None, dict[str, Order]]:
        """Returns the pauses of the sprint and of each story after these orders; a refused order has no effect."""
        pause: Order | None = None
        held: dict[str, Order] = {}
        for order in (order for order in orders if self._settled.get(order.id, True)):
            if order.verb is Verb.PAUSE:
                if order.story is None:
                    pause = pause or order
                else:
                    held.setdefault(order.story, order)
            elif order.verb is Verb.RESUME and order.story is not None:
                held.pop(order.story, None)
            elif order.verb is Verb.RESUME or (
                order.verb is Verb.RESET and not order.story and order.id in self._settled
            ):
                # Resetting a sprint also removes its pauses.
                pause, held = None, {}
        return pause, held

    def next_order(self) -> Order | None:
        """Returns the oldest order that is not applied; it stays until `settled`."""
        return self._open[0] if self._open else None

    def settled(self, result: Settled) -> None:
        """Notes that the order was applied or refused."""
        self._settled[result.order] = result.done
        self._add_up()

    def paused_before(self, order: Order) -> Order | None:
        """Returns the earlier order that paused this story or sprint already."""
        orders = [self._given[number] for number in sorted(self._given)]
        pause, held = self._holding(takewhile(lambda one: one.id != order.id, orders))
        return pause if order.story is None else held.get(order.story)

    @property
    def reason(self) -> str:
        """Returns why the whole sprint may take no further paid step; "" when it may."""
        if self._pause is not None:
            return _told(f"sprint {self.sprint}", self._pause)
        return self._refused or self._over()

    @property
    def only_paused(self) -> str:
        """Returns the sprint or story that waits for nothing but `resume`; "" when there is none, or more is amiss."""
        if self._pause is not None:
            return self.sprint
        return next(iter(self._held), "") if not self.reason else ""

    @property
    def refused(self) -> str:
        """Returns why the provider takes no call; "" when it may."""
        return self._refused

    def refuse(self, reason: str) -> None:
        """Lets no story pay for a call, because the provider refuses our key or model."""
        self._refused = reason
        self.look_again()

    def allow(self, reason: str = "") -> None:
        """Lets stories ask the provider again; with a reason only if it is what they are held for."""
        if not reason or reason == self._refused:
            self._refused = ""
            self.look_again()

    @property
    def budget(self) -> str:
        """Returns the exhausted budget; "" when there is none."""
        return self._over()

    def paused(self, story: str) -> str:
        """Returns by whom and why this story itself is paused; "" when it is not."""
        order = self._held.get(story)
        return _told(story, order) if order is not None else ""

    def held(self, story: str) -> str:
        """Returns why the story may start nothing, apart from the sprint's state; "" when it may."""
        paused = self.paused(story)
        if paused:
            return paused
        # A story that is about to be ended or restarted must not pay for a further call.
        waits = next((one for one in self._open if one.story in {None, story} and one.verb in _ENDING), None)
        return f"{waits.verb} was ordered by {waits.by}" if waits is not None else ""

    def why_not(self, story: str, *, paid: bool) -> str:
        """Returns why the story may not take its next step; "" when it may. `paid` marks a call of a model."""
        if self._closing:
            return "the process is ending"
        if self._pause is not None:
            return _told(f"sprint {self.sprint}", self._pause)
        return self.held(story) or ((self._refused or self._over()) if paid else "")

    def close(self) -> None:
        """Stops all further steps in this process."""
        self._closing = True
        self.look_again()

    def look_again(self) -> None:
        """Wakes all waiters because something may have changed."""
        self.version += 1
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def moved(self, since: int) -> None:
        """Waits until something may have changed since version `since` of the board."""
        if self.version == since:
            await self._moved.wait()


_ENDING = frozenset({Verb.CANCEL, Verb.RESET})


def _told(what: str, order: Order) -> str:
    return f"{what} is paused by {order.by}" + (f": {order.comment}" if order.comment else "")
