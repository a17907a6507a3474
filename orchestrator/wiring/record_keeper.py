"""The architecture record of a running sprint, read from the event log as it grows."""

from orchestrator.adapters.event_store import PATIENCE_S, EventReader
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.record import ArchitectureRecord, Contribution
from orchestrator.domain.sprint import SprintRecord
from orchestrator.settings import Environment
from orchestrator.sprint.record import EVENT
from orchestrator.wiring.sprints import event_url


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
