"""How the stories of a sprint stand while it is driven.

What a sprint's supervisor works through.

Who of a sprint may take its next step, as people, budgets and the end of the process have it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Protocol

from orchestrator.core.command import CONTROL_GIVEN, CONTROL_SETTLED, Order, Settled, Verb
from orchestrator.core.event import Event
from orchestrator.core.history import StoryHistory
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus, step_to
from orchestrator.core.story import CellUpdate


class Standing:
    """Made from the log, and kept as it grows."""

    def __init__(self, record: SprintRecord, histories: Mapping[str, StoryHistory]) -> None:
        self.record = record
        self.status = {story: history.status for story, history in histories.items()}
        self.began = {story: history.started for story, history in histories.items() if history.started}
        self.blocked_by = {story: h.outcome.blocked_by for story, h in histories.items() if h.outcome}
        self.running: dict[asyncio.Task[StoryOutcome], str] = {}
        self.cleared = False
        """Whether the whole sprint was reset: it is as if it had not been."""

    @property
    def not_begun(self) -> list[str]:
        """In the order of the sprint."""
        return [story for story in self.record.story_ids if self.status[story] is StoryStatus.PENDING]

    @property
    def done(self) -> frozenset[str]:
        """Stories that are done."""
        return frozenset(story for story, status in self.status.items() if status is StoryStatus.DONE)

    def ended(self, outcome: StoryOutcome) -> None:
        """The story has its outcome."""
        self.status[outcome.id] = step_to(self.status[outcome.id], outcome.status)
        self.blocked_by[outcome.id] = outcome.blocked_by

    def begin_anew(self, stories: Sequence[str]) -> None:
        """As if they had not been run."""
        for story in stories:
            self.status[story] = StoryStatus.PENDING
            self.began.pop(story, None)
            self.blocked_by.pop(story, None)


class StoryRunner(Protocol):
    """Runs or joins one story's workflow."""

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """The outcome, also when the workflow had ended before."""
        ...

    async def cut_story(self, workflow_id: str) -> None:
        """Cut what it does, a call in flight too; `end_story` or `resume_story` then says what becomes of it."""
        ...

    async def end_story(self, workflow_id: str) -> None:
        """End it for good, whatever it does."""
        ...

    async def resume_story(self, workflow_id: str) -> None:
        """Let it go on where it was cut; one that has ended stays as it is."""
        ...


class Renewer(Protocol):
    """Makes stories as if they had not been run, outside of what the supervisor itself knows."""

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """Their branches are gone, the log says so, the record has a new generation for each: that record."""
        ...

    async def clear(self, order: Order) -> None:
        """So for the whole sprint."""
        ...

    async def merged(self, story: str) -> str | None:
        """The commit that brought the story's work into the result, as it is run now."""
        ...

    async def renewed_by(self, order: Order) -> bool:
        """Whether the order was carried out by a process that could not say so any more."""
        ...


class CellWriter(Protocol):
    """Takes cell changes for the one writer of the backlog file."""

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        """Queue the changes."""
        ...


def _nothing() -> str:
    return ""


class Board:
    """The orders of one sprint: what they hold, and those that nobody has carried out yet."""

    def __init__(self, sprint: str, over_budget: Callable[[], str] = _nothing, *, takes_slots: bool = True) -> None:
        """`over_budget` says why no further call may be paid for, "" when it may. `takes_slots`: whether each of its
        workflows holds one of `concurrency.stories`."""
        self.sprint, self.takes_slots = sprint, takes_slots
        self._over = over_budget
        self._pause: Order | None = None
        self._held: dict[str, Order] = {}
        self._given: dict[int, Order] = {}
        self._settled: dict[str, bool] = {}
        self._open: tuple[Order, ...] = ()
        self._closing = False
        self._moved = asyncio.Event()
        self.version = 0
        """Rises with every change."""

    def read(self, events: Iterable[tuple[int, Event]]) -> None:
        """Take in events with their sequence numbers, however they come; no orders, and known ones, add nothing."""
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
        """The pause of the sprint, and of each story, after these orders; one that was refused holds nothing."""
        pause: Order | None = None
        held: dict[str, Order] = {}
        for order in (order for order in orders if self._settled.get(order.id, True)):
            if order.verb is Verb.PAUSE:
                if order.story is None:
                    pause = pause or order
                else:
                    held.setdefault(order.story, order)
            elif order.story is None and (order.verb is Verb.RESUME or self._was_reset_by(order)):
                # A sprint that was reset is as if it had not been, its pauses included.
                pause, held = None, {}
            elif order.verb is Verb.RESUME and order.story is not None:
                held.pop(order.story, None)
        return pause, held

    def _was_reset_by(self, order: Order) -> bool:
        return order.verb is Verb.RESET and order.id in self._settled

    def next_order(self) -> Order | None:
        """The oldest order that is not carried out; it stays until `settled`."""
        return self._open[0] if self._open else None

    def settled(self, result: Settled) -> None:
        """The order was carried out, or refused."""
        self._settled[result.order] = result.done
        self._add_up()

    def paused_before(self, order: Order) -> Order | None:
        """The earlier order under which the story, or the sprint, of this pause was held already."""
        orders = [self._given[number] for number in sorted(self._given)]
        pause, held = self._holding(takewhile(lambda one: one.id != order.id, orders))
        return pause if order.story is None else held.get(order.story)

    @property
    def reason(self) -> str:
        """Why the sprint as a whole takes no further step that costs; "" when it does."""
        if self._pause is not None:
            return _told(f"sprint {self.sprint}", self._pause)
        return self._over()

    @property
    def budget(self) -> str:
        """Which budget is used up; "" when none is."""
        return self._over()

    def paused(self, story: str) -> str:
        """By whom and why people have paused this very story; "" when they have not."""
        order = self._held.get(story)
        return _told(story, order) if order is not None else ""

    def held(self, story: str) -> str:
        """Why the story begins nothing, whatever the sprint does; "" when nothing holds it."""
        paused = self.paused(story)
        if paused:
            return paused
        # What is to be ended or begun anew must not pay for a further call first.
        waits = next((one for one in self._open if one.story in {None, story} and one.verb in _ENDING), None)
        return f"{waits.verb} was ordered by {waits.by}" if waits is not None else ""

    def why_not(self, story: str, *, paid: bool) -> str:
        """Why the story may not take its next step now; "" when it may. `paid`: the step is a call of a model."""
        if self._closing:
            return "the process is ending"
        if self._pause is not None:
            return _told(f"sprint {self.sprint}", self._pause)
        return self.held(story) or (self._over() if paid else "")

    def close(self) -> None:
        """Nobody takes a further step in this process."""
        self._closing = True
        self.look_again()

    def look_again(self) -> None:
        """Something may have changed: whoever waits looks."""
        self.version += 1
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def moved(self, since: int) -> None:
        """Until something may have changed since the board's version was `since`."""
        if self.version == since:
            await self._moved.wait()


_ENDING = frozenset({Verb.CANCEL, Verb.RESET})


def _told(what: str, order: Order) -> str:
    return f"{what} is paused by {order.by}" + (f": {order.comment}" if order.comment else "")
