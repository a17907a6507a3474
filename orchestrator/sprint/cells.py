"""What a run writes into a story's row of the backlog, as a function of what the event log knows."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.story import CellUpdate
from orchestrator.sprint.history import FINISHED, StoryHistory

RUN_COLUMNS = ("Execution_Status", "Execution_Started_At", "Execution_Completed_At", "Last_Event", "Last_Updated")
"""Columns that a run writes, beside the sprint's name."""


def story_cells(
    record: SprintRecord, story_id: str, status: StoryStatus, event: str, times: Mapping[str, datetime]
) -> CellUpdate:
    """Sprint, status, last event and its time; `times` maps columns to the recorded times of events."""
    stamps = {column: stamp(time) for column, time in times.items()}
    cells = {"Sprint_ID": record.sprint, "Execution_Status": status.cell, "Last_Event": event, **stamps}
    return CellUpdate(story_id=story_id, cells={**cells, "Last_Updated": stamp(max(times.values()))})


def closed_cells(record: SprintRecord, story_id: str, times: Mapping[str, datetime]) -> list[CellUpdate]:
    """The rows that are closed with `story_id`, marked as done at its times."""
    done = story_cells(record, story_id, StoryStatus.DONE, f"closed_by {story_id}", times)
    return [CellUpdate(story_id=row, cells=done.cells) for row in record.closes.get(story_id, ())]


def known_cells(record: SprintRecord, histories: Mapping[str, StoryHistory]) -> list[CellUpdate]:
    """Everything the log knows once more: a crash between an event and its cells then loses nothing."""
    updates = []
    for story_id, history in histories.items():
        if history.outcome is not None and history.finished is not None:
            times = {"Execution_Started_At": history.started} if history.started else {}
            times["Execution_Completed_At"] = history.finished
            updates.append(story_cells(record, story_id, history.outcome.status, FINISHED, times))
            if history.outcome.status is StoryStatus.DONE:
                updates += closed_cells(record, story_id, times)
        elif history.started is None:
            updates.append(CellUpdate(story_id=story_id, cells={"Sprint_ID": record.sprint}))
    return updates


def cleared_cells(
    record: SprintRecord, stories: Sequence[str], done: Collection[str], *, whole: bool
) -> list[CellUpdate]:
    """The cells of stories that are begun anew, and of the rows closed with those that were `done`, emptied.

    With `whole` the sprint's name goes too.
    """
    columns = (*RUN_COLUMNS, "Sprint_ID") if whole else RUN_COLUMNS
    rows = (*stories, *(row for story in stories if story in done for row in record.closes.get(story, ())))
    return [CellUpdate(story_id=row, cells=dict.fromkeys(columns, "")) for row in rows]


def stamp(time: datetime) -> str:
    """UTC ISO 8601 with seconds, as written into cells."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
