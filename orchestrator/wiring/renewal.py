"""A story begun anew, as the record and the log have it."""

from collections.abc import Iterator, Sequence

from orchestrator.domain.events import Event
from orchestrator.domain.sprint import Replan, SprintRecord
from orchestrator.ports import Clock


def cleared_record(record: SprintRecord) -> SprintRecord:
    """The record of a sprint that is as if it had not been: the next start selects anew."""
    return record.reset(record.story_ids).model_copy(update={"cleared": True})


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
