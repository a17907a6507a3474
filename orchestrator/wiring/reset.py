"""`reset`: a story or a sprint is made as if it had not been run; its earlier generation stays in the log."""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.event_store import EventStore
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.sprint_lock import SprintLock
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.events import Event
from orchestrator.domain.redaction import secrets_of
from orchestrator.domain.sprint import Replan, SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.cells import cleared_cells
from orchestrator.sprint.history import StoryHistory
from orchestrator.sprint.obeying import why_not_replanned, with_blocked
from orchestrator.sprint.pruned import expect_kept
from orchestrator.wiring.backlogs import open_backlog
from orchestrator.wiring.renewal import replan_of, reset_events
from orchestrator.wiring.shown import begun_by
from orchestrator.wiring.sprints import event_url, histories_of


@dataclass(frozen=True, kw_only=True)
class ResetResult:
    """What was reset, and a warning when the backlog could not be written."""

    sprint: str
    stories: tuple[str, ...]
    warning: str | None
    begun_by: str
    """The command that goes on with it."""


def reset_json(result: ResetResult) -> dict[str, Any]:
    """The same for programs."""
    return {**asdict(result), "stories": list(result.stories)}


async def reset(
    name: str, sprint: str | None, settings: Settings, environment: Environment, *, comment: str | None = None
) -> ResetResult:
    """Reset a sprint, or a story of `sprint` (default: the latest that has it) with what it blocked.

    With a `comment` it is a story that did not end well, to be planned anew: the architect is told the comment, and a
    conflict that the story ended in is overridden. Of a pruned sprint, rows become free for another one. Raises
    ConfigError for an unknown name, and for a comment on anything else; SprintLocked while the sprint is being run.
    """
    folder = StateFolder(environment.home)
    record, whole = await asyncio.to_thread(find, folder, name, sprint)
    if record.pruned is not None:
        if comment is not None:
            expect_kept(record)
        return await asyncio.to_thread(_freed, folder, settings, record, record.story_ids if whole else (name,))
    return await _anew(name, record, whole, settings, environment, comment)


async def _anew(
    name: str, record: SprintRecord, whole: bool, settings: Settings, environment: Environment, comment: str | None
) -> ResetResult:
    folder = StateFolder(environment.home)
    async with SprintLock(folder.lock(record.sprint)) as lock:
        histories = await asyncio.to_thread(histories_of, environment, folder, record)
        said = _replan(name, whole, histories, comment) if comment is not None else None
        stories = record.story_ids if whole else _with_blocked(name, histories)
        workspace = GitWorkspace(
            mirror=folder.mirror(Path(record.repo)),
            folder=folder.worktrees(record.sprint),
            sprint=record.sprint,
            base=record.base,
            lock_fds=(lock.fd,),
        )
        await workspace.prepare(Path(record.repo))
        try:
            # The record goes last: a reset that was cut short can be given again.
            for story in stories:
                await workspace.remove(story)
            if whole:
                await workspace.remove_result()
        finally:
            workspace.close()
        done = {story for story in stories if histories[story].status is StoryStatus.DONE}
        updates = cleared_cells(record, stories, done, whole=whole)
        backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), settings, folder)
        warning = await asyncio.to_thread(backlog.write, updates)
        after = record.replan(stories, name, said) if said else record.reset(stories)
        await _tell(environment, folder, reset_events(record, after, stories, SystemClock()))
        await asyncio.to_thread(folder.save, after.model_copy(update={"cleared": whole}))
    return ResetResult(sprint=record.sprint, stories=stories, warning=warning, begun_by=begun_by(record))


def _freed(folder: StateFolder, settings: Settings, record: SprintRecord, stories: tuple[str, ...]) -> ResetResult:
    """A pruned sprint is over for good: another one may take these rows."""
    done = {story for story in stories if record.pruned and record.pruned.statuses.get(story) is StoryStatus.DONE}
    backlog = open_backlog(Path(record.backlog), settings, folder)
    warning = backlog.write(cleared_cells(record, stories, done, whole=True))
    return ResetResult(sprint=record.sprint, stories=stories, warning=warning, begun_by=begun_by(record))


def _replan(name: str, whole: bool, histories: dict[str, StoryHistory], comment: str) -> Replan:
    if whole:
        raise ConfigError(f"{name} is a sprint; name the story that is to be planned anew")
    history = histories[name]
    blocked_by = history.outcome.blocked_by if history.outcome is not None else ()
    refused = why_not_replanned(name, history.status, blocked_by, comment)
    if refused:
        raise ConfigError(refused)
    return replan_of(history, comment)


def find(folder: StateFolder, name: str, sprint: str | None) -> tuple[SprintRecord, bool]:
    """The sprint that is meant, and whether all of it is. Raises ConfigError for an unknown name. Blocks."""
    records = [record for record in folder.records() if not record.cleared]
    for record in records:
        if record.sprint == name and sprint in {None, name}:
            return record, True
    for record in reversed(records):
        if name in record.story_ids and sprint in {None, record.sprint}:
            return record, False
    closer = next((story for record in records for story, rows in record.closes.items() if name in rows), None)
    if closer is not None:
        raise ConfigError(f"{name} was not run itself, it is done with {closer}: reset that one")
    known = ", ".join(record.sprint for record in records) or "none"
    raise ConfigError(f"{name} is neither a sprint nor a story of one; sprints here: {known}")


def _with_blocked(name: str, histories: dict[str, StoryHistory]) -> tuple[str, ...]:
    status = {story: history.status for story, history in histories.items()}
    blocked_by = {story: history.outcome.blocked_by for story, history in histories.items() if history.outcome}
    return with_blocked([name], status, blocked_by)


async def _tell(environment: Environment, folder: StateFolder, events: Iterable[Event]) -> None:
    async with EventStore(event_url(environment, folder), secrets=secrets_of(environment.variables)) as sink:
        for event in events:
            await sink.emit(event)
