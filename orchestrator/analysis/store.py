"""The analyses of a state folder: those of the command `analyse`, and those that a daemon was asked for."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from orchestrator.analysis.files import PLAN, PLAN_JSON
from orchestrator.analysis.stages import Ledger, fold
from orchestrator.core.analysis import (
    AnalysisRecord,
    AnalysisRequest,
    AnalysisState,
    AnalysisStatus,
    AnalysisView,
    ImprovementPlan,
)
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.core.story import id_problem
from orchestrator.core.value import Value
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.locks import holder
from orchestrator.storage.state_folder import StateFolder

V = TypeVar("V", bound=Value)
JOB, RESULTS = "job.json", "results"
BACKLOGS = {"csv": "backlog.csv", "yaml": "backlog.yaml"}
JOB_FILES = (JOB, f"{RESULTS}/*")
"""Files that a daemon keeps besides the record of an analysis, below its folder."""
MAX_SHOWN = 4_000_000
"""Bytes of a file that is shown whole."""
MAX_TRIED = 100_000


def _is_same(record: AnalysisRecord, repo: Path, asked: Callable[[Path], str]) -> bool:
    # `asked` names the repository, which may have moved since.
    moved = record.asked_in and record.repo == str(repo)
    return record.asked == asked(Path(record.asked_in) if moved else repo)


class AnalysisJob(Value):
    """An analysis that a daemon was asked for."""

    analysis: str
    asked: AnalysisRequest
    repo: str
    """As people know it."""
    status: AnalysisStatus = AnalysisStatus.RUNNING
    """Running until it has ended, also while no daemon is alive: the next one resumes it."""
    why: str = ""
    begun_at: datetime
    ended_at: datetime | None = None


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
                # A daemon and a command share the ids of one log.
                if one not in taken:
                    self.folder.analysis(one).mkdir(parents=True, exist_ok=name is not None)
                    return one
        raise ConfigError(f"no id is free in {self.folder.home}; name one with --id")

    def resumable(self, name: str | None, repo: Path, asked: Callable[[Path], str]) -> AnalysisRecord | None:
        """Returns the unfinished analysis of the command that asks for the same, or None for a new one.

        `asked` returns the request's text with another path of the repository.
        Raises ConfigError for a `name` of an analysis of something else, of a daemon's, or of a finished one.
        """
        records = self.folder.analyses()
        if name is None:
            mine = (one for one in reversed(records) if _is_same(one, repo, asked) and not one.finished)
            return next((one for one in mine if self.job(one.analysis) is None), None)
        known = next((one for one in records if one.analysis == name), None)
        if self.job(name) is not None:
            raise ConfigError(f"analysis {name} is a daemon's, which resumes it; give another id")
        if known is not None and not _is_same(known, repo, asked):
            raise ConfigError(
                f"analysis {name} has another repository, PRD, profile, prompts or analysis settings; give "
                "it another id"
            )
        if known is not None and known.finished:
            raise ConfigError(f"analysis {name} is finished; leave --id out to begin another one")
        return known

    def job(self, analysis: str) -> AnalysisJob | None:
        """Returns what a daemon was asked for under this id. Raises ConfigError when that cannot be read."""
        return _read(self.folder.analysis(analysis) / JOB, AnalysisJob)

    def unfinished(self) -> list[AnalysisJob]:
        """Returns the jobs that a daemon resumes; what cannot be read is left alone."""
        return [job for job in self._jobs() if job.status is AnalysisStatus.RUNNING]

    def save(self, job: AnalysisJob) -> None:
        """Writes it whole or not at all."""
        path = self.folder.analysis(job.analysis) / JOB
        self.folder.write(path, job.model_dump_json(indent=1).encode())

    def delete(self, analysis: str) -> None:
        """Deletes one that has not started."""
        shutil.rmtree(self.folder.analysis(analysis), ignore_errors=True)

    def strip(self, analysis: str) -> None:
        """Deletes what was sent with a request; that there was one, and how it ended, stays."""
        with suppress(ConfigError):
            job = self.job(analysis)
            if job is not None:
                self.save(job.model_copy(update={"asked": AnalysisRequest()}))

    def record(self, analysis: str) -> AnalysisRecord | None:
        """Returns the record of an analysis whose repository was read."""
        return _read(self.folder.analysis(analysis) / "analysis.json", AnalysisRecord)

    def plan(self, analysis: str) -> ImprovementPlan | None:
        """Returns the plan of a daemon's analysis."""
        plan = _read(self.folder.analysis(analysis) / RESULTS / PLAN_JSON, ImprovementPlan)
        return plan if plan is not None and plan.analysis == analysis else None

    def ledger(self, record: AnalysisRecord) -> Ledger:
        """Returns what the log says of its stages and calls."""
        reader = self._log()
        if reader is None:
            return Ledger()
        try:
            return fold(record, (event for _, event in reader.read(record.analysis)))
        finally:
            reader.close()

    def states(self) -> list[AnalysisState]:
        """Returns all of them, the newest last. Raises ConfigError for a record that cannot be read."""
        jobs = {job.analysis: job for job in self._jobs()}
        records = [one for one in self.folder.analyses() if one.analysis not in jobs]
        found = [*(self.state(job) for job in jobs.values()), *(self._state_of(record) for record in records)]
        return sorted(found, key=lambda state: state.begun_at)

    def state(self, job: AnalysisJob) -> AnalysisState:
        """Returns the state of a daemon's."""
        place = self.folder.analysis(job.analysis) / RESULTS
        return AnalysisState(
            **job.model_dump(exclude={"asked"}),
            begun_by="serve",
            folder=str(place),
            files=tuple(sorted(path.name for path in place.glob("[!.]*"))),
        )

    def view(self, analysis: str) -> AnalysisView:
        """Returns one with its results. Raises UnknownName, and ConfigError for what cannot be read."""
        job, record = self.job(analysis), self.record(analysis)
        if job is not None:
            state = self.state(job)
        elif record is not None:
            state = self._state_of(record)
        else:
            raise UnknownName(f"there is no analysis {analysis}")
        texts, too_long = self._texts(state)
        results = self.ledger(record).results if record is not None else {}
        return AnalysisView(
            **state.model_dump(),
            stages={stage: result.status.value for stage, result in results.items()},
            plan=self.plan(analysis) if PLAN_JSON in texts else None,
            markdown=texts.get(PLAN, ""),
            backlog=next((texts[name] for name in BACKLOGS.values() if name in texts), ""),
            too_long=too_long,
        )

    def _texts(self, state: AnalysisState) -> tuple[dict[str, str], tuple[str, ...]]:
        paths = [Path(state.folder) / name for name in state.files]
        try:
            short = [path for path in paths if path.stat().st_size <= MAX_SHOWN]
            texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in short}
        except OSError as error:
            raise ConfigError(f"what analysis {state.analysis} left cannot be read: {error.strerror}") from error
        return texts, tuple(path.name for path in paths if path not in short)

    def _state_of(self, record: AnalysisRecord) -> AnalysisState:
        busy = holder(self.folder.analysis(record.analysis) / "lock") is not None
        running = AnalysisStatus.RUNNING if busy else AnalysisStatus.OPEN
        return AnalysisState(
            analysis=record.analysis,
            status=AnalysisStatus.DONE if record.finished else running,
            begun_by="analyse",
            repo=record.repo,
            begun_at=record.started_at,
        )

    def _jobs(self) -> list[AnalysisJob]:
        found = []
        for path in self.folder.home.glob(f"analyses/*/{JOB}"):
            with suppress(ConfigError):  # a damaged file must not hide the other analyses
                found.append(_read(path, AnalysisJob))
        return [job for job in found if job is not None]

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


def _read(path: Path, kind: type[V]) -> V | None:
    try:
        return kind.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:  # not written yet
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read; move it away") from error
