"""The one task that writes a backlog file: stories that end together never lose each other's cells."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from types import TracebackType

from orchestrator.domain.story import CellUpdate
from orchestrator.ports import Backlog


class BacklogWriter:
    """Owns a task that writes queued cells in order, several stories in one go; use it as `async with`.

    `on_warning` gets a sentence for people when cells went elsewhere; it may be a coroutine function. The same
    sentence is told once until a write succeeds. Leaving the block waits until everything queued is written; an error
    of the backlog that is no warning (a defect) is raised there.
    """

    def __init__(self, backlog: Backlog, on_warning: Callable[[str], object]) -> None:
        self._backlog = backlog
        self._on_warning = on_warning
        self._queue: asyncio.Queue[Sequence[CellUpdate] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._told: str | None = None
        self._closed = False

    async def __aenter__(self) -> "BacklogWriter":
        self._task = asyncio.create_task(self._run(), name="backlog-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._closed = True
        self._queue.put_nowait(None)
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self._task  # a cancelled sprint still leaves its last cells behind
            raise

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        """Queue cells and return at once; later cells of the same story and column win.

        Raises RuntimeError outside the `async with` block or after the writing task died.
        """
        if self._task is None or self._closed or self._task.done():
            raise RuntimeError("the backlog writer is not running")
        if updates:
            self._queue.put_nowait(tuple(updates))

    async def flush(self) -> None:
        """Wait until everything queued before is written (or set aside with a warning)."""
        if self._task is None:
            return
        joined = asyncio.ensure_future(self._queue.join())
        await asyncio.wait({joined, self._task}, return_when=asyncio.FIRST_COMPLETED)
        joined.cancel()

    async def _run(self) -> None:
        closing = False
        while not closing:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            closing = None in batch
            updates = coalesced([update for group in batch if group for update in group])
            if updates:
                await self._write(updates)
            for _ in batch:
                self._queue.task_done()

    async def _write(self, updates: Sequence[CellUpdate]) -> None:
        warning = await asyncio.to_thread(self._backlog.write, updates)
        if warning is not None and warning != self._told:
            told = self._on_warning(warning)
            if inspect.isawaitable(told):
                await told
        self._told = warning


def coalesced(updates: Sequence[CellUpdate]) -> list[CellUpdate]:
    """One update per story, in order of first appearance; of one column's values the last stands."""
    merged: dict[str, dict[str, str]] = {}
    for update in updates:
        merged.setdefault(update.story_id, {}).update(update.cells)
    return [CellUpdate(story_id=story_id, cells=cells) for story_id, cells in merged.items()]
