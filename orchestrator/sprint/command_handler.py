"""Applies people's commands to a sprint: decides which stories each concerns, and whether it can be applied."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.core.command import CONTROL_MARK, CONTROL_SETTLED, Order, Settled, Verb
from orchestrator.core.errors import UserError, WorkspaceError
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import minor
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.value import counted
from orchestrator.sprint.slots import Slots, cleared_cells
from orchestrator.sprint.state import Board, CircuitBreaker, Renewer, SprintState, StoryRunner

_DONE = "it is done; `reset` runs it again"


class Decision(NamedTuple):
    """The effect of an order."""

    stories: tuple[str, ...] = ()
    """The stories it concerns, in the order of the sprint."""
    refused: str = ""
    """Why the order is refused; "" when it is not."""


def decide(
    order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]], sprint: str
) -> Decision:
    """Decides an order. `status` has every story of the sprint, `blocked_by` failed dependencies of blocked ones."""
    if order.story is not None and order.story not in status:
        return Decision(refused=f"sprint {sprint} has no story {order.story}")
    if order.verb in {Verb.PAUSE, Verb.RESUME, Verb.CANCEL}:
        return _unfinished(order, status, sprint)
    if order.verb is Verb.RETRY:
        return _retried(order, status, blocked_by, sprint)
    if order.verb is Verb.REPLAN:
        return _replanned(order, status, blocked_by)
    if order.story is None:
        return Decision(tuple(status))
    return Decision(with_blocked([order.story], status, blocked_by))


def _unfinished(order: Order, status: Mapping[str, StoryStatus], sprint: str) -> Decision:
    if order.story is None:
        stories = tuple(story for story, standing in status.items() if not standing.final)
        return Decision(stories, "" if stories else f"every story of sprint {sprint} has ended")
    standing = status[order.story]
    if order.verb is Verb.CANCEL and standing is StoryStatus.CANCELLED:
        return Decision()  # includes an order of ours that was cut before its result was recorded
    if standing.final:
        return Decision(refused=f"{order.story} has ended: it is {standing}")
    return Decision((order.story,))


def _retried(
    order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]], sprint: str
) -> Decision:
    bad = [story for story, standing in status.items() if standing.final and standing is not StoryStatus.DONE]
    if order.story is None:
        return Decision(tuple(bad), "" if bad else f"no story of sprint {sprint} has ended without being done")
    standing = status[order.story]
    if order.story not in bad:
        why = _DONE if standing is StoryStatus.DONE else f"it is {standing} and has not ended"
        return Decision(refused=f"{order.story}: {why}")
    in_the_way = [need for need in blocked_by.get(order.story, ()) if status.get(need) is not StoryStatus.DONE]
    if standing is StoryStatus.BLOCKED and in_the_way:
        return Decision(refused=f"{order.story} was blocked by {', '.join(in_the_way)}: retry that instead")
    return Decision(with_blocked([order.story], status, blocked_by))


def _replanned(order: Order, status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]]) -> Decision:
    if order.story is None:
        return Decision(refused="name the story that is to be planned again")
    refused = why_not_replanned(order.story, status[order.story], blocked_by.get(order.story, ()), order.comment)
    return Decision(refused=refused) if refused else Decision(with_blocked([order.story], status, blocked_by))


def why_not_replanned(story: str, standing: StoryStatus, blocked_by: Sequence[str], comment: str) -> str:
    """Returns why a story cannot be planned again; "" when it can."""
    if not comment.strip():
        return "the comment is empty: say with --comment what the architect is to do about the story"
    if standing is StoryStatus.BLOCKED:
        return f"{story} was blocked by {', '.join(blocked_by)}: plan that again instead"
    if not standing.final or standing is StoryStatus.DONE:
        return f"{story} is {standing}; only a story that ended without being done is planned again"
    return ""


def with_blocked(
    stories: Sequence[str], status: Mapping[str, StoryStatus], blocked_by: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Returns the stories and, transitively, those that they blocked, in the order of the sprint."""
    chosen = set(stories)
    grown = True
    while grown:
        more = {
            story
            for story, needs in blocked_by.items()
            if status.get(story) is StoryStatus.BLOCKED and chosen & set(needs)
        }
        grown = not more <= chosen
        chosen |= more
    return tuple(story for story in status if story in chosen)


_STARTING = frozenset({Verb.RESUME, Verb.RETRY, Verb.REPLAN, Verb.RESET})


def done_as(order: Order, decision: Decision, sprint: str, resumer: str = "") -> str:
    """Returns the message for an order that was applied; `resumer` is what works on the sprint later, if not now."""
    whom = f"sprint {sprint}" if order.story is None else order.story
    if order.verb is Verb.CANCEL and not decision.stories:
        return f"{whom} is cancelled already"
    others = [story for story in decision.stories if story != order.story]
    also = f" with {', '.join(others)}" if order.story is not None and others else ""
    count = f" ({counted(len(decision.stories), 'story', 'stories')})" if order.story is None else ""
    said = {
        Verb.PAUSE: "is paused: what is at work ends its call or command, nothing new begins",
        Verb.RESUME: "goes on" if not resumer else "is no longer paused",
        Verb.CANCEL: "is cancelled",
        Verb.RETRY: "is run again" if not resumer else "is to be run again",
        Verb.REPLAN: "is planned again",
        Verb.RESET: "is reset",
    }[order.verb]
    told = f"{whom}{count} {said}{also}, by {order.by}" + (f": {order.brief}" if order.brief else "")
    later = f"; nobody works on the sprint now: {resumer} does" if resumer and order.verb in _STARTING else ""
    return told + later


SURROUNDINGS = (UserError, WorkspaceError, OSError)
"""Errors that may prevent an order: the repository is gone, the disk is full."""


class CommandHandler:
    """Applies the orders on the board of one sprint."""

    def __init__(
        self,
        state: SprintState,
        board: Board,
        breaker: CircuitBreaker,
        slots: Slots,
        *,
        runner: StoryRunner,
        renewer: Renewer,
        resumer: str = "",
    ) -> None:
        """`resumer` is the command that works on the sprint, when no process does."""
        self._resumer = resumer
        self._state, self._board, self._breaker, self._slots = state, board, breaker, slots
        self._runner, self._renewer = runner, renewer

    async def obey(self) -> None:
        """Applies every open order, the oldest first."""
        while (order := self._board.next_order()) is not None:
            sprint = self._state.record.sprint
            if await self._renewer.renewed_by(order):
                result = Settled(order=order.id, done=True, message=f"{order.story or sprint} is run again")
            else:
                decision = decide(order, self._state.status, self._state.blocked_by, sprint)
                try:
                    result = await self._carried_out(order, decision)
                except SURROUNDINGS as error:
                    # An unsettled order would block every later order, and the sprint.
                    why = f"it could not be carried out: {error}"
                    result = Settled(order=order.id, done=False, message=why)
            await self._state.sink.emit(settled_event(sprint, order, result, self._state.clock))
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
            self._breaker.released()
            self._board.allow()
        message = done_as(order, decision, self._state.record.sprint, self._resumer) + (f"; {late}" if late else "")
        return Settled(order=order.id, done=True, message=message, stories=decision.stories)

    async def _cancel(self, story: str, order: Order) -> str:
        """Returns why the story was not cancelled: it had just ended, or is merged already. "" when it was."""
        workflow_id = self._state.record.workflow_id(story)
        at_work = self._state.status[story] is StoryStatus.EXECUTING
        merged = await self._merged(story) if at_work else ""
        if merged:
            return merged
        outcome = await self._cut(story)
        if outcome is not None:
            await self._state.end(outcome)
            return f"{story} has ended: it is {outcome.status}"
        if at_work:
            try:
                merged = await self._merged(story)
            except SURROUNDINGS:
                await self._runner.resume_story(workflow_id)  # nothing else would resume it
                raise
            if merged:
                await self._runner.resume_story(workflow_id)
                return merged
            await self._runner.end_story(workflow_id)
        await self._state.end(cancelled(story, order))
        return ""

    async def _merged(self, story: str) -> str:
        commit = await self._renewer.merged(story)
        return f"{story} is merged already, as {commit[:10]}: it ends as done" if commit else ""

    async def _cut(self, story: str) -> StoryOutcome | None:
        """Returns the outcome if the story had ended by itself."""
        outcome = None
        workflow_id = self._state.record.workflow_id(story)
        if self._state.status[story] is StoryStatus.EXECUTING:
            await self._runner.cut_story(workflow_id)
        running = self._state.running
        for task in [task for task, name in running.items() if name == story]:
            del running[task]
            task.cancel()
            [ended] = await asyncio.gather(task, return_exceptions=True)
            outcome = ended if isinstance(ended, StoryOutcome) else None
        self._slots.release(workflow_id)
        return outcome

    async def _renew(self, order: Order, stories: Sequence[str]) -> None:
        whole = order.story is None and order.verb is Verb.RESET
        done = self._state.done
        at_work = [story for story in stories if self._state.status[story] is StoryStatus.EXECUTING]
        for story in stories:
            await self._cut(story)
        for story in at_work:
            await self._runner.end_story(self._state.record.workflow_id(story))
        try:
            if whole:
                await self._renewer.clear(order)
                self._state.cleared = True
            else:
                self._state.record = await self._renewer.renew(stories, order)
        except SURROUNDINGS:
            for story in at_work:  # its workflow has ended permanently
                await self._state.end(cancelled(story, order))
            raise
        self._state.begin_again(stories)
        await self._state.cells.put(cleared_cells(self._state.record, stories, done, whole=whole))


def cancelled(story: str, order: Order) -> StoryOutcome:
    """Returns the outcome of a cancelled story."""
    why = f"cancelled by {order.by}" + (f": {order.comment}" if order.comment else "")
    finding = minor(
        "story.cancelled", why, fix="`retry` runs it again; until then what it had built stays on its branch"
    )
    return StoryOutcome(id=story, status=StoryStatus.CANCELLED, findings=(finding,))


def settled_event(sprint: str, order: Order, result: Settled, clock: Clock) -> Event:
    """Returns the event with an order's result, which the log stores once."""
    return Event(
        id=f"{sprint}{CONTROL_MARK}{order.id}:settled",
        time=clock.now(),
        level=Level.INFO if result.done else Level.WARN,
        name=CONTROL_SETTLED,
        message=result.message if result.done else f"{order.verb} refused: {result.message}",
        sprint=sprint,
        data={"settled": result.model_dump(mode="json")},
    )
