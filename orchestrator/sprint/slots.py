"""How many stories work at once. A story that waits for a person holds no slot."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Slots:
    """`concurrency.stories` slots, handed out by workflow id; a story that comes back from waiting goes first."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._held: set[str] = set()
        self._away: set[str] = set()
        self._returning: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._watching: list[asyncio.Event] = []

    @contextmanager
    def watched(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever a slot came free or a story began to wait; whoever looks clears it."""
        changed = asyncio.Event()
        self._watching.append(changed)
        try:
            yield changed
        finally:
            self._watching.remove(changed)

    def resize(self, at_once: int) -> None:
        """Another number of slots from now on; stories at work keep theirs."""
        self._at_once = at_once
        self._hand_out()

    @property
    def at_work(self) -> int:
        """Stories that hold a slot."""
        return len(self._held)

    @property
    def free(self) -> bool:
        """Whether a further story may start."""
        return len(self._held) < self._at_once and not self._returning

    @property
    def waiting(self) -> frozenset[str]:
        """Stories that wait for a person now."""
        return frozenset(self._away)

    def __contains__(self, workflow_id: str) -> bool:
        """Whether the story is at work or waits: also one that the engine went on with by itself, once it waited."""
        return (
            workflow_id in self._held
            or workflow_id in self._away
            or any(workflow_id == other for other, _ in self._returning)
        )

    def take(self, workflow_id: str) -> None:
        """A story starts. One that the engine had gone on with by itself, and that waits already, takes none."""
        if workflow_id not in self:
            self._held.add(workflow_id)

    def release(self, workflow_id: str) -> None:
        """A story ended."""
        self._held.discard(workflow_id)
        self._away.discard(workflow_id)
        self._hand_out()

    @asynccontextmanager
    async def given_back(self, workflow_id: str) -> AsyncIterator[None]:
        """Hold no slot inside; leaving waits for one, unless the work is being cancelled."""
        self._held.discard(workflow_id)
        self._away.add(workflow_id)
        self._hand_out()
        try:
            yield
        except asyncio.CancelledError:
            self._away.discard(workflow_id)
            raise
        await self._return(workflow_id)

    async def _return(self, workflow_id: str) -> None:
        self._away.discard(workflow_id)
        turn = asyncio.get_running_loop().create_future()
        self._returning.append((workflow_id, turn))
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            self._returning = deque(entry for entry in self._returning if entry[1] is not turn)
            self._held.discard(workflow_id)
            self._hand_out()
            raise

    def _hand_out(self) -> None:
        while self._returning and len(self._held) < self._at_once:
            workflow_id, turn = self._returning.popleft()
            if not turn.done():
                self._held.add(workflow_id)
                turn.set_result(None)
        for changed in self._watching:
            changed.set()
