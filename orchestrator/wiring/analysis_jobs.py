"""What a state folder knows of its analyses: those that a daemon was asked for, and those of `analyse` itself."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from orchestrator.adapters.atomic_file import replace_content
from orchestrator.adapters.event_store import EventReader
from orchestrator.adapters.private_files import private
from orchestrator.adapters.sprint_lock import holder
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.analysis.stages import fold
from orchestrator.domain.analysis import AnalysisRecord, ImprovementPlan
from orchestrator.domain.analysis import AnalysisRequest, AnalysisView, AnalysisState, AnalysisStatus
from orchestrator.domain.base import Value
from orchestrator.errors import ConfigError, UnknownName
from orchestrator.settings import Environment
from orchestrator.wiring.analysis_input import PLAN, PLAN_JSON
from orchestrator.wiring.sprints import event_url

V = TypeVar("V", bound=Value)
JOB, RESULTS, GIVEN = "job.json", "results", "given"
PRD, PROMPTS = "PRD.md", "prompts"
BACKLOGS = {"csv": "backlog.csv", "yaml": "backlog.yaml"}
JOB_FILES = (JOB, f"{RESULTS}/*", f"{GIVEN}/*.md", f"{GIVEN}/{PROMPTS}/*.md")
"""What a daemon has put beside the record of an analysis, below its folder."""
MOST_TOLD = 4_000_000
"""Bytes of a file that is told whole."""


class Job(Value):
    """An analysis that the daemon was asked for."""

    analysis: str
    asked: AnalysisRequest
    repo: str
    """As people are told of it."""
    status: AnalysisStatus = AnalysisStatus.RUNNING
    """Running until it has ended, whoever is alive: the next daemon goes on with it."""
    why: str = ""
    begun_at: datetime
    ended_at: datetime | None = None


class Jobs:
    """Analyses of one state folder. Everything blocks."""

    def __init__(self, environment: Environment) -> None:
        self._environment, self.folder = environment, StateFolder(environment.home)

    def place(self, analysis: str) -> Path:
        """The folder of what belongs to it."""
        return self.folder.analysis(analysis)

    def job(self, analysis: str) -> Job | None:
        """What the daemon was asked for under this id. Raises ConfigError when that cannot be read."""
        return _read(self.place(analysis) / JOB, Job)

    def unfinished(self) -> list[Job]:
        """Those that a daemon goes on with; what cannot be read is left alone."""
        return [job for job in self._jobs() if job.status is AnalysisStatus.RUNNING]

    def save(self, job: Job) -> None:
        """Whole or not at all."""
        place = self.place(job.analysis)
        place.mkdir(parents=True, exist_ok=True)
        replace_content(place / JOB, job.model_dump_json(indent=1).encode())

    def is_saved(self, job: Job) -> bool:
        """Whether it could be."""
        try:
            self.save(job)
        except OSError:
            return False
        return True

    def lay_out(self, job: Job) -> tuple[Path | None, Path | None]:
        """What was given along, as files: the PRD and the folder of prompts."""
        given = self.place(job.analysis) / GIVEN
        shutil.rmtree(given, ignore_errors=True)
        prompts = given / PROMPTS
        prompts.mkdir(parents=True)
        (self.place(job.analysis) / RESULTS).mkdir(exist_ok=True)
        for name, text in job.asked.prompts.items():
            _write(prompts / name, text)
        if job.asked.prd is not None:
            _write(given / PRD, job.asked.prd)
        return (given / PRD if job.asked.prd is not None else None), (prompts if job.asked.prompts else None)

    def forget(self, analysis: str) -> None:
        """It was never begun."""
        shutil.rmtree(self.place(analysis), ignore_errors=True)

    def strip(self, analysis: str) -> None:
        """Nothing is kept of what was given along, only that it was asked for here and how it ended."""
        with suppress(ConfigError):
            job = self.job(analysis)
            if job is not None:
                self.save(job.model_copy(update={"asked": AnalysisRequest()}))

    def record(self, analysis: str) -> AnalysisRecord | None:
        """Of an analysis that has really begun."""
        return _read(self.place(analysis) / "analysis.json", AnalysisRecord)

    def is_pruned(self, analysis: str) -> bool:
        """Whether nothing is left to go on with."""
        record = self.record(analysis)
        return record is not None and record.pruned is not None

    def plan(self, analysis: str) -> ImprovementPlan | None:
        """What it has come to."""
        plan = _read(self.place(analysis) / RESULTS / PLAN_JSON, ImprovementPlan)
        return plan if plan is not None and plan.analysis == analysis else None

    def states(self) -> list[AnalysisState]:
        """All of them, the newest last. Raises ConfigError for a record that cannot be read."""
        jobs = {job.analysis: job for job in self._jobs()}
        records = [one for one in self.folder.analyses() if one.analysis not in jobs]
        found = [*(self.state(job) for job in jobs.values()), *(self._of_record(record) for record in records)]
        return sorted(found, key=lambda state: state.begun_at)

    def state(self, job: Job) -> AnalysisState:
        """How one stands that the daemon was asked for."""
        place = self.place(job.analysis) / RESULTS
        return AnalysisState(
            analysis=job.analysis,
            status=job.status,
            why=job.why,
            begun_by="serve",
            repo=job.repo,
            begun_at=job.begun_at,
            ended_at=job.ended_at,
            folder=str(place),
            files=tuple(sorted(path.name for path in place.glob("[!.]*"))),
        )

    def shown(self, analysis: str) -> AnalysisView:
        """One with what it has come to. Raises UnknownName, and ConfigError for what cannot be read."""
        job, record = self.job(analysis), self.record(analysis)
        if job is not None:
            state = self.state(job)
        elif record is not None:
            state = self._of_record(record)
        else:
            raise UnknownName(f"there is no analysis {analysis}")
        texts, too_long = self._texts(state)
        told = {
            "stages": self._stages(record) if record is not None else {},
            "plan": self.plan(analysis) if PLAN_JSON in texts else None,
            "markdown": texts.get(PLAN, ""),
            "backlog": next((texts[name] for name in BACKLOGS.values() if name in texts), ""),
            "too_long": too_long,
        }
        return AnalysisView.model_validate({**state.model_dump(), **told})

    def _texts(self, state: AnalysisState) -> tuple[dict[str, str], tuple[str, ...]]:
        paths = [Path(state.folder) / name for name in state.files]
        try:
            short = [path for path in paths if path.stat().st_size <= MOST_TOLD]
            texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in short}
        except OSError as error:
            raise ConfigError(f"what analysis {state.analysis} left cannot be read: {error.strerror}") from error
        return texts, tuple(path.name for path in paths if path not in short)

    def _stages(self, record: AnalysisRecord) -> dict[str, str]:
        if self._environment.database_url is None and not self.folder.event_database.exists():
            return {}
        reader = EventReader(event_url(self._environment, self.folder))
        try:
            ledger = fold(record, (event for _, event in reader.read(record.analysis)))
        finally:
            reader.close()
        return {stage: result.status.value for stage, result in ledger.results.items()}

    def _of_record(self, record: AnalysisRecord) -> AnalysisState:
        busy = holder(self.place(record.analysis) / "lock") is not None
        running = AnalysisStatus.RUNNING if busy else AnalysisStatus.OPEN
        return AnalysisState(
            analysis=record.analysis,
            status=AnalysisStatus.DONE if record.finished else running,
            begun_by="analyse",
            repo=record.repo,
            begun_at=record.started_at,
        )

    def _jobs(self) -> Iterator[Job]:
        for path in self.folder.home.glob(f"analyses/*/{JOB}"):
            try:
                job = _read(path, Job)
            except ConfigError:
                continue
            if job is not None:
                yield job


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="replace", opener=private) as file:
        file.write(text)


def _read(path: Path, kind: type[V]) -> V | None:
    try:
        return kind.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read; move it away") from error
