"""Waiting for people: one poller for all gates of a process, an answer that counts once, a deadline that is stored."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import NamedTuple

from orchestrator.core.command import GATE_ANSWERED, NOBODY, Choice, Gate, GateAnswer, answer_id
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.core.ports import Clock, EventSink

POLL_S = 0.5
"""Seconds between two checks of the log while an answer is awaited."""

GiveBack = Callable[[str], AbstractAsyncContextManager[None]]
"""Workflow id → a context in which the story holds no slot; leaving it waits for one."""


class _Waiting(NamedTuple):
    """One story at a gate."""

    event: asyncio.Future[Event | None]
    """The answer; None when the deadline has passed."""
    deadline: datetime | None


class GateKeeper:
    """Waits for answers on behalf of all stories of a process. Use as an async context manager.

    An answer is the event `answer_id`, written by this process or another, possibly while ours was not running. The
    sink stores an id once: of two people, or a person and the deadline, the first counts.
    """

    def __init__(self, sink: EventSink, clock: Clock, give_back: GiveBack) -> None:
        self._sink, self._clock, self._give_back = sink, clock, give_back
        self._awaited: dict[str, _Waiting] = {}
        self._somebody = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "GateKeeper":
        self._poller = asyncio.create_task(self._poll(), name="gate-poller")
        self._poller.add_done_callback(self._poller_ended)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def opened(self, gate: Gate, number: int, timeout_s: float | None) -> Gate:
        """Returns the gate as it is put to people: its number, now, and its deadline."""
        now = self._clock.now()
        deadline = None if timeout_s is None else now + timedelta(seconds=timeout_s)
        return gate.model_copy(update={"number": number, "opened_at": now, "deadline": deadline})

    async def answer(self, workflow_id: str, sprint: str, story: str, gate: Gate) -> GateAnswer:
        """Returns the answer that counts; waits for it without a slot of the sprint.

        An answer given while no process was running is handled in the same way, because the engine resumes all
        answered stories at once, however many slots there are.
        """
        async with self._give_back(workflow_id):
            return await self._awaited_answer(answer_id(workflow_id, gate.number), sprint, story, gate)

    async def _awaited_answer(self, name: str, sprint: str, story: str, gate: Gate) -> GateAnswer:
        self._awaited[name] = waiting = _Waiting(asyncio.get_running_loop().create_future(), gate.deadline)
        self._somebody.set()
        try:
            event = await waiting.event
        finally:
            del self._awaited[name]
            if not self._awaited:
                self._somebody.clear()
        return _answer(event) if event is not None else await self._timed_out(name, sprint, story, gate)

    async def _timed_out(self, name: str, sprint: str, story: str, gate: Gate) -> GateAnswer:
        """Nobody's answer, recorded like a person's; a person's that came a moment earlier goes first."""
        answer = GateAnswer(number=gate.number, choice=Choice.TIME_OUT, by=NOBODY)
        event = Event(
            id=name,
            time=self._clock.now(),
            level=Level.WARN,
            name=GATE_ANSWERED,
            message=f"{story}: nobody answered question {gate.number} in time",
            sprint=sprint,
            story=story,
            data={"answer": answer.model_dump(mode="json")},
        )
        if await self._sink.emit(event):
            return answer
        return _answer((await self._sink.find([name]))[name])

    async def _poll(self) -> None:
        while True:
            await self._somebody.wait()
            found = await self._look()
            if found is not None:
                self._settle(found)
            await asyncio.sleep(POLL_S)

    def _poller_ended(self, poller: asyncio.Task[None]) -> None:
        """Fails the waiting stories when the poller has died: a defect of ours must not let them wait forever."""
        error = None if poller.cancelled() else poller.exception()
        for waiting in self._awaited.values():
            if error is not None and not waiting.event.done():
                waiting.event.set_exception(error)

    async def _look(self) -> Mapping[str, Event] | None:
        """Returns what was answered; None while the database is away: who waits for days waits for that too."""
        try:
            return await self._sink.find(tuple(self._awaited))
        except ConfigError:  # the log is unavailable: ask again at the next check
            return None

    def _settle(self, found: Mapping[str, Event]) -> None:
        now = self._clock.now()  # looked at each time: a timer stands still while a machine sleeps
        for name, waiting in self._awaited.items():
            passed = waiting.deadline is not None and now >= waiting.deadline
            if not waiting.event.done() and (name in found or passed):
                waiting.event.set_result(found.get(name))


def _answer(event: Event) -> GateAnswer:
    return GateAnswer.model_validate(event.data["answer"])
