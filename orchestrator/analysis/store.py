"""The analyses of a state folder."""

from contextlib import suppress
from pathlib import Path

from orchestrator.analysis.stages import Ledger, fold
from orchestrator.core.analysis import AnalysisRecord
from orchestrator.core.errors import ConfigError
from orchestrator.core.story import id_problem
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.state_folder import StateFolder

MAX_TRIED = 100_000


def _is_same(record: AnalysisRecord, repo: Path, asked: str) -> bool:
    return record.repo == str(repo) and record.asked == asked


class AnalysisStore:
    """Analyses of one state folder. Everything blocks."""

    def __init__(self, environment: Environment, *, asked: bool = False) -> None:
        """`asked` as for `StateFolder.of`."""
        self._environment, self.folder = environment, StateFolder.of(environment, asked=asked)

    def claim(self, name: str | None) -> str:
        """Returns `name`, or the next free id, which is the caller's from now on. Raises ConfigError."""
        if name is not None and (problem := id_problem(name)):
            raise ConfigError(f"--id {name}: {problem}")
        taken = {record.sprint for record in self.folder.records()} | self._logged()
        if name in taken:
            raise ConfigError(
                f"{name} is the id of a sprint or of another state folder's analysis; give it another one"
            )
        for one in [name] if name is not None else (f"AN-{number:03d}" for number in range(1, MAX_TRIED)):
            # The folder is what makes the id ours: of two commands at once each gets its own.
            with suppress(FileExistsError):
                if one not in taken:
                    self.folder.analysis(one).mkdir(parents=True, exist_ok=name is not None)
                    return one
        raise ConfigError(f"no id is free in {self.folder.home}; name one with --id")

    def resumable(self, name: str | None, repo: Path, asked: str) -> AnalysisRecord | None:
        """Returns the unfinished analysis of the command that asks for the same, or None for a new one.

        Raises ConfigError for a `name` of an analysis of something else, or of a finished one.
        """
        records = self.folder.analyses()
        if name is None:
            return next((one for one in reversed(records) if _is_same(one, repo, asked) and not one.finished), None)
        known = next((one for one in records if one.analysis == name), None)
        if known is not None and not _is_same(known, repo, asked):
            raise ConfigError(
                f"analysis {name} has another repository, PRD, profile, prompts or analysis settings; give "
                "it another id"
            )
        if known is not None and known.finished:
            raise ConfigError(f"analysis {name} is finished; leave --id out to begin another one")
        return known

    def ledger(self, record: AnalysisRecord) -> Ledger:
        """Returns what the log says of its stages and calls."""
        reader = self._log()
        if reader is None:
            return Ledger()
        try:
            return fold(record, (event for _, event in reader.read(record.analysis)))
        finally:
            reader.close()

    def _logged(self) -> frozenset[str]:
        reader = self._log()
        if reader is None:
            return frozenset()
        try:
            return frozenset(reader.sprints())
        finally:
            reader.close()

    def _log(self) -> EventReader | None:
        if self._environment.database_url is None and not self.folder.event_database.exists():
            return None
        return EventReader(event_url(self._environment, self.folder))
