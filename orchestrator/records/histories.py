"""What the event log says of the stories of a sprint, and how the sprint ended."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from orchestrator.core.event import Event
from orchestrator.core.history import StoryHistory, failed_in_a_row, fold, is_finished, last_rest
from orchestrator.core.sprint import SprintRecord, SprintReport
from orchestrator.settings import Environment
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.state_folder import StateFolder


def event_url(environment: Environment, folder: StateFolder) -> str:
    """Returns where the event log lives."""
    return environment.database_url or sqlite_url(folder.event_database)


@contextmanager
def open_log(environment: Environment, folder: StateFolder, *, patience_s: float = 0.0) -> Iterator[EventReader | None]:
    """Hands out the event log to be read; None while there is none yet. `patience_s`: how long a database that is away
    is waited for."""
    if environment.database_url is None and not folder.event_database.exists():
        yield None
        return
    reader = EventReader(event_url(environment, folder), patience_s=patience_s)
    try:
        yield reader
    finally:
        reader.close()


def read_histories(
    environment: Environment, folder: StateFolder, record: SprintRecord, *, patience_s: float = 0.0, story: str = ""
) -> dict[str, StoryHistory]:
    """Returns what the log says about each story of a sprint. Blocks.

    With `story` about that one alone, and with all that is recorded of it: else events are `in_short`, for a sprint may
    have a thousand stories.
    """
    if story:
        record = record.model_copy(update={"story_ids": tuple(one for one in record.story_ids if one == story)})
    with open_log(environment, folder, patience_s=patience_s) as log:
        events = (logged for _, logged in (log.stored(record.sprint, story=story or None) if log else ()))
        return fold(record, events if story else (logged.in_short() for logged in events))


def read_numbered_events(
    environment: Environment, folder: StateFolder, record: SprintRecord
) -> list[tuple[int, Event]]:
    """Returns all events of a sprint with their sequence numbers, in order. Blocks."""
    with open_log(environment, folder) as log:
        return [*log.read(record.sprint)] if log else []


def read_sprint_events(
    environment: Environment, folder: StateFolder, record: SprintRecord, *, patience_s: float = 0.0
) -> list[Event]:
    """Returns what the log says of the sprint itself, in order. Blocks."""
    with open_log(environment, folder, patience_s=patience_s) as log:
        return log.of_sprint(record.sprint) if log else []


def find_failed_before(
    environment: Environment, folder: StateFolder, record: SprintRecord, histories: Mapping[str, StoryHistory]
) -> tuple[str, ...]:
    """Returns the stories that failed in a row since the sprint last paused. Blocks."""
    return failed_in_a_row(histories, last_rest(read_sprint_events(environment, folder, record)))


def is_sprint_finished(environment: Environment, folder: StateFolder, record: SprintRecord) -> bool:
    """Returns whether every story has its outcome and nothing is left to do of the sprint. Blocks."""
    return find_end(environment, folder, record) is not None


def find_end(environment: Environment, folder: StateFolder, record: SprintRecord) -> datetime | None:
    """Returns when the last story of a sprint ended; None while something is left to do: `sprint_ended` of that end is
    recorded last. Blocks."""
    histories = read_histories(environment, folder, record)
    if not is_finished(histories):
        return None
    ended = find_last_end(record, histories)
    told = name_end(record, ended)
    return ended if any(one.id == told for one in read_sprint_events(environment, folder, record)) else None


def find_last_end(record: SprintRecord, histories: Mapping[str, StoryHistory]) -> datetime:
    """Returns when the last of its stories ended."""
    return max((history.finished for history in histories.values() if history.finished), default=record.started_at)


def name_end(record: SprintRecord, ended: datetime) -> str:
    """Returns the id of the event `sprint_ended` for this end of its last story, which is recorded once."""
    return f"{record.sprint}:sprint_ended:{ended.isoformat()}"


def read_saved_report(folder: StateFolder, sprint: str) -> SprintReport | None:
    """Returns the report as it was written; None where there is none that can be read. Blocks."""
    try:
        return SprintReport.model_validate(json.loads(folder.report(sprint).read_bytes()))
    except (OSError, ValueError):  # missing or damaged: the log has everything
        return None
