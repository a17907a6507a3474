"""The analyses that a daemon is asked for: one at a time, in the runtime of its sprints."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from orchestrator.analysis.files import Outputs, is_whole
from orchestrator.analysis.input import packed_repository, read_request
from orchestrator.analysis.run import AnalysisRun, freeze
from orchestrator.analysis.store import BACKLOGS, RESULTS, AnalysisJob, AnalysisStore
from orchestrator.app.secrets import masks_of
from orchestrator.core.analysis import AnalysisRecord, AnalysisRequest, AnalysisState, AnalysisStatus, Packed
from orchestrator.core.errors import (
    ConfigError,
    EventLogAway,
    OrchestratorError,
    SprintLocked,
    UnknownName,
    WorkspaceError,
)
from orchestrator.core.event import Level
from orchestrator.daemon.shared_stories import Host
from orchestrator.files.process import SystemClock
from orchestrator.git.checkout import Checkout
from orchestrator.git.mirror import Mirror
from orchestrator.git.repository import expect_there, open_repository
from orchestrator.personas.analyst import NAME
from orchestrator.providers.routing import require_seat
from orchestrator.settings import Settings
from orchestrator.storage.leases import NEW, NEW_S
from orchestrator.storage.locks import SprintLock, holder

RETRY_S = 0.2  # a full disk, or a process of 0.1, is looked at again
CANCEL_S = 20.0
"""Seconds that a request to cancel waits for the end."""
RESUMABLE = frozenset({AnalysisStatus.PARTIAL, AnalysisStatus.FAILED, AnalysisStatus.CANCELLED})


class Analyses:
    """Use `resume` once the daemon is open, `close` when it ends."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._store, self._clock = AnalysisStore(host.environment), SystemClock()
        self._current: str | None = None
        """The analysis at work; "" while one is accepted or resumed."""
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        """The one at work has ended, and that is saved."""
        self._cancelled = self._closing = self._concluding = False

    def resume(self) -> None:
        """Resumes analyses that a daemon started which has ended, unless one is at work."""
        if self._current is None and not self._closing:
            self._current = ""
            self._task = asyncio.create_task(self._resume(), name="analyses")

    async def begin(self, request: AnalysisRequest) -> AnalysisState:
        """Begins or resumes an analysis.

        Raises ConfigError for what cannot be used, SprintLocked while another one is at work, WorkspaceError when the
        disk takes nothing; nothing is kept then.
        """
        if self._closing:
            raise SprintLocked("the daemon is about to end", pid=os.getpid())
        if self._current is not None:
            what = f"analysis {self._current} is" if self._current else "an analysis is being started or resumed"
            raise SprintLocked(f"{what} at work: one at a time" if self._current else what, pid=os.getpid())
        self._current = ""
        try:
            async with self._host.equipment.works.lease.holding(NEW, wait_s=NEW_S):
                job = await asyncio.to_thread(self._accept, request)
        except BaseException as error:
            self._current = None
            if isinstance(error, OSError):
                raise WorkspaceError(f"the analysis cannot be kept: {error.strerror}") from error
            raise
        if not self._closing:  # else the next daemon begins it
            self._task = asyncio.create_task(self._carry_out(job), name=f"analysis-{job.analysis}")
        return await asyncio.to_thread(self._store.state, job)

    async def cancel(self, analysis: str) -> AnalysisState:
        """Cancels the analysis at work. Raises UnknownName, and SprintLocked when this one is not at work."""
        # A task that is cancelled before its first step does nothing at all: until then `_current` is "".
        if analysis != self._current or self._task is None or self._concluding:
            if await asyncio.to_thread(self._store.job, analysis) is None:
                raise UnknownName(f"this daemon was asked for no analysis {analysis}")
            raise SprintLocked(f"analysis {analysis} is not at work", pid=os.getpid())
        self._cancelled = True
        ended = self._ended
        self._task.cancel()
        with suppress(TimeoutError):  # where the disk takes nothing it stays as it was
            await asyncio.wait_for(ended.wait(), CANCEL_S)
        job = await asyncio.to_thread(self._store.job, analysis)
        assert job is not None
        return await asyncio.to_thread(self._store.state, job)

    async def close(self) -> None:
        """Stops what is at work, at once: its calls had the grace of all calls. The next daemon resumes it."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _accept(self, request: AnalysisRequest) -> AnalysisJob:
        """Checks and keeps what is requested. Blocks."""
        store, name = self._store, request.analysis
        require_seat(self._host.settings, self._host.environment, NAME, self._host.equipment.provider)
        request = request.model_copy(update={"analysis": None})
        known = store.job(name) if name is not None else None
        if known is not None:
            record = store.record(known.analysis)
            if record is not None and record.pruned is not None:
                raise ConfigError(f"analysis {name} was pruned; leave the id out to begin another one")
            if request not in (known.asked, AnalysisRequest()):
                raise ConfigError(f"analysis {name} was asked for with something else; give another id, or only it")
            if known.status not in RESUMABLE:
                raise ConfigError(f"analysis {name} is {known.status}; leave the id out to begin another one")
            job = known.model_copy(update={"status": AnalysisStatus.RUNNING, "why": "", "ended_at": None})
            store.save(job)
            return job
        if name is not None and store.record(name) is not None:
            raise ConfigError(f"analysis {name} is one of the command `analyse`, which resumes it")
        repo, now = str(self._host.repository), self._clock.now()
        job = AnalysisJob(analysis=store.claim(name), asked=request, repo=repo, begun_at=now)
        try:
            read_request(request, self._settings(job), self._host.environment)
            store.save(job)
        except BaseException:
            store.delete(job.analysis)
            raise
        return job

    def _settings(self, job: AnalysisJob) -> Settings:
        settings, triage = self._host.settings, job.asked.triage
        if triage is None:
            return settings
        return settings.model_copy(update={"analysis": settings.analysis.model_copy(update={"triage": triage})})

    async def _resume(self) -> None:
        try:
            try:
                others = await asyncio.to_thread(self._host.equipment.works.lease.others)
            except EventLogAway:  # the next look finds them
                return
            for job in await asyncio.to_thread(self._store.unfinished):
                if job.analysis in others:
                    continue
                await self._carry_out(job)
                self._current = ""
        finally:
            self._current = None

    async def _carry_out(self, job: AnalysisJob) -> None:
        self._current, self._cancelled, self._ended = job.analysis, False, asyncio.Event()
        try:
            try:
                status, why = await self._outcome(job), ""
            except asyncio.CancelledError:
                if not self._cancelled:
                    raise
                status, why = AnalysisStatus.CANCELLED, ""
            except (OrchestratorError, OSError, ValueError) as error:
                status, why = AnalysisStatus.FAILED, getattr(error, "message", None) or str(error)
            self._concluding = True
            await self._conclude(job.model_copy(update={"status": status, "why": why, "ended_at": self._clock.now()}))
        finally:
            self._current, self._concluding = None, False
            self._ended.set()

    async def _conclude(self, job: AnalysisJob) -> None:
        # One that is not at work, but says so, could neither be cancelled nor resumed: the disk is waited for.
        while True:
            with suppress(OSError):
                await asyncio.to_thread(self._store.save, job)
                break
            await asyncio.sleep(RETRY_S)
        level = Level.ERROR if job.status is AnalysisStatus.FAILED else Level.INFO
        message = f"analysis {job.analysis}: {job.status}" + (f": {job.why}" if job.why else "")
        await self._host.equipment.works.emit(
            "", "analysis_ended", message, level=level, analysis=job.analysis, status=job.status.value
        )

    async def _outcome(self, job: AnalysisJob) -> AnalysisStatus:
        """Returns how it ended. Raises OrchestratorError, OSError, ValueError: why it failed."""
        equipment, place = self._host.equipment, self._store.folder.analysis(job.analysis)
        # Up to 0.1 a process of its own carried it out, which may outlive its daemon for some seconds.
        while await asyncio.to_thread(holder, place / "lock") is not None:  # noqa: ASYNC110
            await asyncio.sleep(RETRY_S)
        lease = equipment.works.lease
        async with SprintLock(place / "lock", f"analysis {job.analysis}"), lease.holding(job.analysis):
            record, packed, resumed = await self._frozen(job)
            plan = await asyncio.to_thread(self._store.plan, job.analysis)
            if not record.finished or plan is None:
                form, results = job.asked.backlog, place / RESULTS
                backlog = results / BACKLOGS[form] if form is not None else None
                await asyncio.to_thread(results.mkdir, exist_ok=True)
                run = AnalysisRun(
                    equipment.works, self._store, self._settings(job), equipment.library,
                    secrets=equipment.secrets, forced=equipment.provider, tell=lambda _text: None,
                )  # fmt: skip
                outputs = Outputs(folder=results, backlog=backlog, replace=True)
                provider = equipment.provider_told
                plan = (await run.run(record, packed, outputs, resumed=resumed, provider=provider)).plan
                await asyncio.to_thread(self._share, results)
        return AnalysisStatus.DONE if is_whole(plan) else AnalysisStatus.PARTIAL

    def _share(self, results: Path) -> None:
        """Takes the results to the database that machines share, if there is one. Blocks."""
        for path in sorted(results.iterdir()):
            self._store.folder.share(path)

    async def _frozen(self, job: AnalysisJob) -> tuple[AnalysisRecord, Packed, bool]:
        """Returns what was kept at its start (then True), or is kept now."""
        record = await asyncio.to_thread(self._store.record, job.analysis)
        packed = await asyncio.to_thread(self._store.folder.packed, job.analysis)
        if record is not None and packed is not None:
            return record, packed, True
        path = await self._host.repository.now()
        await asyncio.to_thread(expect_there, path)
        found = await open_repository(path)
        if not found.bare:
            return (*await asyncio.to_thread(self._freeze, job, path, path), False)
        # The files of a repository without any, such as the copy of a remote one, are laid out to be read.
        checkout = Checkout(Mirror(path), self._store.folder.analysis(job.analysis) / "repository", "tree")
        await asyncio.to_thread(checkout.root.parent.mkdir, parents=True, exist_ok=True)
        try:
            await checkout.set_to(found.base)
            return (*await asyncio.to_thread(self._freeze, job, path, checkout.root), False)
        finally:
            await checkout.remove()

    def _freeze(self, job: AnalysisJob, repo: Path, folder: Path) -> tuple[AnalysisRecord, Packed]:
        settings, environment = self._settings(job), self._host.environment
        given = read_request(job.asked, settings, environment)
        masks = masks_of(self._store.folder, self._host.equipment.secrets)
        packed = packed_repository(folder, given.prd, settings, environment, masks)
        return freeze(self._store, job.analysis, repo, given, packed, settings, masks), packed
