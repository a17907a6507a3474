"""Carries out what people order of a sprint that is at work, and says what became of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from orchestrator.domain.control import CONTROL_MARK, CONTROL_SETTLED, Order, Settled, Verb
from orchestrator.domain.events import Event, Level
from orchestrator.domain.findings import minor
from orchestrator.domain.outcome import StoryOutcome
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import UserError, WorkspaceError
from orchestrator.ports import Clock, EventSink
from orchestrator.sprint.board import Board
from orchestrator.sprint.cells import cleared_cells
from orchestrator.sprint.hands import CellWriter, Renewer, StoryRunner
from orchestrator.sprint.obeying import Decision, decide, done_as
from orchestrator.sprint.pause import Brake
from orchestrator.sprint.slots import Slots
from orchestrator.sprint.standing import Standing

SURROUNDINGS = (UserError, WorkspaceError, OSError)
"""What may keep an order from being carried out: the repository is gone, the disk is full."""


class OrderTaker:
    """The orders on the board of one sprint."""

    def __init__(
        self,
        standing: Standing,
        board: Board,
        brake: Brake,
        slots: Slots,
        *,
        runner: StoryRunner,
        renewer: Renewer,
        cells: CellWriter,
        sink: EventSink,
        clock: Clock,
        record_outcome: Callable[[StoryOutcome], Awaitable[None]],
    ) -> None:
        self._standing, self._board, self._brake, self._slots = standing, board, brake, slots
        self._runner, self._renewer, self._cells = runner, renewer, cells
        self._sink, self._clock, self._record_outcome = sink, clock, record_outcome

    async def obey(self) -> None:
        """Carry out every order that is open, the oldest first."""
        while (order := self._board.next_order()) is not None:
            sprint = self._standing.record.sprint
            if await self._renewer.renewed_by(order):
                result = Settled(order=order.id, done=True, message=f"{order.story or sprint} is run anew")
            else:
                decision = decide(order, self._standing.status, self._standing.blocked_by, sprint)
                try:
                    result = await self._carried_out(order, decision)
                except SURROUNDINGS as error:
                    # It would stand in the way of every later order, and of the sprint.
                    why = f"it could not be carried out: {error}"
                    result = Settled(order=order.id, done=False, message=why)
            await self._sink.emit(settled_event(sprint, order, result, self._clock))
            self._board.settled(result)

    async def _carried_out(self, order: Order, decision: Decision) -> Settled:
        standing = self._board.paused_before(order) if order.verb is Verb.PAUSE else None
        if standing is not None:
            return Settled(order=order.id, done=False, message=f"it is paused by {standing.by} already")
        if decision.refused:
            return Settled(order=order.id, done=False, message=decision.refused)
        late = ""
        if order.verb is Verb.CANCEL:
            why_not = {story: await self._cancel(story, order) for story in decision.stories}
            late = ", ".join(filter(None, why_not.values()))
            if late and all(why_not.values()):
                return Settled(order=order.id, done=False, message=late)
            decision = Decision(tuple(story for story, why in why_not.items() if not why))
        elif order.verb in {Verb.RETRY, Verb.REPLAN, Verb.RESET}:
            await self._renew(order, decision.stories)
        if order.verb in {Verb.RESUME, Verb.RETRY, Verb.REPLAN}:
            self._brake.released()
        message = done_as(order, decision, self._standing.record.sprint) + (f"; {late}" if late else "")
        return Settled(order=order.id, done=True, message=message, stories=decision.stories)

    async def _cancel(self, story: str, order: Order) -> str:
        """Why it was not: what had just ended by itself, or is in the result already, counts. "" when it was."""
        workflow_id = self._standing.record.workflow_id(story)
        at_work = self._standing.status[story] is StoryStatus.EXECUTING
        merged = await self._merged(story) if at_work else ""
        if merged:
            return merged
        outcome = await self._cut(story)
        if outcome is not None:
            await self._record_outcome(outcome)
            return f"{story} has ended: it is {outcome.status}"
        if at_work:
            try:
                merged = await self._merged(story)
            except SURROUNDINGS:
                await self._runner.resume_story(workflow_id)  # nothing else would go on with it
                raise
            if merged:
                await self._runner.resume_story(workflow_id)
                return merged
            await self._runner.end_story(workflow_id)
        await self._record_outcome(cancelled(story, order))
        return ""

    async def _merged(self, story: str) -> str:
        commit = await self._renewer.merged(story)
        return f"{story} is merged already, as {commit[:10]}: it ends as done" if commit else ""

    async def _cut(self, story: str) -> StoryOutcome | None:
        """How it had ended by itself, if it had."""
        outcome = None
        workflow_id = self._standing.record.workflow_id(story)
        if self._standing.status[story] is StoryStatus.EXECUTING:
            await self._runner.cut_story(workflow_id)
        running = self._standing.running
        for task in [task for task, name in running.items() if name == story]:
            del running[task]
            task.cancel()
            [ended] = await asyncio.gather(task, return_exceptions=True)
            outcome = ended if isinstance(ended, StoryOutcome) else None
        self._slots.release(workflow_id)
        return outcome

    async def _renew(self, order: Order, stories: Sequence[str]) -> None:
        whole = order.story is None and order.verb is Verb.RESET
        done = self._standing.done
        at_work = [story for story in stories if self._standing.status[story] is StoryStatus.EXECUTING]
        for story in stories:
            await self._cut(story)
        for story in at_work:
            await self._runner.end_story(self._standing.record.workflow_id(story))
        try:
            if whole:
                await self._renewer.clear(order)
                self._standing.cleared = True
            else:
                self._standing.record = await self._renewer.renew(stories, order)
        except SURROUNDINGS:
            for story in at_work:  # its workflow has been ended for good
                await self._record_outcome(cancelled(story, order))
            raise
        self._standing.begin_anew(stories)
        await self._cells.put(cleared_cells(self._standing.record, stories, done, whole=whole))


def cancelled(story: str, order: Order) -> StoryOutcome:
    """How a story ends that people have cancelled."""
    why = f"cancelled by {order.by}" + (f": {order.comment}" if order.comment else "")
    finding = minor(
        "story.cancelled", why, fix="`retry` runs it anew; until then what it had built stays on its branch"
    )
    return StoryOutcome(id=story, status=StoryStatus.CANCELLED, findings=(finding,))


def settled_event(sprint: str, order: Order, result: Settled, clock: Clock) -> Event:
    """What became of an order, as the log keeps it; once."""
    return Event(
        id=f"{sprint}{CONTROL_MARK}{order.id}:settled",
        time=clock.now(),
        level=Level.INFO if result.done else Level.WARN,
        name=CONTROL_SETTLED,
        message=result.message if result.done else f"{order.verb} refused: {result.message}",
        sprint=sprint,
        data={"settled": result.model_dump(mode="json")},
    )
