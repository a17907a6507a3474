"""The sprint: starts each story when its dependencies are done, records outcomes, and isolates failures.

It is not a workflow (starting stories as others finish is not deterministic: decisions.md#sprint): its state comes
from the event log, so it can be restarted at any time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from orchestrator.core.finding import critical, major
from orchestrator.core.history import StoryHistory
from orchestrator.core.ports import Clock, EventSink
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus
from orchestrator.core.story import Story
from orchestrator.sprint.command_handler import CommandHandler
from orchestrator.sprint.slots import Slots, known_cells
from orchestrator.sprint.state import Board, CellWriter, CircuitBreaker, Renewer, SprintState, StoryRunner


class Supervisor:
    """Drives the frozen selection of one sprint to outcomes."""

    def __init__(
        self,
        *,
        record: SprintRecord,
        stories: Mapping[str, Story],
        histories: Mapping[str, StoryHistory],
        runner: StoryRunner,
        sink: EventSink,
        clock: Clock,
        cells: CellWriter,
        payload: Callable[[Story], Awaitable[dict[str, Any]]],
        slots: Slots,
        board: Board,
        renewer: Renewer,
        stop_after_failures: int,
        failed: Sequence[str] = (),
        stays: bool = False,
        waits: bool = False,
        spent: Callable[[str], str] = lambda _story: "",
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`failed` are the stories that failed in a row before this process resumed the sprint.

        No story starts before `ready` has returned; orders are applied meanwhile. `run` raises what `ready` raises.
        With `stays`, `run` waits while the sprint is paused, with `waits` only where people paused it; without, it
        returns once the sprint rests.
        """
        self._stories, self._histories = stories, histories
        self._runner = runner
        self._payload, self._slots, self._board = payload, slots, board
        self._state = SprintState(record, histories, sink=sink, clock=clock, cells=cells, spent=spent)
        self._breaker = CircuitBreaker(record, sink, clock, stop_after=stop_after_failures, failed=failed)
        self._stays, self._waits, self._ready = stays, waits, ready
        self._readying: asyncio.Task[None] | None = None
        self._commands = CommandHandler(self._state, board, self._breaker, slots, runner=runner, renewer=renewer)

    @property
    def cleared(self) -> bool:
        """True once the whole sprint was reset."""
        return self._state.cleared

    @property
    def paused(self) -> str | None:
        """Why no further story is started, or None."""
        return self._breaker.reason or self._board.reason or None

    @property
    def held(self) -> str | None:
        """`paused`, or the reason that holds the stories not started yet."""
        return self.paused or next(filter(None, map(self._board.held, self._state.not_begun)), None)

    @property
    def only_paused(self) -> str:
        """The sprint or story that only `resume` keeps from going on, or ""."""
        return self._board.only_paused if self._breaker.reason is None else ""

    @property
    def queued(self) -> int:
        """Number of stories that have not started."""
        return len(self._state.not_begun)

    async def run(self) -> None:
        """Runs until every story has an outcome, or the sprint is paused and all running stories have ended."""
        with self._slots.watched() as changed:
            try:
                if self._ready is not None:
                    self._readying = asyncio.create_task(
                        _awaited(self._ready()), name=f"ready-{self._state.record.sprint}"
                    )
                else:
                    await self._put_cells()
                await self._breaker.look()
                await self._drive(changed)
            except asyncio.CancelledError:
                await self._breaker.at_rest(self._state.not_begun, interrupted=True)
                raise
            finally:
                tasks = [*self._state.running, *([self._readying] if self._readying is not None else [])]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _put_cells(self) -> None:
        await self._state.cells.put(known_cells(self._state.record, self._histories))

    async def _is_ready(self) -> bool:
        """Returns whether stories may start. Raises the error that kept the sprint from being ready."""
        if self._readying is None:
            return True
        if not self._readying.done():
            return False
        readying, self._readying = self._readying, None
        readying.result()
        await self._put_cells()
        return True

    async def _drive(self, changed: asyncio.Event) -> None:
        while True:
            version = self._board.version
            await self._commands.obey()
            if self.cleared:
                return
            await self._breaker.budget(self._board.budget)
            await self._breaker.refused(self._board.refused)
            await self._block()
            if ready := await self._is_ready():
                await self._start_ready()
            if (not self._state.running and (ready or not self._open())) or (self.paused and self._all_wait()):
                paused = self.only_paused
                await self._breaker.at_rest(self._state.not_begun, self.held or "", paused=paused)
                stays = self._stays or (self._waits and paused)
                if not stays or not (self._state.running or self._state.not_begun):
                    return
            else:
                await self._breaker.goes_on()
                await self._breaker.held(self._paused_stories(), alone=self._all_wait())
            for task in await self._something_happens(changed, version):
                await self._finished(self._state.running.pop(task), task)

    async def _something_happens(self, changed: asyncio.Event, version: int) -> Sequence[asyncio.Task[StoryOutcome]]:
        """Waits until a story ends, a slot is freed or an order arrives; returns the stories that ended."""
        moved = asyncio.create_task(self._board.moved(version), name="board-moved")
        freed = asyncio.create_task(changed.wait(), name="slots-changed")
        try:
            readying = {self._readying} if self._readying is not None else set()
            await asyncio.wait({*self._state.running, *readying, moved, freed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            freed.cancel()
            await asyncio.gather(moved, freed, return_exceptions=True)
        changed.clear()
        return [task for task in self._state.running if task.done()]

    def _all_wait(self) -> bool:
        """Returns whether the sprint waits only for people; their answers count also when no process waits."""
        return {self._state.record.workflow_id(story) for story in self._state.running.values()} <= self._slots.waiting

    def _paused_stories(self) -> dict[str, str]:
        stories = [*self._state.running.values(), *self._state.not_begun]
        return {story: paused for story in stories if (paused := self._board.paused(story))}

    def _open(self) -> list[str]:
        active = set(self._state.running.values())
        waiting = [s for s in self._state.record.story_ids if not self._state.status[s].final and s not in active]
        place = {story: number for number, story in enumerate(self._state.record.story_ids)}
        return sorted(
            waiting,
            key=lambda s: (self._state.status[s] is StoryStatus.PENDING, self._stories[s].priority, place[s]),
        )

    def _needs(self, story_id: str) -> list[str]:
        return [need for need in self._state.record.needs.get(story_id, ()) if need in self._state.status]

    async def _block(self) -> None:
        changed = True
        while changed:
            changed = False
            for story_id in self._open():
                if self._state.status[story_id] is not StoryStatus.PENDING:
                    continue
                failed = [
                    n for n in self._needs(story_id) if self._state.status[n].final and not _done(self._state.status[n])
                ]
                if failed:
                    changed = True
                    await self._state.end(_blocked(story_id, failed, self._state.status))

    async def _start_ready(self) -> None:
        for story_id in self._open():
            # The engine resumes started stories by itself. One that waits for a person is among the slots, and its
            # outcome is awaited whether or not a slot is free: it gets a slot when it is answered.
            known = self._state.record.workflow_id(story_id) in self._slots
            # A started story continues, also when the sprint pauses, or one of its dependencies was reset since.
            started = self._state.status[story_id] is StoryStatus.EXECUTING
            if not started and self._board.held(story_id):
                continue
            if not known and (not self._slots.free or (self.paused and not started)):
                continue
            if started or all(_done(self._state.status[need]) for need in self._needs(story_id)):
                await self._start(story_id)

    async def _start(self, story_id: str) -> None:
        workflow_id = self._state.record.workflow_id(story_id)
        self._slots.take(workflow_id)
        story = self._stories[story_id]
        await self._state.start(story)
        work = self._runner.run_story(workflow_id, await self._payload(story))
        task = asyncio.create_task(work, name=workflow_id)
        self._state.running[task] = story_id

    async def _finished(self, story_id: str, task: asyncio.Task[StoryOutcome]) -> None:
        self._slots.release(self._state.record.workflow_id(story_id))
        try:
            outcome = task.result()
        except Exception as error:  # noqa: BLE001 - the daemon's task boundary: a defect of ours fails one story only
            finding = critical(
                "internal.error", f"{type(error).__name__}: {error}", fix="report this; other stories continue"
            )
            outcome = StoryOutcome(id=story_id, status=StoryStatus.FAILED, findings=(finding,))
        await self._state.end(outcome)
        await self._breaker.after(outcome)


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _done(status: StoryStatus) -> bool:
    return status is StoryStatus.DONE


def _blocked(story_id: str, failed: Sequence[str], status: Mapping[str, StoryStatus]) -> StoryOutcome:
    by = ", ".join(f"{need} ({status[need]})" for need in failed)
    finding = major("story.blocked", f"blocked by {by}", fix="see why those are not done; reset them to try again")
    return StoryOutcome(id=story_id, status=StoryStatus.BLOCKED, findings=(finding,), blocked_by=tuple(failed))
