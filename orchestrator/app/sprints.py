"""Which sprint a command is about: continued, finished, or begun anew.

The architecture record of a running sprint, read from the event log as it grows.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator import __version__
from orchestrator.core.contract import ArchitectureRecord, Contribution
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.core.history import (
    StoryHistory,
    expect_kept,
    failed_in_a_row,
    fold,
    in_short,
    is_finished,
    kept_histories,
    rests,
)
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import SprintRecord, SprintReport, StoryStatus
from orchestrator.core.story import BacklogContent
from orchestrator.core.value import counted
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment
from orchestrator.settings.options import RunOptions
from orchestrator.sprint.selection import select
from orchestrator.storage.event_store import PATIENCE_S, EventReader
from orchestrator.storage.event_table import sqlite_url
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story.context import EVENT

Told = tuple[str, StoryStatus, str | None]
"""A story, how it is, and the commit of its branch."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The sprint of this run."""

    record: SprintRecord
    continued: bool
    content: BacklogContent


def begun_event(chosen: Chosen, provider: str, now: datetime) -> Event:
    """That a sprint starts or goes on."""
    record = chosen.record
    name = "sprint_continued" if chosen.continued else "sprint_started"
    return Event(
        id=f"{record.sprint}:{name}:{now.isoformat()}",
        time=now,
        name=name,
        message=f"sprint {record.sprint} {'goes on' if chosen.continued else 'starts'}: "
        f"{counted(len(record.story_ids), 'story', 'stories')}, provider {provider}",
        sprint=record.sprint,
        level=Level.INFO,
        data={"version": __version__, "base": record.base, "stories": list(record.story_ids)},
    )


def event_url(environment: Environment, folder: StateFolder) -> str:
    """Where the event log lives."""
    return environment.database_url or sqlite_url(folder.event_database)


def workspace_of(
    folder: StateFolder, record: SprintRecord, lock_fds: tuple[int, ...] = (), object_format: str = "sha1"
) -> GitWorkspace:
    """Returns the workspace of a sprint; commands in it keep `lock_fds` open."""
    return GitWorkspace(
        mirror=folder.mirror(Path(record.repo)),
        folder=folder.worktrees(record.sprint),
        sprint=record.sprint,
        base=record.base,
        lock_fds=lock_fds,
        object_format=object_format,
    )


def histories_of(
    environment: Environment, folder: StateFolder, record: SprintRecord, *, patience_s: float = 0.0, whole: str = ""
) -> dict[str, StoryHistory]:
    """What the log says about each story of a sprint; of a pruned one, what its report says. Blocks.

    Events are `in_short` but for those of the story `whole`: a sprint may have a thousand of them.
    """
    if record.pruned is not None:
        return kept_histories(record, record.pruned, saved_report(folder, record.sprint))
    if environment.database_url is None and not folder.event_database.exists():
        return fold(record, ())
    reader = EventReader(event_url(environment, folder), patience_s=patience_s)
    try:
        events = (event for _, event in reader.read(record.sprint))
        return fold(record, (event if event.story == whole else in_short(event) for event in events))
    finally:
        reader.close()


def numbered_events(environment: Environment, folder: StateFolder, record: SprintRecord) -> list[tuple[int, Event]]:
    """All events of a sprint with their sequence numbers, in order. Blocks."""
    if environment.database_url is None and not folder.event_database.exists():
        return []
    reader = EventReader(event_url(environment, folder))
    try:
        return [*reader.read(record.sprint)]
    finally:
        reader.close()


def sprint_events(
    environment: Environment, folder: StateFolder, record: SprintRecord, *, patience_s: float = 0.0
) -> list[Event]:
    """What the log says of the sprint itself, in order. Blocks."""
    if environment.database_url is None and not folder.event_database.exists():
        return []
    reader = EventReader(event_url(environment, folder), patience_s=patience_s)
    try:
        return reader.of_sprint(record.sprint)
    finally:
        reader.close()


def failed_before(
    environment: Environment, folder: StateFolder, record: SprintRecord, histories: Mapping[str, StoryHistory]
) -> tuple[str, ...]:
    """The stories that failed in a row up to now; those of a pause that was told count no more. Blocks."""
    told = _reported(folder, record)
    seen = [
        rest.since
        for rest in rests(sprint_events(environment, folder, record))
        if rest.interrupted or _outcomes(histories, rest.since) <= told
    ]
    return failed_in_a_row(histories, max(seen, default=None))


def continued_sprint(
    options: RunOptions, repo: Path, folder: StateFolder, unfinished: Callable[[SprintRecord], bool]
) -> SprintRecord | None:
    """The record this command goes on with, or None for a new sprint. Raises ConfigError when names contradict."""
    if options.sprint is not None:
        record = folder.record(options.sprint)
        if record is not None and not record.cleared:
            expect_kept(record)
            _same(record, options, repo)
        if record is not None and record.executor and not record.cleared:
            raise ConfigError(f"sprint {record.sprint} is the daemon's; `orchestrator serve` goes on with it")
        return record
    fitting = [
        record
        for record in folder.records()
        if (record.backlog, record.repo) == (str(options.backlog.absolute()), str(repo))
        and set(record.requested) == set(options.stories)
        and not record.cleared
        and not record.executor
    ]
    return next((record for record in reversed(fitting) if unfinished(record)), None)


def new_sprint(
    options: RunOptions,
    content: BacklogContent,
    folder: StateFolder,
    *,
    repo: Path,
    base: str,
    clock: Clock,
    elsewhere: Collection[str],
) -> SprintRecord:
    """The record of a sprint that begins now; `elsewhere` are sprints of other state folders in a shared database.

    Raises BacklogError, ConfigError.
    """
    if options.sprint in elsewhere:
        told = f"the database of DATABASE_URL holds a sprint {options.sprint} of another state folder"
        raise ConfigError(f"{told}; give it another id")
    taken = {record.sprint for record in folder.records() if not record.cleared} | set(elsewhere)
    selection = select(
        content, sprint=options.sprint, stories=options.stories, taken_sprints=taken, strict=options.strict
    )
    known = folder.record(selection.sprint)
    rows = [story for story in content.stories if story.id in selection.needs]
    return SprintRecord(
        sprint=selection.sprint,
        backlog=str(options.backlog.absolute()),
        repo=str(repo),
        base=base,
        story_ids=selection.story_ids,
        titles={story.id: story.title for story in rows if story.title},
        criteria={story.id: story.acceptance_criteria for story in rows if story.acceptance_criteria},
        needs=selection.needs,
        closes=selection.closes,
        done_ids=selection.done_ids,
        requested=tuple(options.stories),
        warnings=selection.warnings,
        generations=known.generations if known is not None else {},
        orders=known.orders if known is not None else (),
        started_at=clock.now(),
    )


def _same(record: SprintRecord, options: RunOptions, repo: Path) -> None:
    backlog = str(options.backlog.absolute())
    if record.backlog != backlog:
        raise ConfigError(f"sprint {record.sprint} was started with the backlog {record.backlog}; give it another id")
    if record.repo != str(repo):
        raise ConfigError(f"sprint {record.sprint} was started in the repository {record.repo}; give it another id")
    if options.stories and set(options.stories) != set(record.requested):
        asked = ", ".join(record.requested) or "all its rows"
        raise ConfigError(
            f"the selection of sprint {record.sprint} was frozen at its first start ({asked}); "
            f"leave --stories out to go on, or start another sprint"
        )


def sprints_elsewhere(environment: Environment, folder: StateFolder) -> frozenset[str]:
    """Sprints in the database of DATABASE_URL that this state folder knows nothing of. Blocks."""
    if environment.database_url is None:
        return frozenset()
    reader = EventReader(environment.database_url)
    try:
        return reader.sprints() - {record.sprint for record in folder.records()}
    finally:
        reader.close()


def finished(environment: Environment, folder: StateFolder, record: SprintRecord) -> bool:
    """Whether nothing is left to do: every story has its outcome and the report, a run's last deed, says so. Blocks."""
    return ended_at(environment, folder, record) is not None


def ended_at(environment: Environment, folder: StateFolder, record: SprintRecord) -> datetime | None:
    """When the last story of a finished sprint ended (see `finished`); None while something is left to do. Blocks."""
    if record.pruned is not None:
        return record.pruned.at
    histories = histories_of(environment, folder, record)
    if not is_finished(histories) or _reported(folder, record) != _outcomes(histories):
        return None
    return last_end(record, histories)


def last_end(record: SprintRecord, histories: Mapping[str, StoryHistory]) -> datetime:
    """When the last of its stories ended."""
    return max((history.finished for history in histories.values() if history.finished), default=record.started_at)


def ending_id(sprint: str, at: datetime) -> str:
    """Id of the event `sprint_ended`: told once for each end of its last story, however often one begins to tell it."""
    return f"{sprint}:sprint_ended:{at.isoformat()}"


def end_is_told(environment: Environment, folder: StateFolder, record: SprintRecord) -> bool:
    """Whether nothing is left to do of a daemon's sprint, telling its end included. Blocks."""
    at = ended_at(environment, folder, record)
    if at is None or record.pruned is not None:
        return at is not None
    told = ending_id(record.sprint, at)
    return any(event.id == told for event in sprint_events(environment, folder, record))


def _outcomes(histories: Mapping[str, StoryHistory], until: datetime | None = None) -> set[Told]:
    return {
        (story, history.outcome.status, history.outcome.commit)
        for story, history in histories.items()
        if history.outcome and (until is None or (history.finished and history.finished <= until))
    }


def _reported(folder: StateFolder, record: SprintRecord) -> set[Told]:
    report = saved_report(folder, record.sprint)
    return {(story.id, story.status, story.commit) for story in report.stories} if report else set()


def saved_report(folder: StateFolder, sprint: str) -> SprintReport | None:
    """The report as it was written; None where there is none that can be read. Blocks."""
    try:
        return SprintReport.model_validate(json.loads(folder.report(sprint).read_bytes()))
    except (OSError, ValueError):
        return None


def require_rows(chosen: Chosen, histories: Mapping[str, StoryHistory]) -> None:
    """Raises BacklogError when a story that still has work before it has no row in the backlog any more."""
    gone = [
        story for story, history in histories.items() if history.outcome is None and chosen.content.story(story) is None
    ]
    if gone:
        sprint, names = chosen.record.sprint, ", ".join(gone)
        raise BacklogError(
            f"{chosen.record.backlog} has no row {names} any more, which sprint {sprint} is about; "
            f"put it back, `cancel` it, or start another sprint with --sprint"
        )


class RecordKeeper:
    """Follows one sprint's log; each event is read once. Not for two threads at a time."""

    def __init__(self, environment: Environment, folder: StateFolder, record: SprintRecord) -> None:
        self._environment, self._folder, self._sprint = environment, folder, record.sprint
        # A story that was reset has another workflow since: what the earlier one added counts no more.
        self._current = {story: f"{record.workflow_id(story)}:" for story in record.story_ids}
        self._after = 0
        self._parts: list[Contribution] = []

    def current(self) -> ArchitectureRecord:
        """The record as it is now. Blocks."""
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return ArchitectureRecord()
        # It is asked for while the sprint is at work, which a restart of the database must not end.
        reader = EventReader(event_url(self._environment, self._folder), patience_s=PATIENCE_S)
        try:
            for seq, event in reader.read(self._sprint, self._after):
                self._after = seq
                if event.name == EVENT and event.id.startswith(self._current.get(event.story or "", "\0")):
                    self._parts.append(Contribution.model_validate(event.data["contribution"]))
        finally:
            reader.close()
        return ArchitectureRecord.of(self._parts)
