"""Orders to a sprint: recorded first, then carried out by who holds the sprint, or here when nobody does."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

from orchestrator.adapters.backlog_writer import BacklogWriter
from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.event_store import EventStore, usable
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.sprint_lock import SprintLock, holder
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.control import CONTROL_GIVEN, CONTROL_MARK, Order, Settled, Verb
from orchestrator.domain.events import Event
from orchestrator.domain.outcome import StoryOutcome
from orchestrator.domain.redaction import secrets_of
from orchestrator.domain.sprint import SprintRecord
from orchestrator.errors import ConfigError, SprintLocked
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.board import Board
from orchestrator.sprint.books import Books
from orchestrator.sprint.history import fold
from orchestrator.sprint.order_taker import OrderTaker
from orchestrator.sprint.pause import Brake
from orchestrator.sprint.pruned import expect_kept
from orchestrator.sprint.slots import Slots
from orchestrator.sprint.standing import Standing
from orchestrator.wiring.backlogs import open_backlog
from orchestrator.wiring.read import Reader
from orchestrator.wiring.renewal import Renewal
from orchestrator.wiring.reset import reset
from orchestrator.wiring.sprints import event_url, numbered_events

LOOK_S = 0.1
"""Seconds between two looks at whether an order was carried out."""


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
    """Give an order and wait until it was carried out or refused; `sprint` None: the latest that has `story`.

    It stands from the moment it is recorded, whatever becomes of this process. Raises ConfigError for an unknown
    sprint or story, for a log that cannot be written, and when a living holder has not carried it out in time.
    """
    record = await asyncio.to_thread(_record, environment, sprint, story)
    given = Order(id=uuid.uuid4().hex[:12], verb=verb, story=story, by=by, comment=comment.strip())
    if verb is not Verb.REPLAN:  # what the architect is told is kept whole
        given = given.model_copy(update={"comment": given.brief})
    folder = StateFolder(environment.home)
    async with EventStore(event_url(environment, folder), secrets=secrets_of(environment.variables)) as sink:
        with usable():
            await sink.emit(given_event(record.sprint, given))
            return await _settled(environment, settings, folder, record, given, sink, wait_s)


async def reset_or_order(
    environment: Environment, settings: Settings, name: str, sprint: str | None, *, by: str, comment: str = ""
) -> Settled:
    """`reset` of a sprint or a story by its name: done here where nobody works on the sprint, else ordered.

    Raises what `wiring.reset.reset` and `order` raise.
    """
    try:
        done = await reset(name, sprint, settings, environment)
    except SprintLocked:
        in_sprint, story = await asyncio.to_thread(whom, environment, name, sprint)
        return await order(environment, settings, Verb.RESET, sprint=in_sprint, story=story, by=by, comment=comment)
    warning = f"; warning: {done.warning}" if done.warning else ""
    message = f"reset in sprint {done.sprint}: {', '.join(done.stories)}{warning}"
    return Settled(order="", done=True, message=message, stories=done.stories)


def whom(environment: Environment, name: str | None, sprint: str | None) -> tuple[str | None, str | None]:
    """(sprint or None for the latest, story or None for all of it) that an order with this name and --sprint is about.

    Blocks.
    """
    known = {record.sprint for record in StateFolder(environment.home).records() if not record.cleared}
    if name is not None and sprint in {None, name} and name in known:
        return name, None
    return sprint, name


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
        raise ConfigError(f"sprint {view.record.sprint} has no story {story}")
    expect_kept(view.record)
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
    until = time.monotonic() + wait_s
    name = f"{record.sprint}{CONTROL_MARK}{given.id}:settled"
    while True:
        event = (await sink.find([name])).get(name)
        if event is not None:
            return Settled.model_validate(event.data["settled"])
        pid = await asyncio.to_thread(holder, folder.lock(record.sprint))
        if pid is None:
            try:
                await _by_hand(environment, settings, folder, record.sprint, sink)
            except SprintLocked:  # somebody began to work on it in between
                await asyncio.sleep(LOOK_S)
        elif time.monotonic() > until:
            raise ConfigError(
                f"pid {pid} works on sprint {record.sprint} and has not carried it out within {wait_s:.0f} s; "
                f"the order stands: `orchestrator logs` tells when it is"
            )
        else:
            await asyncio.sleep(LOOK_S)


async def _by_hand(
    environment: Environment, settings: Settings, folder: StateFolder, sprint: str, sink: EventStore
) -> None:
    """Carry out every open order of a sprint that nobody works on. Raises SprintLocked."""
    async with SprintLock(folder.lock(sprint)) as lock:
        record = await asyncio.to_thread(folder.record, sprint)
        if record is None:
            raise ConfigError(f"the record of sprint {sprint} is gone")
        expect_kept(record)  # it may have been pruned since the order was given
        events = await asyncio.to_thread(numbered_events, environment, folder, record)
        standing = Standing(record, fold(record, (event for _, event in events)))
        workspace = GitWorkspace(
            mirror=folder.mirror(Path(record.repo)),
            folder=folder.worktrees(sprint),
            sprint=sprint,
            base=record.base,
            lock_fds=(lock.fd,),
        )
        board, clock = Board(sprint), SystemClock()
        board.read(events)
        backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), settings, folder)
        try:
            async with BacklogWriter(backlog, lambda _text: None) as cells:
                taker = OrderTaker(
                    standing,
                    board,
                    Brake(record, sink, clock, stop_after=0),
                    Slots(1),
                    runner=_Nobody(),
                    renewer=Renewal(record, workspace, folder, sink, clock, source=Path(record.repo)),
                    cells=cells,
                    sink=sink,
                    clock=clock,
                    record_outcome=Books(standing, sink, clock, cells).ended,
                )
                await taker.obey()
        finally:
            workspace.close()


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
