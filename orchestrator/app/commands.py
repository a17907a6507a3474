"""What people order and answer: recorded first, then applied by the process that holds the sprint, else here.

A story begun anew, as the record and the log have it.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from orchestrator.app.gate_answers import Asked, give, given_json, project, question, waits
from orchestrator.app.sprint_reader import Reader
from orchestrator.app.sprints import event_url, numbered_events, workspace_of
from orchestrator.app.views import begun_by
from orchestrator.backlogs.files import open_backlog
from orchestrator.backlogs.writer import BacklogWriter
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import (
    CONTROL_GIVEN,
    CONTROL_MARK,
    MARKDOWN,
    AnswerBody,
    Choice,
    GateAnswer,
    Order,
    OrderBody,
    ReplanBody,
    Settled,
    Verb,
)
from orchestrator.core.errors import ConfigError, RequestRefused, SprintLocked, UnknownName
from orchestrator.core.event import Event
from orchestrator.core.history import StoryHistory, conflict_of, expect_kept, fold
from orchestrator.core.ports import Clock
from orchestrator.core.secrets import secrets_of
from orchestrator.core.sprint import BroughtPlan, Replan, SprintRecord, StoryOutcome, StoryStatus
from orchestrator.files.process import SystemClock
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.command_handler import CommandHandler
from orchestrator.sprint.gate_answers import kept_comment
from orchestrator.sprint.plan_edit import read_edit, read_markdown
from orchestrator.sprint.slots import Slots, cleared_cells
from orchestrator.sprint.state import Board, CircuitBreaker, SprintState
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.event_table import usable
from orchestrator.storage.locks import SprintLock, holder
from orchestrator.storage.state_folder import StateFolder


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


LOOK_S = 0.1
"""Seconds between two looks at whether an order was carried out."""


class SprintCommands:
    """Commands and answers of people about the sprints of a state folder; the command line and the routes give them.

    Every method raises UnknownName for a sprint or story that is not there, RequestRefused for what cannot be used as
    it was sent, and ConfigError for what cannot be done now.
    """

    def __init__(self, environment: Environment, settings: Settings) -> None:
        self._environment, self._settings = environment, settings

    async def order(self, sprint: str | None, story: str | None, given: OrderBody) -> Settled:
        """Records an order and returns what became of it; `sprint` None: the latest that has `story`."""
        return await order(
            self._environment, self._settings, given.verb,
            sprint=sprint, story=story, by=given.by, comment=_kept(given.comment),
        )  # fmt: skip

    async def answer(self, sprint: str | None, story: str, given: AnswerBody) -> dict[str, Any]:
        """Records an answer to the story's question and returns the one that counts, as `given_json` tells it."""
        comment = _kept(given.comment)
        if given.choice is Choice.REJECT and not comment:
            raise RequestRefused("the comment is empty: say what is to change")
        asked = await asyncio.to_thread(
            question, self._environment, story, given.choice, sprint=sprint, number=given.gate
        )
        plan = await self._edited(asked, given)
        mine = GateAnswer(number=asked.gate.number, choice=given.choice, comment=comment, plan=plan, by=given.by)
        return given_json(asked, await give(self._environment, asked, mine))

    async def _edited(self, asked: Asked, given: AnswerBody) -> Breakdown | None:
        """Returns the plan of an edit. Raises RequestRefused with the findings for one that is not accepted."""
        if given.choice is not Choice.EDIT:
            if given.plan is not None:
                raise RequestRefused(f"{given.choice} takes no plan: that is what edit is for")
            return None
        if given.plan is None:
            raise RequestRefused("edit needs the plan")
        text = given.plan if isinstance(given.plan, str) else json.dumps(given.plan)
        files, packages = await project(self._environment, asked)
        if given.file.lower().endswith(MARKDOWN):
            brought, least = BroughtPlan(path=given.file, text=text), self._settings.plan.min_chars
            edited = await asyncio.to_thread(read_markdown, brought, asked.story, files, packages, least)
        else:
            edited = await asyncio.to_thread(read_edit, text, asked.story, files, packages)
        if not edited.accepted(force=given.force):
            why = f"cannot be carried out: {edited.barred}" if edited.barred else "has something major against it"
            raise RequestRefused(f"nothing was answered: the plan {why}", findings=edited.findings)
        return edited.plan

    async def replan(self, sprint: str | None, story: str, given: ReplanBody) -> dict[str, Any]:
        """Has a story planned from the start. Returns the answer that counts of one that waits for a person, else the
        stories that are run again."""
        if given.gate is not None or await asyncio.to_thread(waits, self._environment, story, sprint):
            choice = AnswerBody(choice=Choice.REPLAN, comment=given.comment, gate=given.gate, by=given.by)
            return await self.answer(sprint, story, choice)
        record = await asyncio.to_thread(_record, self._environment, sprint, story)
        done = await self.order(record.sprint, story, OrderBody(verb=Verb.REPLAN, comment=given.comment, by=given.by))
        if not done.done:
            raise ConfigError(done.message)
        stories = list(done.stories or (story,))
        return {"sprint": record.sprint, "stories": stories, "begun_by": begun_by(record), "warning": None}


def _kept(comment: str) -> str:
    try:
        return kept_comment(comment)
    except ConfigError as error:
        raise RequestRefused(error.message) from error


async def order(
    environment: Environment,
    settings: Settings,
    verb: Verb,
    *,
    sprint: str | None,
    story: str | None,
    by: str,
    comment: str = "",
    wait_s: float = 30.0,
) -> Settled:
    """Records an order and waits until it is applied or refused; `sprint` None: the latest that has `story`.

    It stands from the moment it is recorded, whatever becomes of this process. Raises ConfigError for an unknown
    sprint or story, for a log that cannot be written, and when a living holder has not applied it in time.
    """
    record = await asyncio.to_thread(_record, environment, sprint, story)
    given = Order(id=uuid.uuid4().hex[:12], verb=verb, story=story, by=by, comment=comment.strip())
    if record.pruned is not None:
        if verb is not Verb.RESET:
            expect_kept(record)
        return await asyncio.to_thread(_free_rows, StateFolder(environment.home), settings, record, given)
    if verb is not Verb.REPLAN:  # what the architect is told is kept whole
        given = given.model_copy(update={"comment": given.brief})
    folder = StateFolder(environment.home)
    async with EventStore(event_url(environment, folder), secrets=secrets_of(environment.variables)) as sink:
        with usable():
            await sink.emit(given_event(record.sprint, given))
            return await _settled(environment, settings, folder, record, given, sink, wait_s)


def _free_rows(folder: StateFolder, settings: Settings, record: SprintRecord, given: Order) -> Settled:
    """Frees the rows of a pruned sprint for another one: nothing else of it is left to reset."""
    stories = record.story_ids if given.story is None else (given.story,)
    done = {story for story in stories if record.pruned and record.pruned.statuses.get(story) is StoryStatus.DONE}
    backlog = open_backlog(Path(record.backlog), settings, folder)
    warning = backlog.write(cleared_cells(record, stories, done, whole=True))
    message = f"rows of the pruned sprint {record.sprint} are free again: {', '.join(stories)}"
    return _warned(Settled(order="", done=True, message=message, stories=stories), [warning] if warning else [])


def _warned(settled: Settled, warnings: list[str]) -> Settled:
    return settled.model_copy(update={"message": "; warning: ".join([settled.message, *warnings])})


def given_event(sprint: str, given: Order) -> Event:
    """That the order was given, as the log keeps it."""
    whom = f"sprint {sprint}" if given.story is None else given.story
    return Event(
        id=f"{sprint}{CONTROL_MARK}{given.id}",
        time=SystemClock().now(),
        name=CONTROL_GIVEN,
        message=f"{given.verb} {whom}, ordered by {given.by}" + (f": {given.brief}" if given.brief else ""),
        sprint=sprint,
        data={"order": given.model_dump(mode="json")},
    )


def _record(environment: Environment, sprint: str | None, story: str | None) -> SprintRecord:
    view = Reader(environment).sprint(sprint, story=story)
    if story is not None and story not in view.histories:
        raise UnknownName(f"sprint {view.record.sprint} has no story {story}")
    return view.record


async def _settled(
    environment: Environment,
    settings: Settings,
    folder: StateFolder,
    record: SprintRecord,
    given: Order,
    sink: EventStore,
    wait_s: float,
) -> Settled:
    until, warnings = time.monotonic() + wait_s, list[str]()
    name = f"{record.sprint}{CONTROL_MARK}{given.id}:settled"
    while True:
        event = (await sink.find([name])).get(name)
        if event is not None:
            return _warned(Settled.model_validate(event.data["settled"]), warnings)
        pid = await asyncio.to_thread(holder, folder.lock(record.sprint))
        if pid is None:
            try:
                warnings = await _apply(environment, settings, folder, record.sprint, sink)
            except SprintLocked:  # somebody began to work on it in between
                await asyncio.sleep(LOOK_S)
        elif time.monotonic() > until:
            raise ConfigError(
                f"pid {pid} works on sprint {record.sprint} and has not carried it out within {wait_s:.0f} s; "
                f"the order stands: `orchestrator logs` tells when it is"
            )
        else:
            await asyncio.sleep(LOOK_S)


async def _apply(
    environment: Environment, settings: Settings, folder: StateFolder, sprint: str, sink: EventStore
) -> list[str]:
    """Applies every open order of a sprint that no process holds; returns warnings. Raises SprintLocked."""
    warnings: list[str] = []
    async with SprintLock(folder.lock(sprint)) as lock:
        record = await asyncio.to_thread(folder.record, sprint)
        if record is None:
            raise ConfigError(f"the record of sprint {sprint} is gone")
        expect_kept(record)  # it may have been pruned since the order was given
        events = await asyncio.to_thread(numbered_events, environment, folder, record)
        workspace = workspace_of(folder, record, (lock.fd,))
        board, clock = Board(sprint), SystemClock()
        board.read(events)
        backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), settings, folder)
        try:
            async with BacklogWriter(backlog, warnings.append) as cells:
                histories = fold(record, (event for _, event in events))
                handler = CommandHandler(
                    SprintState(record, histories, sink=sink, clock=clock, cells=cells),
                    board,
                    CircuitBreaker(record, sink, clock, stop_after=0),
                    Slots(1),
                    runner=_Nobody(),
                    renewer=Renewal(record, workspace, folder, sink, clock, source=Path(record.repo)),
                )
                await handler.obey()
        finally:
            workspace.close()
    return warnings


class _Nobody:
    """Runs nothing: a workflow that stands in the engine's database is not gone on with, as its story has ended."""

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """Never asked for."""
        raise RuntimeError(f"nobody runs {workflow_id}")

    async def cut_story(self, workflow_id: str) -> None:
        """Nothing of it runs."""

    async def end_story(self, workflow_id: str) -> None:
        """Nothing of it runs."""

    async def resume_story(self, workflow_id: str) -> None:
        """Whoever works on the sprint next goes on with it."""
