"""Answering a story's question from any process, whether or not a run is alive; without the engine."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestrator.app.sprint_reader import Reader, history_of
from orchestrator.app.sprints import event_url, workspace_of
from orchestrator.app.views import begun_by
from orchestrator.core.command import GATE_ANSWERED, Choice, Gate, GateAnswer, answer_id
from orchestrator.core.errors import ConfigError, WorkspaceError
from orchestrator.core.event import Event
from orchestrator.core.history import FINISHED
from orchestrator.core.paths import is_manifest
from orchestrator.core.secrets import secrets_of
from orchestrator.core.sprint import SprintRecord
from orchestrator.files.process import SystemClock
from orchestrator.settings import Environment
from orchestrator.sprint.gate_answers import answered_first, expect_choice, open_gate, settled
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.event_table import usable
from orchestrator.storage.locks import holder
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story.project_scan import build_surface, scan_paths

RESET = "story_reset"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a story that can be answered now."""

    record: SprintRecord
    story: str
    gate: Gate

    @property
    def title(self) -> str:
        """The story's title, "" when it has none."""
        return self.record.titles.get(self.story, "")


@dataclass(frozen=True, kw_only=True)
class Given:
    """What became of an answer."""

    first: bool
    """Whether it is the one that counts."""
    answer: GateAnswer
    """The one that counts."""
    at: datetime
    running_pid: int | None
    """Who goes on with the story at once, if anybody."""


def question(environment: Environment, story: str, choice: Choice, *, sprint: str | None, number: int | None) -> Asked:
    """The question that `choice` can answer now. Raises ConfigError that says why there is none. Blocks."""
    reader = Reader(environment)
    view = reader.sprint(sprint, story=story)
    try:
        gate = open_gate(story, history_of(view, story), number, SystemClock().now())
    except ConfigError as error:
        elsewhere = _elsewhere(reader, story, view.record.sprint) if sprint is None else ""
        raise ConfigError(f"{error.message}{elsewhere}") from error
    expect_choice(story, gate, choice)
    return Asked(record=view.record, story=story, gate=gate)


def _elsewhere(reader: Reader, story: str, latest: str) -> str:
    """Where a person may have meant: an earlier sprint in which the story waits."""
    views = [view for view in reader.all() if view.record.sprint != latest and story in view.histories]
    waiting = [view.record.sprint for view in views if view.histories[story].waits_for is not None]
    return f"; in sprint {waiting[-1]} it waits: --sprint {waiting[-1]}" if waiting else ""


def waits(environment: Environment, story: str, sprint: str | None) -> bool:
    """Whether a person is asked about the story; False also for a story that nobody knows. Blocks."""
    try:
        return history_of(Reader(environment).sprint(sprint, story=story), story).waits_for is not None
    except ConfigError:
        return False


def at_question(environment: Environment, story: str, sprint: str | None) -> bool:
    """Whether the last that the story did was to ask: also when somebody has answered and it has not gone on yet.

    False also for a story that nobody knows. Blocks.
    """
    try:
        history = history_of(Reader(environment).sprint(sprint, story=story), story)
    except ConfigError:
        return False
    return history.waits_for is not None or (bool(history.events) and history.events[-1].name == GATE_ANSWERED)


async def give(environment: Environment, asked: Asked, answer: GateAnswer) -> Given:
    """Record the answer, once: of two people, or a person and the deadline, the first counts.

    Raises ConfigError when the story was reset or has ended since it asked, when its time is over, or when the log
    cannot be written.
    """
    folder, gate = StateFolder(environment.home), asked.gate
    workflow = asked.record.workflow_id(asked.story)
    event = Event(
        id=answer_id(workflow, gate.number),
        time=SystemClock().now(),
        name=GATE_ANSWERED,
        message=f"{asked.story}: {settled(gate, answer)}",
        sprint=asked.record.sprint,
        story=asked.story,
        data={"answer": answer.model_dump(mode="json")},
    )
    reset, finished = f"{workflow}:{RESET}", f"{workflow}:{FINISHED}"
    async with EventStore(event_url(environment, folder), secrets=secrets_of(environment.variables)) as sink:
        with usable():
            known = await sink.find([event.id, reset, finished])
            if event.id not in known:
                _expect_open(asked, event, known.get(reset) or known.get(finished))
            first = event.id not in known and await sink.emit(event)
            # A reset that came in between has made a question of the past of it: nobody will look at this answer.
            _expect_open(asked, event, (await sink.find([reset])).get(reset))
            counts = event if first else (await sink.find([event.id]))[event.id]
    return Given(
        first=first,
        answer=GateAnswer.model_validate(counts.data["answer"]),
        at=counts.time,
        running_pid=await asyncio.to_thread(holder, folder.lock(asked.record.sprint)),
    )


def _expect_open(asked: Asked, event: Event, ended: Event | None) -> None:
    if ended is not None:
        raise ConfigError(f"{asked.story} asks no more: {ended.message}")
    deadline = asked.gate.deadline
    if deadline is not None and event.time >= deadline:
        raise ConfigError(f"the time to answer {asked.story} ended at {deadline:%Y-%m-%d %H:%M:%S} UTC")


def named(asked: Asked) -> dict[str, Any]:
    """Which question an object for programs is about."""
    return {"sprint": asked.record.sprint, "story": asked.story, "gate": asked.gate.number}


def given_json(asked: Asked, given: Given) -> dict[str, Any]:
    """The answer that counts, and whether it is the one that was given now, also in one sentence."""
    late = "" if given.first else answered_first(asked.story, asked.gate, given.answer, given.at)
    return {
        **named(asked),
        "counts": given.first,
        "choice": given.answer.choice.value,
        "by": given.answer.by,
        "comment": given.answer.comment,
        "answered_at": given.at.isoformat(),
        "running_pid": given.running_pid,
        "begun_by": begun_by(asked.record),
        "message": late or f"{asked.story}: {settled(asked.gate, given.answer)}",
    }


async def project(environment: Environment, asked: Asked) -> tuple[frozenset[str], frozenset[str]]:
    """Files and package names that the story's plan is judged against: its branch, which nobody changes while it waits.

    Raises WorkspaceError when it cannot be read.
    """
    folder, record = StateFolder(environment.home), asked.record
    mirror = folder.mirror(Path(record.repo))
    if not await asyncio.to_thread(mirror.exists):
        raise WorkspaceError(f"the branch of {asked.story} cannot be read: there is no {mirror}")
    workspace = workspace_of(folder, record)
    files = await workspace.files(asked.story)
    manifests = await workspace.read(asked.story, [path for path in scan_paths(files) if is_manifest(path)])
    surface = build_surface("", files, manifests)
    return frozenset(surface.files), frozenset(surface.dependencies)
