"""Analyses that a daemon carries out by a process of its own."""

import asyncio
import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import Request, urlopen

import pytest
from orchestrator.adapters.owned_process import OwnedProcess
from orchestrator.wiring.analysis_jobs import Job, Jobs

from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.analysis import AnalysisRequest, AnalysisStatus
from orchestrator.errors import ConfigError, SprintLocked, UnknownName, WorkspaceError
from orchestrator.settings import load
from orchestrator.wiring import analyses as analyses_module
from orchestrator.wiring.analyses import Analyses, Host
from orchestrator.wiring.options import ServeOptions
from orchestrator.wiring.repositories import SharedRepository
from tests.end_to_end.analysing import answer, application, team_of
from tests.support import git, plain_environment, run_cli


class Place:
    """A folder with a repository, a scripted analyst, and what carries analyses out."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder, self.told = folder, []
        given = plain_environment(ORCHESTRATOR_HOME=str(folder / "state"), **variables)
        self.settings, self.environment = load(None, (f"serve.repo={application(folder)}",), given, folder)
        self.script = team_of({"testing": answer("Test it|high")}).write(folder / "team.jsonl")
        self.jobs = Jobs(self.environment)

    told: list[tuple[str, dict[str, Any]]]

    def analyses(self) -> Analyses:
        async def emit(name: str, _message: str, **data: Any) -> None:
            self.told.append((name, data))

        repository = SharedRepository(self.settings, self.environment, self.folder)
        host = SimpleNamespace(environment=self.environment, settings=self.settings, repository=repository, emit=emit)
        return Analyses(cast(Host, host), ServeOptions(script=self.script, provider="scripted"))

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(what):
                await asyncio.sleep(0.02)

    def status(self, analysis: str = "AN-001") -> AnalysisStatus | None:
        job = self.jobs.job(analysis)
        return job.status if job is not None else None


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With an address of another daemon, which nobody is to ask."""
    return Place(tmp_path, ORCHESTRATOR_URL="http://127.0.0.1:9")


async def test_a_process_of_its_own_carries_it_out(place: Place) -> None:
    analyses = await asyncio.to_thread(place.analyses)
    for wrong in (AnalysisRequest(profile="nix"), AnalysisRequest(stages=("nix",)), AnalysisRequest(prd=" ")):
        with pytest.raises(ConfigError):
            await analyses.begin(wrong)
    with pytest.raises(UnknownName):
        await analyses.cancel("AN-001")
    assert await asyncio.to_thread(place.jobs.states) == []
    asked = AnalysisRequest(stages=("testing",), prd="# Shelf", backlog="yaml")
    state = await analyses.begin(asked)
    with pytest.raises(SprintLocked, match="AN-001 is at work"):
        await analyses.begin(AnalysisRequest())
    await place.until(lambda: place.told)
    assert place.told == [("analysis_ended", {"level": "info", "analysis": "AN-001", "status": "done"})]
    shown = await asyncio.to_thread(place.jobs.shown, state.analysis)
    assert (shown.status, shown.stages, shown.why) == (AnalysisStatus.DONE, {"testing": "answered"}, "")
    assert shown.plan is not None
    assert [task.title for task in shown.plan.tasks] == ["Test it"]
    assert (shown.files, "IMP-001" in shown.backlog) == (("backlog.yaml", "mvp_improvement_plan.md", "plan.json"), True)
    with pytest.raises(ConfigError, match="is done"):
        await analyses.begin(AnalysisRequest(analysis="AN-001"))
    with pytest.raises(ConfigError, match="something else"):
        await analyses.begin(AnalysisRequest(analysis="AN-001", triage=True))


async def cancelled(analyses: Analyses, name: str) -> AnalysisStatus:
    async with asyncio.timeout(30):
        while True:
            try:
                return (await analyses.cancel(name)).status
            except SprintLocked:
                await asyncio.sleep(0.01)


async def test_the_first_of_two_that_a_daemon_goes_on_with_is_ended_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are two where the disk took nothing when one ended."""
    asked, names = AnalysisRequest(stages=("testing",)), {"AN-001", "AN-002"}
    for name in names:
        job = Job(analysis=name, asked=asked, repo="", begun_at=datetime.now(UTC))
        await asyncio.to_thread(place.jobs.save, job)
    monkeypatch.setattr(Analyses, "_outcome", lambda *_: asyncio.Event().wait())
    analyses = await asyncio.to_thread(place.analyses)
    analyses.carry_on()
    first, second = [job.analysis for job in await asyncio.to_thread(place.jobs.unfinished)]
    assert await cancelled(analyses, first) is AnalysisStatus.CANCELLED
    assert await asyncio.to_thread(place.status, second) is AnalysisStatus.RUNNING
    assert await cancelled(analyses, second) is AnalysisStatus.CANCELLED


async def test_one_that_is_cancelled_before_it_has_begun_does_not_stand_in_the_way_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyses = await asyncio.to_thread(place.analyses)
    begin_task, early = asyncio.create_task, []

    def behind_a_request(work: Any, name: str) -> asyncio.Task[Any]:
        early.append(begin_task(analyses.cancel("AN-001")))
        return begin_task(work, name=name)

    monkeypatch.setattr(asyncio, "create_task", behind_a_request)
    await analyses.begin(AnalysisRequest(stages=("testing",)))
    monkeypatch.undo()
    [told] = await asyncio.gather(*early, return_exceptions=True)
    assert isinstance(told, SprintLocked)
    assert await cancelled(analyses, "AN-001") is AnalysisStatus.CANCELLED
    await analyses.begin(AnalysisRequest(analysis="AN-001"))
    await analyses.end(0, asyncio.Event())


async def test_how_it_has_ended_is_kept_once_the_disk_takes_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    analyses = await asyncio.to_thread(place.analyses)
    save, tried = Jobs.save, []

    def full(jobs: Jobs, job: Job) -> None:
        tried.append(job.status)
        if len(tried) in {1, 3}:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(jobs, job)

    monkeypatch.setattr(analyses_module, "LOOK_S", 0)
    monkeypatch.setattr(Jobs, "save", full)
    with pytest.raises(WorkspaceError, match="No space left"):
        await analyses.begin(AnalysisRequest(stages=("testing",)))
    await analyses.begin(AnalysisRequest(stages=("testing",)))
    assert await cancelled(analyses, "AN-001") is AnalysisStatus.CANCELLED
    assert tried == ["running", "running", "cancelled", "cancelled"]


def test_a_process_that_has_not_begun_can_be_killed() -> None:
    OwnedProcess((), {}, 0).kill()


class Daemon:
    """A real `serve`, asked over HTTP."""

    def __init__(self, folder: Path, repo: str) -> None:
        self.folder, self.state = folder, folder / "state"
        self.words = ["serve", "--repo", repo, "--port", "0", "--provider", "scripted", "--script", "team.jsonl"]
        self.words += ["--call-log", "calls.jsonl", "--set", "serve.poll_s=0.1"]

    def start(self) -> "Daemon":
        environment = plain_environment(ORCHESTRATOR_HOME=str(self.state))
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator", *self.words], cwd=self.folder, env=environment, stdout=log
            )
        self.until(lambda: self._told().get("pid") == self.process.pid)
        self.url = self._told()["url"]
        return self

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def ask(self, path: str = "", body: object = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"content-type": "application/json", "authorization": f"Bearer {StateFolder(self.state).token()}"}
        request = Request(f"{self.url}/api/v1/analyses{path}", data, headers)
        with urlopen(request, timeout=30) as answered:
            return json.loads(answered.read())

    def until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + 90
        while not what():
            assert time.monotonic() < deadline, (self.folder / "serve.log").read_text()
            time.sleep(0.05)

    def _told(self) -> dict[str, Any]:
        try:
            return cast(dict[str, Any], json.loads((self.state / "daemon" / "address.json").read_bytes()))
        except (OSError, ValueError):
            return {}


def begun(state: Path) -> int:
    """How often a process has begun or gone on with the analysis, and a call of it was under way."""
    log = run_cli(["logs", "--json"], state.parent, plain_environment(ORCHESTRATOR_HOME=str(state))).stdout
    return sum('"analysis_started"' in line or '"analysis_continued"' in line for line in log.splitlines())


def alive(folder: Path) -> list[str]:
    """Command lines of processes that work on an analysis there."""
    found = (path.read_bytes().replace(b"\0", b" ") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return [line.decode() for line in found if b" analyse --out=" in line and str(folder).encode() in line]


@pytest.mark.soak
def test_it_outlives_every_end_of_the_daemon_and_nothing_of_it_is_left_behind(tmp_path: Path) -> None:
    repo = application(tmp_path)
    team_of({"slow": [answer("Slow one")], "fast": answer("Fast one")}).write(tmp_path / "team.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "team.jsonl").read_text().splitlines()]
    lines = [{**line, "latency_ms": 4000} if line["story"] == "slow" else line for line in lines]
    (tmp_path / "team.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    daemon = Daemon(tmp_path, str(repo)).start()
    asked = {"prompts": {"fast.md": "# Fast", "slow.md": "# Slow"}}
    assert daemon.ask(body=asked)["analysis"] == "AN-001"
    daemon.until(lambda: daemon.ask("/AN-001")["stages"] == {"fast": "answered"})
    daemon.end(signal.SIGKILL)
    daemon.until(lambda: not alive(tmp_path))
    daemon.start()
    daemon.until(lambda: begun(daemon.state) == 2)
    assert daemon.end(signal.SIGTERM) == 0
    assert not alive(tmp_path)
    daemon.start()
    daemon.until(lambda: daemon.ask("/AN-001")["status"] != "running")
    shown = daemon.ask("/AN-001")
    assert (shown["status"], [task["title"] for task in shown["plan"]["tasks"]]) == ("done", ["Fast one", "Slow one"])
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2, "nothing was paid twice"
    assert daemon.end(signal.SIGTERM) == 0
    assert not alive(tmp_path)


@pytest.mark.soak
def test_a_command_elsewhere_gets_the_files_of_a_bare_repository_of_a_daemon(tmp_path: Path) -> None:
    repo = application(tmp_path)
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    team_of({"testing": answer("Test it|high", "Count it")}).write(tmp_path / "team.jsonl")
    daemon = Daemon(tmp_path, str(tmp_path / "bare.git")).start()
    here = tmp_path / "here"
    here.mkdir()
    (here / "mvp_improvement_plan.md").write_text("# MVP Improvement Plan\n\n- [x] [LOW] Count it\n")
    words = ["analyse", "--url", daemon.url, "--stages", "testing", "--to-backlog", "b.csv"]
    done = run_cli(words, here, plain_environment())
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in here.iterdir() if path.is_file()) == [
        "b.csv",
        "mvp_improvement_plan.md",
        "plan.json",
    ]
    plan = json.loads((here / "plan.json").read_text())
    assert [(task["title"], task["done"]) for task in plan["tasks"]] == [("Test it", False), ("Count it", True)]
    assert plan["codebase"]["files"] == 3
    assert not list(daemon.state.glob("analyses/*/repository/tree"))
    assert daemon.end(signal.SIGTERM) == 0
