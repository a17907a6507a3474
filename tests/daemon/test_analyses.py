"""Analyses that a daemon carries out in the runtime of its sprints."""

import asyncio
import json
import signal
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import Request, urlopen

import pytest

from orchestrator.analysis.input import read_options
from orchestrator.analysis.store import AnalysisStore
from orchestrator.app.runtime import Works
from orchestrator.app.sprint_runtime import Equipment
from orchestrator.app.team import prompt_library
from orchestrator.core.analysis import AnalysisRequest, AnalysisStatus
from orchestrator.core.errors import ConfigError, SprintLocked, UnknownName
from orchestrator.core.event import Event
from orchestrator.daemon.analyses import Analyses
from orchestrator.files.process import SystemClock
from orchestrator.git.repositories import SharedRepository
from orchestrator.personas.analyst import NAME
from orchestrator.providers.routing import RoutedProvider, open_providers
from orchestrator.settings import load
from orchestrator.settings.options import AnalyseOptions, ServeOptions
from orchestrator.storage.leases import Lease
from orchestrator.storage.state_folder import StateFolder
from tests.daemon_server import RealDaemon
from tests.end_to_end.analysing import analyse, answer, application, team_of
from tests.support import git, plain_environment, run_cli

RELEASED = Path(__file__).with_name("analyses_of_0.1.tar.xz")
"""A state folder of 0.1 in which everything was killed: AN-001 (finished) and AN-002 are of the command, AN-003
(finished) and AN-004 were carried out by a process that the daemon had begun."""
ANSWERS = {"security": answer("Close the door"), "testing": answer("Test it|high")}


class Place:
    """A folder with a repository and a scripted analyst; `open` is one daemon's life in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        given = plain_environment(ORCHESTRATOR_HOME=str(folder / "state"))
        self.settings, self.environment = load(None, (f"serve.repo={application(folder)}",), given, folder)
        self.store = AnalysisStore(self.environment)
        self.events: list[Event] = []

    def provider(self, *, slow: str = "") -> RoutedProvider:
        """Everything is answered at once but the stage `slow`."""
        script = team_of(ANSWERS).write(self.folder / "team.jsonl")
        lines = [json.loads(line) for line in script.read_text().splitlines()]
        lines = [{**line, "latency_ms": 600_000} if line["story"] == slow else line for line in lines]
        script.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        options = ServeOptions(script=script, provider="scripted", call_log=self.folder / "calls.jsonl")
        return open_providers(options, self.settings, self.environment, SystemClock(), also=NAME)

    @asynccontextmanager
    async def open(self, *, slow: str = "") -> AsyncIterator[tuple[Analyses, Works]]:
        provider = await asyncio.to_thread(self.provider, slow=slow)
        lease = Lease("sqlite://", "local", folder=str(self.folder), lost=print)
        works = Works(self.settings, self.environment, provider, lease=lease, listen=self.events.append)
        library = await asyncio.to_thread(prompt_library, self.settings, self.environment)
        equipment = Equipment(
            works=works, environment=self.environment, library=library, sandbox=cast(Any, None), secrets=(),
            provider="scripted", provider_told="scripted",
        )  # fmt: skip
        repository = await asyncio.to_thread(SharedRepository, self.settings, self.environment, self.folder)
        host = SimpleNamespace(
            environment=self.environment, settings=self.settings, repository=repository, equipment=equipment
        )
        await asyncio.to_thread(works.folder.make)
        async with works:
            analyses = await asyncio.to_thread(Analyses, cast(Any, host))
            try:
                yield analyses, works
            finally:
                await analyses.close()

    @property
    def ended(self) -> list[dict[str, Any]]:
        return [
            {"name": one.name, "level": one.level, **one.data} for one in self.events if one.name == "analysis_ended"
        ]

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(what):
                await asyncio.sleep(0.02)

    def finished(self, stage: str) -> Callable[[], bool]:
        return lambda: any(event.name == "stage_finished" and event.story == stage for event in self.events)

    def status(self, analysis: str = "AN-001") -> AnalysisStatus | None:
        job = self.store.job(analysis)
        return job.status if job is not None else None

    def titles(self, analysis: str = "AN-001") -> list[str]:
        plan = self.store.plan(analysis)
        return [task.title for task in plan.tasks] if plan is not None else []

    def outcome(self, analysis: str = "AN-001") -> tuple[AnalysisStatus | None, list[str], list[str]]:
        """How it ended, its tasks, and the stages that were paid for."""
        return self.status(analysis), self.titles(analysis), self.paid

    @property
    def paid(self) -> list[str]:
        log = self.folder / "calls.jsonl"
        return sorted(json.loads(line)["story"] for line in log.read_text().splitlines()) if log.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_one_at_a_time_from_request_to_plan(place: Place) -> None:
    async with place.open() as (analyses, _):
        for wrong in (AnalysisRequest(profile="nix"), AnalysisRequest(stages=("nix",)), AnalysisRequest(prd=" ")):
            with pytest.raises(ConfigError):
                await analyses.begin(wrong)
        with pytest.raises(UnknownName):
            await analyses.cancel("AN-001")
        assert await asyncio.to_thread(place.store.states) == []
        state = await analyses.begin(AnalysisRequest(stages=("testing",), prd="# Shelf", backlog="yaml"))
        with pytest.raises(SprintLocked, match=r"at work|begun"):
            await analyses.begin(AnalysisRequest())
        await place.until(lambda: place.ended)
        assert place.ended == [{"name": "analysis_ended", "level": "info", "analysis": "AN-001", "status": "done"}]
        shown = await asyncio.to_thread(place.store.view, state.analysis)
        assert (shown.status, shown.stages, shown.why) == (AnalysisStatus.DONE, {"testing": "answered"}, "")
        assert shown.plan is not None
        assert shown.plan.prd_summary == "Shelf"
        assert [task.title for task in shown.plan.tasks] == ["Test it"]
        assert shown.files == ("backlog.yaml", "mvp_improvement_plan.md", "plan.json")
        assert "IMP-001" in shown.backlog
        with pytest.raises(ConfigError, match="is done"):
            await analyses.begin(AnalysisRequest(analysis="AN-001"))
        with pytest.raises(ConfigError, match="something else"):
            await analyses.begin(AnalysisRequest(analysis="AN-001", triage=True))


async def test_cancelled_and_resumed_in_the_same_process_it_pays_for_nothing_twice(place: Place) -> None:
    async with place.open(slow="testing") as (analyses, works):
        await analyses.begin(AnalysisRequest(stages=("security", "testing")))
        await place.until(place.finished("security"))
        await place.until(lambda: works.switchboard.at_work)
        assert (await analyses.cancel("AN-001")).status is AnalysisStatus.CANCELLED
        works.change(place.settings, await asyncio.to_thread(place.provider))
        await analyses.begin(AnalysisRequest(analysis="AN-001"))
        await place.until(lambda: place.status() is not AnalysisStatus.RUNNING)
    assert await asyncio.to_thread(place.outcome) == (
        AnalysisStatus.DONE, ["Test it", "Close the door"], ["security", "testing"],
    )  # fmt: skip


async def test_the_next_daemon_resumes_what_was_at_work(place: Place) -> None:
    async with place.open(slow="testing") as (analyses, works):
        await analyses.begin(AnalysisRequest(stages=("security", "testing")))
        await place.until(place.finished("security"))
        await place.until(lambda: works.switchboard.at_work)
        assert await works.drain(0.1, asyncio.Event()) == 1, "its call counts as work that has a grace"
    assert await asyncio.to_thread(place.status) is AnalysisStatus.RUNNING
    async with place.open() as (analyses, _):
        analyses.resume()
        await place.until(lambda: place.status() is not AnalysisStatus.RUNNING)
    status, _, paid = await asyncio.to_thread(place.outcome)
    assert (status, paid) == (AnalysisStatus.DONE, ["security", "testing"])


async def test_what_0_1_left_is_listed_shown_and_resumed(place: Place) -> None:
    with tarfile.open(RELEASED) as released:
        released.extractall(place.folder, filter="data")
    states = await asyncio.to_thread(place.store.states)
    assert [(state.analysis, state.status.value, state.begun_by) for state in states] == [
        ("AN-001", "done", "analyse"), ("AN-002", "open", "analyse"), ("AN-003", "done", "serve"),
        ("AN-004", "running", "serve"),
    ]  # fmt: skip
    shown = await asyncio.to_thread(place.store.view, "AN-003")
    assert shown.plan is not None
    assert (shown.stages, shown.plan.tasks[0].title) == ({"security": "answered"}, "Close the door")
    assert "IMP-001" in shown.backlog
    async with place.open() as (analyses, _):
        analyses.resume()
        await place.until(lambda: place.status("AN-004") is not AnalysisStatus.RUNNING)
    assert await asyncio.to_thread(place.outcome, "AN-004") == (
        AnalysisStatus.DONE, ["Fold the case", "Test it"], ["testing"],
    )  # fmt: skip


def test_the_same_command_resumes_what_it_began_under_0_1(place: Place) -> None:
    with tarfile.open(RELEASED) as released:
        released.extractall(place.folder, filter="data")
    stages = ("code_quality", "testing")
    given = read_options(
        AnalyseOptions(repo=place.folder / "app", out=place.folder, stages=stages), place.settings, place.environment
    )
    record = place.store.record("AN-002")
    assert record is not None
    assert given.key(Path("/srv/app"), place.settings) != record.asked, "its repository lay elsewhere"
    asked = given.key(place.folder / "app", place.settings)
    place.store.folder.save_analysis(record.model_copy(update={"asked": asked}))
    done = analyse(place.folder, team_of(ANSWERS), stages=stages, prd=None)
    assert (done.written.plan.analysis, done.titles) == ("AN-002", ["Fold the case", "Test it"])
    assert done.asked == ["testing stage 1"]


def begun(folder: Path, repo: str) -> RealDaemon:
    words = ["--repo", repo, "--provider", "scripted", "--script", "team.jsonl", "--call-log", "calls.jsonl"]
    words += ["--set", "serve.poll_s=0.1", "--set", "shutdown.grace_s=0"]
    return RealDaemon(folder, *words).start()


def ask(daemon: RealDaemon, path: str = "", body: object = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    headers = {"content-type": "application/json", "authorization": f"Bearer {StateFolder(daemon.state).token()}"}
    request = Request(f"{daemon.url}/api/v1/analyses{path}", data, headers)
    with urlopen(request, timeout=30) as answered:
        return json.loads(answered.read())


@pytest.mark.soak
def test_it_outlives_every_end_of_the_daemon(tmp_path: Path) -> None:
    repo = application(tmp_path)
    team_of({"slow": [answer("Slow one")], "fast": answer("Fast one")}).write(tmp_path / "team.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "team.jsonl").read_text().splitlines()]
    lines = [{**line, "latency_ms": 4000} if line["story"] == "slow" else line for line in lines]
    (tmp_path / "team.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    daemon = begun(tmp_path, str(repo))
    asked = {"prompts": {"fast.md": "# Fast", "slow.md": "# Slow"}}
    assert ask(daemon, body=asked)["analysis"] == "AN-001"
    for number in (signal.SIGKILL, signal.SIGTERM):
        daemon.until(lambda: ask(daemon, "/AN-001")["stages"] == {"fast": "answered"})
        daemon.end(number)
        daemon.start()
    daemon.until(lambda: ask(daemon, "/AN-001")["status"] != "running")
    shown = ask(daemon, "/AN-001")
    assert (shown["status"], [task["title"] for task in shown["plan"]["tasks"]]) == ("done", ["Fast one", "Slow one"])
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2, "nothing was paid twice"
    assert daemon.end(signal.SIGTERM) == 0


@pytest.mark.soak
def test_a_command_elsewhere_gets_the_files_of_a_bare_repository_of_a_daemon(tmp_path: Path) -> None:
    repo = application(tmp_path)
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    team_of({"testing": answer("Test it|high", "Count it")}).write(tmp_path / "team.jsonl")
    daemon = begun(tmp_path, str(tmp_path / "bare.git"))
    here = tmp_path / "here"
    here.mkdir()
    (here / "mvp_improvement_plan.md").write_text("# MVP Improvement Plan\n\n- [x] [LOW] Count it\n")
    words = ["analyse", "--url", daemon.url, "--stages", "testing", "--to-backlog", "b.csv"]
    done = run_cli(words, here, plain_environment(ORCHESTRATOR_TOKEN=StateFolder(daemon.state).token()))
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in here.iterdir() if path.is_file())
    assert names == ["b.csv", "mvp_improvement_plan.md", "plan.json"]
    plan = json.loads((here / "plan.json").read_text())
    assert [(task["title"], task["done"]) for task in plan["tasks"]] == [("Test it", False), ("Count it", True)]
    assert plan["codebase"]["files"] == 3
    assert not list(daemon.state.glob("analyses/*/repository/tree"))
    assert daemon.end(signal.SIGTERM) == 0
