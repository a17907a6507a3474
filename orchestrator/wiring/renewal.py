"""A story begun anew, as the record and the log have it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.adapters.event_store import EventStore
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.control import Order, Verb
from orchestrator.domain.events import Event
from orchestrator.domain.sprint import Replan, SprintRecord
from orchestrator.ports import Clock
from orchestrator.sprint.history import StoryHistory, conflict_of, fold


class Renewal:
    """`sprint.hands.Renewer`, for whoever holds the sprint's lock. The record goes last: what was cut is done again."""

    def __init__(
        self,
        record: SprintRecord,
        workspace: GitWorkspace,
        folder: StateFolder,
        sink: EventStore,
        clock: Clock,
        *,
        source: Path | None = None,
    ) -> None:
        """`source` is the user's repository, where the workspace is not prepared yet."""
        self.record = record
        """As it is now."""
        self._workspace, self._folder, self._sink, self._clock = workspace, folder, sink, clock
        self._source = source

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """See the protocol."""
        await self._remove(stories)
        if order.verb is Verb.REPLAN and order.story is not None:
            said = await self._said(order.story, order.comment)
            return await self._renewed(self.record.replan(tuple(stories), order.story, said), stories, order)
        return await self._renewed(self.record.reset(tuple(stories)), stories, order)

    async def _said(self, story: str, comment: str) -> Replan:
        own = await self._sink.since(0, mark=f"{self.record.workflow_id(story)}:")
        return replan_of(fold(self.record, (event for _, event in own))[story], comment)

    async def clear(self, order: Order) -> None:
        """See the protocol."""
        stories = self.record.story_ids
        await self._remove(stories)
        await self._workspace.remove_result()
        cleared = self.record.reset(stories).model_copy(update={"cleared": True})
        await self._renewed(cleared, stories, order)

    async def merged(self, story: str) -> str | None:
        """See the protocol."""
        return await self._workspace.merged_by(self.record.workflow_id(story))

    async def renewed_by(self, order: Order) -> bool:
        """See the protocol."""
        return order.id in self.record.orders

    async def _remove(self, stories: Sequence[str]) -> None:
        if self._source is not None:
            await self._workspace.prepare(self._source)
        for story in stories:
            await self._workspace.remove(story)

    async def _renewed(self, after: SprintRecord, stories: Sequence[str], order: Order) -> SprintRecord:
        for event in reset_events(self.record, after, stories, self._clock, order=order.id):
            await self._sink.emit(event)
        self.record = after.model_copy(update={"orders": (*after.orders, order.id)})
        await asyncio.to_thread(self._folder.save, self.record)
        return self.record


def replan_of(history: StoryHistory, comment: str) -> Replan:
    """What a person says of a story that has ended: a conflict that it ended in is overridden."""
    conflict = conflict_of(history)
    return Replan(comment=comment.strip(), overridden_conflict=conflict.told if conflict else "")


def reset_events(
    record: SprintRecord, after: SprintRecord, stories: Sequence[str], clock: Clock, *, order: str = ""
) -> Iterator[Event]:
    """That each of the stories was begun anew: `record` became `after`, by an order of this id, if by one."""
    for story in stories:
        said = after.replans.get(story)
        data = said.model_dump(mode="json") if said else {}
        yield Event(
            id=f"{record.workflow_id(story)}:story_reset",
            time=clock.now(),
            name="story_reset",
            message=f"{story} {_said(said)}; what came before stays in the log",
            sprint=record.sprint,
            story=story,
            data={**data, "order": order} if order else data,
        )


def _said(said: Replan | None) -> str:
    if said is None:
        return "was reset"
    over = ", its conflict overridden" if said.overridden_conflict else ""
    return f"is to be planned anew{over}: {said.comment}"
