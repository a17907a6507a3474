"""Commands and answers of people: recorded first, then applied by the process that holds the sprint, else here."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from orchestrator.app.sprints import workspace_of
from orchestrator.backlogs.files import open_backlog
from orchestrator.backlogs.writer import BacklogWriter
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.command import (
    CONTROL_GIVEN,
    CONTROL_MARK,
    GATE_ANSWERED,
    MARKDOWN,
    AnswerBody,
    Choice,
    Gate,
    GateAnswer,
    Order,
    OrderBody,
    ReplanBody,
    Settled,
    Verb,
    answer_id,
)
from orchestrator.core.errors import ConfigError, RequestRefused, SprintLocked, UnknownName, WorkspaceError
from orchestrator.core.event import Event
from orchestrator.core.history import FINISHED, conflict_of, fold
from orchestrator.core.paths import is_manifest
from orchestrator.core.ports import Clock
from orchestrator.core.secrets import secrets_of
from orchestrator.core.sprint import BroughtPlan, Replan, SprintRecord, StoryOutcome
from orchestrator.files.process import SystemClock
from orchestrator.git.workspace import GitWorkspace
from orchestrator.records.histories import event_url, read_numbered_events
from orchestrator.records.sprint_reader import Reader, SprintView
from orchestrator.records.views import begun_by
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.command_handler import CommandHandler
from orchestrator.sprint.gate_answers import answered_first, expect_choice, kept_comment, open_gate, settled
from orchestrator.sprint.plan_edit import read_edit, read_markdown
from orchestrator.sprint.slots import Slots
from orchestrator.sprint.state import Board, CircuitBreaker, SprintState
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.event_table import usable
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock, holder
from orchestrator.storage.state_folder import StateFolder
from orchestrator.storage.story_claims import StoryClaims
from orchestrator.story.project_scan import build_surface, scan_paths

LOOK_S = 0.1
"""Seconds between two checks whether an order was applied."""


class Renewal:
    """`sprint.state.Renewer` for the process that holds the sprint's lock. The record is saved last: after a kill, the
    same order is applied again."""

    def __init__(
        self,
        record: SprintRecord,
        workspace: GitWorkspace,
        sink: EventStore,
        folder: StateFolder,
        clock: Clock,
        *,
        source: Path | None = None,
        changed: Callable[[SprintRecord], None] = lambda _record: None,
    ) -> None:
        """`source` is the user's repository, if the workspace is not prepared yet; `changed` gets each new record."""
        self._record = record
        self._workspace, self._sink, self._folder, self._clock = workspace, sink, folder, clock
        self._source, self._changed = source, changed

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """See the protocol."""
        await self._remove(stories)
        if order.verb is Verb.REPLAN and order.story is not None:
            own = await self._sink.since(0, mark=f"{self._record.workflow_id(order.story)}:")
            conflict = conflict_of(fold(self._record, (event for _, event in own))[order.story])
            replan = Replan(comment=order.comment.strip(), overridden_conflict=conflict.told if conflict else "")
            return await self._save(self._record.replan(tuple(stories), order.story, replan), stories, order)
        return await self._save(self._record.reset(tuple(stories)), stories, order)

    async def clear(self, order: Order) -> None:
        """See the protocol."""
        stories = self._record.story_ids
        await self._remove(stories)
        await self._workspace.remove_result()
        await self._save(self._record.reset(stories).model_copy(update={"cleared": True}), stories, order)

    async def merged(self, story: str) -> str | None:
        """See the protocol."""
        return await self._workspace.merged_by(self._record.workflow_id(story))

    async def renewed_by(self, order: Order) -> bool:
        """See the protocol."""
        return order.id in self._record.orders

    async def _remove(self, stories: Sequence[str]) -> None:
        if self._source is not None:
            await self._workspace.prepare(self._source)
        for story in stories:
            await self._workspace.remove(story)

    async def _save(self, after: SprintRecord, stories: Sequence[str], order: Order) -> SprintRecord:
        for event in _reset_events(self._record, after, stories, self._clock, order.id):
            await self._sink.emit(event)
        self._record = after.model_copy(update={"orders": (*after.orders, order.id)})
        await asyncio.to_thread(self._folder.save, self._record)
        self._changed(self._record)
        return self._record


def _reset_events(
    record: SprintRecord, after: SprintRecord, stories: Sequence[str], clock: Clock, order: str
) -> Iterator[Event]:
    """Yields one event per story that the order restarts: `record` becomes `after`."""
    for story in stories:
        replan = after.replans.get(story)
        what = "was reset"
        if replan is not None:
            over = ", its conflict overridden" if replan.overridden_conflict else ""
            what = f"is to be planned again{over}: {replan.comment}"
        data = replan.model_dump(mode="json") if replan is not None else {}
        data["order"] = order
        yield Event(
            id=f"{record.workflow_id(story)}:story_reset",
            time=clock.now(),
            name="story_reset",
            message=f"{story} {what}; what came before stays in the log",
            sprint=record.sprint,
            story=story,
            data=data,
        )


def given_event(sprint: str, given: Order) -> Event:
    """Returns the event that records an order."""
    target = f"sprint {sprint}" if given.story is None else given.story
    return Event(
        id=f"{sprint}{CONTROL_MARK}{given.id}",
        time=SystemClock().now(),
        name=CONTROL_GIVEN,
        message=f"{given.verb} {target}, ordered by {given.by}" + (f": {given.brief}" if given.brief else ""),
        sprint=sprint,
        data={"order": given.model_dump(mode="json")},
    )


class SprintCommands:
    """Commands and answers of people about the sprints of a state folder; the command line and the routes give them.

    Every method raises UnknownName for a sprint or story that is not there, RequestRefused for what cannot be used as
    it was sent, and ConfigError for what cannot be done now or for a log that cannot be written.
    """

    def __init__(self, environment: Environment, settings: Settings, *, wait_s: float = 30.0) -> None:
        """`wait_s` is how long a living process may take to apply an order."""
        self._environment, self._settings, self._wait_s = environment, settings, wait_s
        self._folder, self._clock = StateFolder.of(environment), SystemClock()
        self._reader = Reader(environment)

    async def order(self, sprint: str | None, story: str | None, given: OrderBody) -> Settled:
        """Records an order and waits until it is applied or refused; `sprint` None: the latest that has `story`.

        It is valid once recorded, even if this process dies. To cancel a story that asks a person is the answer.
        """
        # Of two answers the first counts, and an order is no answer: a story that was just answered takes no order.
        if given.verb is Verb.CANCEL and story and await asyncio.to_thread(self.is_at_question, sprint, story):
            answer = AnswerBody(choice=Choice.CANCEL, comment=given.comment, by=given.by)
            told = await self.answer(sprint, story, answer)
            return Settled(order="", done=told["counts"], message=told["message"], stories=(story,))
        comment = _kept(given.comment)
        await asyncio.to_thread(self._folder.find_format)
        record = await asyncio.to_thread(self._record, sprint, story)
        order = Order(id=uuid.uuid4().hex[:12], verb=given.verb, story=story, by=given.by, comment=comment)
        if order.verb is not Verb.REPLAN:  # a comment to the architect is kept whole
            order = order.model_copy(update={"comment": order.brief})
        async with self._log() as sink:
            with usable():
                await sink.emit(given_event(record.sprint, order))
                return await self._settled(record, order, sink)

    async def answer(self, sprint: str | None, story: str, given: AnswerBody) -> dict[str, Any]:
        """Records an answer to the story's question. Returns the valid answer, and whether it is this one.

        Of two people, or a person and the deadline, the first counts.
        """
        comment = _kept(given.comment)
        if given.choice is Choice.REJECT and not comment:
            raise RequestRefused("the comment is empty: say what is to change")
        view, gate = await asyncio.to_thread(self._question, sprint, story, given)
        plan = await self._edited(view.record, story, given)
        mine = GateAnswer(number=gate.number, choice=given.choice, comment=comment, plan=plan, by=given.by)
        return await self._give(view.record, story, gate, mine)

    async def replan(self, sprint: str | None, story: str, given: ReplanBody) -> dict[str, Any]:
        """Has a story planned from the start. Returns the answer that counts of one that waits for a person, else the
        stories that are run again."""
        if given.gate is not None or await asyncio.to_thread(self.is_at_question, sprint, story, answered=False):
            choice = AnswerBody(choice=Choice.REPLAN, comment=given.comment, gate=given.gate, by=given.by)
            return await self.answer(sprint, story, choice)
        record = await asyncio.to_thread(self._record, sprint, story)
        done = await self.order(record.sprint, story, OrderBody(verb=Verb.REPLAN, comment=given.comment, by=given.by))
        if not done.done:
            raise ConfigError(done.message)
        stories = list(done.stories or (story,))
        return {"sprint": record.sprint, "stories": stories, "begun_by": begun_by(record), "warning": None}

    def is_at_question(self, sprint: str | None, story: str, *, answered: bool = True) -> bool:
        """Returns whether the story waits at a question, with `answered` also when it is answered and the story has
        not resumed yet; False for an unknown story. Blocks."""
        try:
            history = self._reader.story(sprint, story).histories[story]
        except UnknownName:  # it asks nothing
            return False
        last = history.last
        return history.waits_for is not None or (answered and last is not None and last.name == GATE_ANSWERED)

    def _log(self) -> EventStore:
        url = event_url(self._environment, self._folder)
        return EventStore(url, secrets=secrets_of(self._environment.variables))

    def _record(self, sprint: str | None, story: str | None) -> SprintRecord:
        view = self._reader.sprint(sprint) if story is None else self._reader.story(sprint, story)
        return view.record

    def _question(self, sprint: str | None, story: str, given: AnswerBody) -> tuple[SprintView, Gate]:
        """Returns the open question that allows this answer. Raises ConfigError when there is none."""
        view = self._reader.story(sprint, story)
        try:
            gate = open_gate(story, view.histories[story], given.gate, self._clock.now())
        except ConfigError as error:
            waiting = [
                other.record.sprint
                for other in (self._reader.all() if sprint is None else ())
                if other.record.sprint != view.record.sprint
                and (history := other.histories.get(story)) is not None
                and history.waits_for is not None
            ]
            elsewhere = f"; in sprint {waiting[-1]} it waits: --sprint {waiting[-1]}" if waiting else ""
            raise ConfigError(f"{error.message}{elsewhere}") from error
        expect_choice(story, gate, given.choice)
        return view, gate

    async def _edited(self, record: SprintRecord, story: str, given: AnswerBody) -> Breakdown | None:
        """Returns the plan of an edit. Raises RequestRefused with the findings for one that is not accepted."""
        if given.choice is not Choice.EDIT:
            if given.plan is not None:
                raise RequestRefused(f"{given.choice} takes no plan: that is what edit is for")
            return None
        if given.plan is None:
            raise RequestRefused("edit needs the plan")
        text = given.plan if isinstance(given.plan, str) else json.dumps(given.plan)
        files, packages = await self._project(record, story)
        if given.file.lower().endswith(MARKDOWN):
            brought, least = BroughtPlan(path=given.file, text=text), self._settings.plan.min_chars
            edited = await asyncio.to_thread(read_markdown, brought, story, files, packages, least)
        else:
            edited = await asyncio.to_thread(read_edit, text, story, files, packages)
        if not edited.accepted(force=given.force):
            why = f"cannot be carried out: {edited.barred}" if edited.barred else "has something major against it"
            raise RequestRefused(f"nothing was answered: the plan {why}", findings=edited.findings)
        return edited.plan

    async def _project(self, record: SprintRecord, story: str) -> tuple[frozenset[str], frozenset[str]]:
        """Returns the files and package names of the story's branch, against which its plan is judged; no process
        changes the branch while the story waits. Raises WorkspaceError when it cannot be read."""
        mirror = self._folder.mirror(Path(record.repo))
        if not await asyncio.to_thread(mirror.exists):
            raise WorkspaceError(f"the branch of {story} cannot be read: there is no {mirror}")
        workspace = workspace_of(self._folder, record)
        files = await workspace.files(story)
        manifests = await workspace.read(story, [path for path in scan_paths(files) if is_manifest(path)])
        surface = build_surface("", files, manifests)
        return frozenset(surface.files), frozenset(surface.dependencies)

    async def _give(self, record: SprintRecord, story: str, gate: Gate, answer: GateAnswer) -> dict[str, Any]:
        """Raises ConfigError when the story was reset or has ended since it asked, and when its time is over."""
        workflow = record.workflow_id(story)
        event = Event(
            id=answer_id(workflow, gate.number),
            time=self._clock.now(),
            name=GATE_ANSWERED,
            message=f"{story}: {settled(gate, answer)}",
            sprint=record.sprint,
            story=story,
            data={"answer": answer.model_dump(mode="json")},
        )
        # Events that end the question; their ids are known before they exist.
        reset, finished = f"{workflow}:story_reset", f"{workflow}:{FINISHED}"
        async with self._log() as sink:
            with usable():
                known = await sink.find([event.id, reset, finished])
                if event.id not in known:
                    _expect_open(story, gate, event, known.get(reset) or known.get(finished))
                first = event.id not in known and await sink.emit(event)
                # After a reset in between, no process will look at this answer.
                _expect_open(story, gate, event, (await sink.find([reset])).get(reset))
                counts = event if first else (await sink.find([event.id]))[event.id]
        counted = GateAnswer.model_validate(counts.data["answer"])
        pid = await asyncio.to_thread(holder, self._folder.lock(record.sprint))
        elsewhere = await asyncio.to_thread(self._folder.holder_elsewhere, record.sprint) if pid is None else ""
        late = "" if first else answered_first(story, gate, counted, counts.time)
        return {
            "sprint": record.sprint,
            "story": story,
            "gate": gate.number,
            "counts": first,
            "choice": counted.choice.value,
            "by": counted.by,
            "comment": counted.comment,
            "answered_at": counts.time.isoformat(),
            "running_pid": pid,
            "running_on": elsewhere,
            "begun_by": begun_by(record),
            "message": late or f"{story}: {settled(gate, counted)}",
        }

    async def _settled(self, record: SprintRecord, order: Order, sink: EventStore) -> Settled:
        until, warnings = time.monotonic() + self._wait_s, list[str]()
        name = f"{record.sprint}{CONTROL_MARK}{order.id}:settled"
        while True:
            event = (await sink.find([name])).get(name)
            if event is not None:
                return _warned(Settled.model_validate(event.data["settled"]), warnings)
            try:
                warnings = await self._apply(record.sprint, sink)
            except SprintLocked as error:  # the process that works on it applies it
                if time.monotonic() > until:
                    raise ConfigError(
                        f"{error.message}; it has not carried the order out within {self._wait_s:.0f} s, and the order "
                        "stands: `orchestrator logs` tells when it is"
                    ) from error
                await asyncio.sleep(LOOK_S)

    async def _apply(self, sprint: str, sink: EventStore) -> list[str]:
        """Applies every open order of a sprint that no process holds; returns warnings. Raises SprintLocked."""
        warnings: list[str] = []
        url, one_time = event_url(self._environment, self._folder), f"command-{uuid.uuid4().hex[:12]}"
        lease = Lease(url, one_time, folder=str(self._folder.home), lost=lambda _why: None)
        async with SprintLock(self._folder.lock(sprint)) as lock, lease, lease.holding(sprint):
            if lease.is_shared and await asyncio.to_thread(StoryClaims(lease).is_run_elsewhere, sprint):
                raise SprintLocked(f"daemons run stories of {sprint}, and one of them is about to hold it", pid=0)
            record = await asyncio.to_thread(self._folder.record, sprint)
            if record is None:
                raise ConfigError(f"the record of sprint {sprint} is gone")
            events = await asyncio.to_thread(read_numbered_events, self._environment, self._folder, record)
            workspace = workspace_of(self._folder, record, (lock.fd,), kept=True)
            board = Board(sprint)
            board.read(events)
            backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), self._settings, self._folder)
            renewal = Renewal(record, workspace, sink, self._folder, self._clock, source=Path(record.repo))
            try:
                async with BacklogWriter(backlog, warnings.append) as cells:
                    histories = fold(record, (event for _, event in events))
                    handler = CommandHandler(
                        SprintState(record, histories, sink=sink, clock=self._clock, cells=cells),
                        board,
                        CircuitBreaker(record, sink, self._clock, stop_after=0),
                        Slots(1),
                        runner=_NoRunner(),
                        renewer=renewal,
                        resumer="`orchestrator serve`" if record.executor else "the `run` command that began it",
                    )
                    await handler.obey()
            finally:
                workspace.close()
        return warnings


class _NoRunner:
    """Runs nothing: a workflow in the engine's database is not resumed here, as its story has ended."""

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """Never called."""
        raise RuntimeError(f"nothing runs {workflow_id}")

    async def cut_story(self, workflow_id: str) -> None:
        """Nothing of it runs."""

    async def end_story(self, workflow_id: str) -> None:
        """Nothing of it runs."""

    async def resume_story(self, workflow_id: str) -> None:
        """The next process that works on the sprint resumes it."""


def _kept(comment: str) -> str:
    try:
        return kept_comment(comment)
    except ConfigError as error:
        raise RequestRefused(error.message) from error


def _warned(settled: Settled, warnings: list[str]) -> Settled:
    return settled.model_copy(update={"message": "; warning: ".join([settled.message, *warnings])})


def _expect_open(story: str, gate: Gate, event: Event, ended: Event | None) -> None:
    if ended is not None:
        raise ConfigError(f"{story} asks no more: {ended.message}")
    if gate.deadline is not None and event.time >= gate.deadline:
        raise ConfigError(f"the time to answer {story} ended at {gate.deadline:%Y-%m-%d %H:%M:%S} UTC")
