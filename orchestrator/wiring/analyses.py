"""The analyses that a daemon carries out: one at a time, each by `analyse` in a process that the daemon owns.

A process of its own, for the durable engine of an analysis is another one than that of the sprints.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from orchestrator.adapters.checkout import Checkout
from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.mirror import Mirror
from orchestrator.adapters.owned_process import OwnedProcess
from orchestrator.adapters.repository import expect_there, open_repository
from orchestrator.adapters.sprint_lock import holder
from orchestrator.domain.analysis import AnalysisRequest, AnalysisState, AnalysisStatus
from orchestrator.domain.events import Level
from orchestrator.errors import ConfigError, OrchestratorError, SprintLocked, UnknownName, WorkspaceError
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.analysis_input import check_choice
from orchestrator.wiring.analysis_jobs import BACKLOGS, RESULTS, Job, Jobs
from orchestrator.wiring.analysis_output import is_whole
from orchestrator.wiring.analysis_record import claim
from orchestrator.wiring.keeper import Tell
from orchestrator.wiring.options import AnalyseOptions, ServeOptions
from orchestrator.wiring.repositories import SharedRepository

LOOK_S = 0.2
"""How often is looked whether somebody else who is at work on an analysis has ended, or the disk takes how one did."""
CANCEL_S = 10.0
"""Seconds that an analysis gets to end when it is cancelled."""
ENDED = frozenset({AnalysisStatus.PARTIAL, AnalysisStatus.FAILED, AnalysisStatus.CANCELLED})
"""What can be gone on with."""


class Host(Protocol):
    """The daemon, as far as an analysis needs it."""

    environment: Environment
    settings: Settings
    repository: SharedRepository

    @property
    def emit(self) -> Tell:
        """Records what becomes of it."""


class Analyses:
    """`carry_on` once the daemon is open, `end` when it ends."""

    def __init__(self, host: Host, options: ServeOptions) -> None:
        self._host, self._options = host, options
        self._jobs, self._clock = Jobs(host.environment), SystemClock()
        self._at_work: str | None = None
        """The analysis that is at work, "" while that is being found out."""
        self._task: asyncio.Task[None] | None = None
        self._process: OwnedProcess | None = None
        self._patience_s = CANCEL_S
        self._ended = asyncio.Event()
        """The one at work has ended, and that is kept."""
        self._cancelled = self._ending = self._concluding = False

    def carry_on(self) -> None:
        """Go on with what an earlier daemon had begun."""
        self._at_work = ""
        self._task = asyncio.create_task(self._carry_on(), name="analyses")

    async def begin(self, asked: AnalysisRequest) -> AnalysisState:
        """Begin an analysis, or go on with one. Raises ConfigError for what cannot be, SprintLocked while another is at
        work, WorkspaceError when the disk takes nothing; nothing is kept then.
        """
        if self._ending:
            raise SprintLocked("the daemon is about to end", pid=os.getpid())
        if self._at_work is not None:
            told = f"analysis {self._at_work} is" if self._at_work else "an analysis is being begun or gone on with"
            raise SprintLocked(f"{told} at work: one at a time" if self._at_work else told, pid=os.getpid())
        self._at_work = ""
        try:
            job = await asyncio.to_thread(self._accepted, asked)
        except BaseException as error:
            self._at_work = None
            if isinstance(error, OSError):
                raise WorkspaceError(f"the analysis cannot be kept: {error.strerror}") from error
            raise
        if not self._ending:  # else the next daemon begins it
            # A task that is cancelled before it has begun does nothing at all: until then it is not at work.
            self._patience_s = CANCEL_S
            self._task = asyncio.create_task(self._carry_out(job), name=f"analysis-{job.analysis}")
        return await asyncio.to_thread(self._jobs.state, job)

    async def cancel(self, analysis: str) -> AnalysisState:
        """End the analysis that is at work. Raises UnknownName, and SprintLocked when this one is not."""
        if analysis != self._at_work or self._task is None or self._concluding:
            if await asyncio.to_thread(self._jobs.job, analysis) is None:
                raise UnknownName(f"this daemon was asked for no analysis {analysis}")
            raise SprintLocked(f"analysis {analysis} is not at work", pid=os.getpid())
        self._cancelled = True
        ended = self._ended
        self._task.cancel()
        with suppress(TimeoutError):  # where the disk takes nothing it stays as it was
            await asyncio.wait_for(ended.wait(), 2 * CANCEL_S)
        job = await asyncio.to_thread(self._jobs.job, analysis)
        assert job is not None
        return await asyncio.to_thread(self._jobs.state, job)

    async def end(self, patience_s: float, hurry: asyncio.Event) -> None:
        """What is at work ends within `patience_s`, at once when there is `hurry`; the next daemon goes on with it."""
        self._ending, self._patience_s = True, patience_s
        if self._task is None or self._task.done():
            return
        if self._process is not None:
            self._process.patience_s = patience_s
        if not self._concluding:
            self._task.cancel()
        hurried = asyncio.create_task(hurry.wait(), name="hurry-analysis")
        await asyncio.wait({self._task, hurried}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if self._process is not None:
            self._process.kill()
        self._task.cancel()  # what it still wants to tell may find no log
        await asyncio.wait({self._task})

    def _accepted(self, asked: AnalysisRequest) -> Job:
        """What is kept of it. Blocks."""
        known = self._jobs.job(asked.analysis) if asked.analysis is not None else None
        if known is not None:
            return self._again(known, asked)
        if asked.analysis is not None and self._jobs.record(asked.analysis) is not None:
            raise ConfigError(f"analysis {asked.analysis} is one of the command `analyse`, which goes on with it")
        name = claim(self._jobs.folder, self._host.environment, asked.analysis)
        repo, now = str(self._host.repository), self._clock.now()
        job = Job(analysis=name, asked=asked.model_copy(update={"analysis": None}), repo=repo, begun_at=now)
        try:
            check_choice(self._given(job, Path()), self._settings(job), self._host.environment)
            self._jobs.save(job)
        except BaseException:
            self._jobs.forget(name)
            raise
        return job

    def _again(self, known: Job, asked: AnalysisRequest) -> Job:
        if self._jobs.is_pruned(known.analysis):
            raise ConfigError(f"analysis {known.analysis} was pruned; leave the id out to begin another one")
        if asked.model_copy(update={"analysis": None}) not in (known.asked, AnalysisRequest()):
            raise ConfigError(
                f"analysis {known.analysis} was asked for with something else; give another id, or only it"
            )
        if known.status not in ENDED:
            raise ConfigError(f"analysis {known.analysis} is {known.status}; leave the id out to begin another one")
        job = known.model_copy(update={"status": AnalysisStatus.RUNNING, "why": "", "ended_at": None})
        self._jobs.save(job)
        return job

    def _settings(self, job: Job) -> Settings:
        settings, triage = self._host.settings, job.asked.triage
        if triage is None:
            return settings
        return settings.model_copy(update={"analysis": settings.analysis.model_copy(update={"triage": triage})})

    def _given(self, job: Job, repo: Path) -> AnalyseOptions:
        """Everything that the command is given, with files where texts were sent. Blocks."""
        asked, results = job.asked, self._jobs.place(job.analysis) / RESULTS
        prd, prompts = self._jobs.lay_out(job)
        return AnalyseOptions(
            repo=repo,
            prd=prd,
            prompts=prompts,
            profile=asked.profile,
            stages=asked.stages,
            out=results,
            to_backlog=results / BACKLOGS[asked.backlog] if asked.backlog is not None else None,
            replace=True,
            analysis=job.analysis,
            provider=self._options.provider,
            script=self._options.script,
            call_log=self._options.call_log,
        )

    async def _carry_on(self) -> None:
        try:
            for job in await asyncio.to_thread(self._jobs.unfinished):
                await self._carry_out(job)
                self._at_work = ""
        finally:
            self._at_work = None

    async def _carry_out(self, job: Job) -> None:
        self._at_work, self._cancelled, self._ended = job.analysis, False, asyncio.Event()
        try:
            try:
                status, why = await self._outcome(job)
            except asyncio.CancelledError:
                if not self._cancelled:
                    raise
                status, why = AnalysisStatus.CANCELLED, ""
            except (OrchestratorError, OSError, ValueError) as error:
                status, why = AnalysisStatus.FAILED, getattr(error, "message", None) or str(error)
            self._concluding = True
            await self._conclude(job, status, why)
        finally:
            self._at_work, self._concluding = None, False
            self._ended.set()

    async def _conclude(self, job: Job, status: AnalysisStatus, why: str) -> None:
        ended = job.model_copy(update={"status": status, "why": why, "ended_at": self._clock.now()})
        # One that is not at work, but says so, could neither be ended nor gone on with.
        while not await asyncio.to_thread(self._jobs.is_saved, ended):  # noqa: ASYNC110 - room on a disk
            await asyncio.sleep(LOOK_S)
        checkout = self._checkout(job)
        with suppress(OSError, OrchestratorError):  # what is left of it goes with the analysis
            if await asyncio.to_thread(checkout.root.parent.exists):
                await checkout.remove()
        level = Level.ERROR if status is AnalysisStatus.FAILED else Level.INFO
        told = f"analysis {job.analysis}: {status}" + (f": {why}" if why else "")
        await self._host.emit("analysis_ended", told, level=level, analysis=job.analysis, status=status.value)

    async def _outcome(self, job: Job) -> tuple[AnalysisStatus, str]:
        """How it ended, and why it failed."""
        lock = self._jobs.place(job.analysis) / "lock"
        while await asyncio.to_thread(holder, lock) is not None:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(LOOK_S)
        record, said, code = await asyncio.to_thread(self._jobs.record, job.analysis), "", 0
        if record is None or not record.finished:
            repo = await self._repository(job, begun=record is not None)
            words = [*command(await asyncio.to_thread(self._given, job, repo)), *self._of_daemon(job)]
            code, said = await self._run(words)
        plan = await asyncio.to_thread(self._jobs.plan, job.analysis)
        if code not in {0, 1} or plan is None:
            return AnalysisStatus.FAILED, _reason(code, said)
        return (AnalysisStatus.DONE if is_whole(plan) else AnalysisStatus.PARTIAL), ""

    async def _run(self, words: Sequence[str]) -> tuple[int, str]:
        self._process = OwnedProcess(words, self._variables(), self._patience_s)
        try:
            async with self._process as process:
                return await process.ended()
        finally:
            self._process = None

    async def _repository(self, job: Job, *, begun: bool) -> Path:
        """The folder that is read: the files of a repository without any, as a remote one's copy, are laid out."""
        checkout = self._checkout(job)
        if begun and await asyncio.to_thread(checkout.root.is_dir):
            return checkout.root
        path = await self._host.repository.now()
        await asyncio.to_thread(expect_there, path)
        found = await open_repository(path)
        if not found.bare:
            return path
        checkout = self._checkout(job, path)
        await asyncio.to_thread(checkout.root.parent.mkdir, parents=True, exist_ok=True)
        await checkout.set_to(found.base)
        return checkout.root

    def _checkout(self, job: Job, mirror: Path = Path()) -> Checkout:
        return Checkout(Mirror(mirror), self._jobs.place(job.analysis) / "repository", "tree")

    def _variables(self) -> dict[str, str]:
        environment = self._host.environment
        kept = {name: value for name, value in environment.variables.items() if name != "ORCHESTRATOR_URL"}
        return {**kept, "ORCHESTRATOR_HOME": str(environment.home)}

    def _of_daemon(self, job: Job) -> Iterator[str]:
        yield from ("--owned", "--json", "--url", "here")
        if self._options.config is not None:
            yield f"--config={self._options.config}"
        yield from (f"--set={one}" for one in self._options.overrides)
        if job.asked.triage is not None:
            yield f"--set=analysis.triage={str(job.asked.triage).lower()}"


def command(options: AnalyseOptions) -> Iterator[str]:
    """The words of a command line that asks for the same."""
    yield from ("analyse", f"--out={options.out}", f"--id={options.analysis}")
    named = {
        "prd": options.prd,
        "prompts": options.prompts,
        "profile": options.profile,
        "stages": ",".join(options.stages) or None,
        "to-backlog": options.to_backlog,
        "provider": options.provider,
        "script": options.script,
        "call-log": options.call_log,
    }
    yield from (f"--{name}={value}" for name, value in named.items() if value is not None)
    if options.replace:
        yield "--replace"
    yield str(options.repo.absolute())


def _reason(code: int, said: str) -> str:
    """One sentence for people."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1] if lines else "")
    if code < 0:
        return f"its process was ended by signal {-code}"
    return told.removeprefix("error: ")[:1000] or f"it ended with exit code {code} and without a plan"
