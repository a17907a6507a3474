"""Commands on their way from the log to the sprints of this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from types import TracebackType
from typing import Protocol

from orchestrator.core.command import CONTROL_MARK
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.engine.gates import POLL_S, GiveBack
from orchestrator.sprint.state import Board

AGAIN_S = 300.0
"""After which a sprint that was held for a service that is away tries it again."""


class OrderLog(Protocol):
    """Source of orders."""

    async def since(self, after_seq: int, *, mark: str) -> list[tuple[int, Event]]:
        """Events behind a sequence number whose id contains `mark`, in order. Raises ConfigError while it is away."""
        ...


class Switchboard:
    """The boards of this process's sprints. Use as an async context manager: one poller looks for orders."""

    def __init__(self, log: OrderLog, give_back: GiveBack) -> None:
        self._log, self._give_back = log, give_back
        self._boards: dict[str, Board] = {}
        self._followed = asyncio.Event()
        self._after = 0
        self._poller: asyncio.Task[None] | None = None
        self._at_work = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def __aenter__(self) -> "Switchboard":
        self._poller = asyncio.create_task(self._poll(), name="order-poller")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    @contextmanager
    def following(self, board: Board) -> Iterator[None]:
        """Routes the sprint's orders to its board inside the block; the caller reads in earlier orders."""
        self._boards[board.sprint] = board
        if self._closing:
            board.close()
        followed, self._followed = self._followed, asyncio.Event()
        followed.set()
        try:
            yield
        finally:
            del self._boards[board.sprint]
            board.look_again()

    @property
    def at_work(self) -> int:
        """Calls and commands under way."""
        return self._at_work

    def ticket(self, workflow_id: str, sprint: str, story: str) -> "Ticket":
        """Returns the ticket of one workflow."""
        return Ticket(self, workflow_id, sprint, story)

    def why_not(self, sprint: str, story: str, *, paid: bool) -> str:
        """Returns why the story may not take its next step; "" when it may."""
        board = self._boards.get(sprint)
        # Workflows of a dismissed sprint, as during shutdown, may still run and ask.
        return board.why_not(story, paid=paid) if board is not None else f"nobody works on sprint {sprint} now"

    def hold(self, workflow_id: str, sprint: str, reason: str, *, again: bool = False) -> bool:
        """Lets no story of the sprint pay for a call until people or other settings allow it, or with `again` some
        minutes have passed; returns whether the sprint can wait so: an analysis ends instead."""
        board = self._boards.get(sprint)
        if board is None or not self.can_wait(workflow_id, sprint):
            return False
        board.refuse(reason)
        if again:
            asyncio.get_running_loop().call_later(AGAIN_S, board.allow, reason)
        return True

    def can_wait(self, workflow_id: str, sprint: str) -> bool:
        """Returns whether the workflow waits for people, without its slot; an analysis does not, and has none."""
        board = self._boards.get(sprint)
        return board is None or board.takes_slots

    async def wait(self, workflow_id: str, sprint: str, story: str, *, paid: bool) -> None:
        """Until the story may take its next step, without a slot."""
        while self.why_not(sprint, story, paid=paid):
            async with self._give_back(workflow_id) if self.can_wait(workflow_id, sprint) else nullcontext():
                while self.why_not(sprint, story, paid=paid):
                    board = self._boards.get(sprint)
                    await (board.moved(board.version) if board is not None else self._followed.wait())

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Count one more inside."""
        self._at_work += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._idle.set()

    async def drain(self, grace_s: float) -> int:
        """Let nothing begin any more, and wait for what is at work; how much of it was still there in the end."""
        self._closing = True
        for board in self._boards.values():
            board.close()
        with suppress(TimeoutError):  # the caller cancels what is left
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        return self._at_work

    def look_again(self) -> None:
        """Notes that outside conditions of boards, such as budgets, may have changed."""
        for board in self._boards.values():
            board.look_again()

    async def look(self) -> None:
        """Hand out the orders that were given since the last look. Raises ConfigError while the log is away."""
        found = await self._log.since(self._after, mark=CONTROL_MARK)
        for seq, event in found:
            self._after = seq
            board = self._boards.get(event.sprint)
            if board is not None:
                board.read([(seq, event)])

    async def _poll(self) -> None:
        while True:
            with suppress(ConfigError):  # the log is away for a while; its other users report that
                await self.look()
            await asyncio.sleep(POLL_S)


class Ticket:
    """A workflow's handle at the switchboard, checked before each step; without one nothing holds it up."""

    def __init__(self, switchboard: Switchboard | None, workflow_id: str, sprint: str, story: str) -> None:
        self._switchboard, self.workflow_id = switchboard, workflow_id
        self.sprint, self._story = sprint, story

    def is_clear(self, *, paid: bool) -> bool:
        """Returns whether the next step may begin now."""
        return self._switchboard is None or not self._switchboard.why_not(self.sprint, self._story, paid=paid)

    async def clear(self, *, paid: bool) -> None:
        """Until it may; the story holds no slot meanwhile."""
        if self._switchboard is not None:
            await self._switchboard.wait(self.workflow_id, self.sprint, self._story, paid=paid)

    def hold(self, reason: str, *, again: bool = False) -> bool:
        """Holds the whole sprint before its next paid call, for `reason`; returns whether it can be held.

        With `again` it goes on by itself after a while, where its process is still there.
        """
        board = self._switchboard
        return board is not None and board.hold(self.workflow_id, self.sprint, reason, again=again)

    @property
    def can_wait(self) -> bool:
        """Returns whether the workflow waits while a budget is used up; else its call ends in an error."""
        return self._switchboard is not None and self._switchboard.can_wait(self.workflow_id, self.sprint)

    def at_work(self) -> AbstractAsyncContextManager[None]:
        """Counts as work that the end of the process waits for."""
        return self._switchboard.working() if self._switchboard is not None else nullcontext()


Tickets = Callable[[str, str, str], Ticket]
"""(workflow id, sprint, story) → its ticket."""
OPEN: Tickets = partial(Ticket, None)
"""Holds no workflow up."""
