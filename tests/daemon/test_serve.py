"""The daemon in this process: what it watches, begins, refuses, obeys and leaves when it ends."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import sprint_runtime
from orchestrator.app.commands import Renewal, SprintCommands
from orchestrator.core.command import OrderBody, ReplanBody, Verb
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.event import Event
from orchestrator.core.suite import RunProblem, TestReport
from orchestrator.daemon import serve, sprint_registry
from orchestrator.daemon.backlog_watcher import plan_backlog
from orchestrator.daemon.serve import Daemon
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import load
from orchestrator.settings.options import ServeOptions
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story import story as story_module
from tests.simulated import SimulatedRunner
from tests.support import (
    APPROVED,
    Team,
    breakdown,
    git,
    make_repo,
    module_of,
    plain_environment,
    suite_text,
    write_backlog,
)


class Field:
    """A folder with a backlog, a script, and a daemon that works there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.backlog = folder, folder / "backlog.csv"
        self.team, self.events = Team(), []
        self.overrides = [f"serve.repo={folder / 'repo'}", "serve.poll_s=0.1", "provider.wait_initial_s=0"]

    events: list[Event]

    def settings(self) -> Any:
        return load(None, self.overrides, plain_environment(PATH="/usr/bin:/bin"), self.folder)

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[Daemon]:
        settings, environment = self.settings()
        self.script_again()
        options = ServeOptions(
            backlogs=(self.backlog,), provider="scripted",
            script=self.folder / "team.jsonl", call_log=self.folder / "calls.jsonl",
        )  # fmt: skip
        daemon = Daemon(options, settings, environment, listen=self.events.append)
        async with daemon:
            task = asyncio.create_task(daemon.run())
            try:
                yield daemon
            finally:
                daemon.stop()
                await asyncio.wait_for(task, 30)

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not what():
                await asyncio.sleep(0.02)

    def slow_delivery(self, story: str, latency_ms: int) -> None:
        """A story whose one delivery takes so long."""
        module = module_of(story)
        self.team.plan(story, [f"{module}.py"])
        self.team.deliver(story, 1, {f"{module}.py": "def value():\n    return 1\n"}, latency_ms=latency_ms)
        self.team.suite(story, suite_text(story, 1))

    def slow_review(self, story: str, latency_ms: int) -> None:
        """The first review of the story's one task takes so long."""
        self.team.review(story, 1, APPROVED, latency_ms=latency_ms)

    def script_again(self) -> None:
        """What was added to the team is known from now on."""
        self.team.write(self.folder / "team.jsonl")

    def write(self, text: str, path: Path | None = None) -> None:
        """Into the backlog, unless another file is named."""
        (path or self.backlog).write_text(text)

    def rows(self, *rows: str, path: Path | None = None) -> str:
        """The backlog, or another one, with these rows; its text."""
        return write_backlog(path or self.backlog, *rows).read_text()

    def asked(self, story: str, purpose: str) -> bool:
        """Whether somebody has been asked this of the story."""
        asked = [event for event in self.named("turn_started") if event.story == story]
        return any(event.data["purpose"] == purpose for event in asked)

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def order(
        self, verb: Verb, *, story: str | None = None, sprint: str | None = None, wait_s: float = 30
    ) -> Any:
        settings, environment = self.settings()
        commands = SprintCommands(environment, settings, wait_s=wait_s)
        return await commands.order(sprint, story, OrderBody(verb=verb, by="ann"))

    def report(self, sprint: str) -> dict[str, str]:
        view = Reader(self.settings()[1]).sprint(sprint)
        return {story.id: story.status.value for story in view.report.stories}


class Green(SimulatedRunner):
    """Every test of the tree passes, a whole suite's too."""

    async def run(self, root: Path, *, files: Sequence[str] | None = None, **more: Any) -> TestReport:
        names = {*more.pop("expected_names", ())}
        if files is None:
            names |= {*await asyncio.to_thread(self._names, root)}
        return await super().run(root, files=files, expected_names=sorted(names), **more)

    def _names(self, root: Path) -> list[str]:
        texts = [path.read_text() for path in sorted(root.glob("tests/test_*.py"))]
        return [name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.M)]


class Rooms(Green):
    """A base with a file `broken` cannot be installed; `lasts_s` is how long it takes to try one."""

    lasts_s = 0.0

    async def run(self, root: Path, *, files: Sequence[str] | None = None, **more: Any) -> TestReport:
        if more["key"].endswith("-base") and files is None:
            await asyncio.sleep(self.lasts_s)
            if await asyncio.to_thread((root / "broken").exists):
                return TestReport(problem=RunProblem.INSTALL_FAILED, output="there is no wheel of nosuch")
        return await super().run(root, files=files, **more)


OLD_TESTS = {"tests/test_old.py": "def test_old():\n    assert True is not None\n"}


async def test_a_sprint_whose_base_cannot_be_run_waits_until_its_repository_changes(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sprint_runtime, "project_runner", lambda *_args, **_kwargs: Rooms())
    monkeypatch.setattr(sprint_registry, "AGAIN_S", 0.1)
    repo = await asyncio.to_thread(make_repo, field.folder / "repo", {**OLD_TESTS, "broken": "x"})
    field.team.good("US-001")
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.named("sprint_waits"))
        await asyncio.sleep(0.5)
        assert (len(field.named("sprint_waits")), len(field.named("base_begun"))) == (1, 1), "told and tried once"
        assert "there is no wheel of nosuch" in field.named("sprint_waits")[0].message
        (state,) = daemon.state().sprints
        assert (state.phase, "the dependencies could not be installed" in state.reason) == ("paused", True)
        assert not any((await daemon.readiness()).values())
        assert field.calls() == []
        await asyncio.to_thread(git, repo, "rm", "--quiet", "broken")
        await asyncio.to_thread(git, repo, "commit", "--quiet", "--message", "Mended")
        await field.until(lambda: field.named("sprint_ended"))
    assert field.report("SP-001") == {"US-001": "done"}
    assert len(field.named("base_begun")) == 2


async def test_orders_and_the_end_of_the_daemon_do_not_wait_for_the_base(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sprint_runtime, "project_runner", lambda *_args, **_kwargs: Rooms())
    monkeypatch.setattr(Rooms, "lasts_s", 60.0)
    await asyncio.to_thread(make_repo, field.folder / "repo", OLD_TESTS)
    for story in ("US-001", "US-002"):
        field.team.good(story)
    field.rows("US-001", "US-002")
    async with field.daemon():
        await field.until(lambda: field.named("base_begun"))
        assert (await field.order(Verb.CANCEL, story="US-001")).done
    monkeypatch.setattr(Rooms, "lasts_s", 0.0)
    async with field.daemon():
        await field.until(lambda: field.named("sprint_ended"))
    assert field.report("SP-001") == {"US-001": "cancelled", "US-002": "done"}
    assert len(field.named("base_begun")) == 2, "what was cut is tried again"


@pytest.fixture
def field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Field:
    """Suites are green at once: what is tried here is not what they say."""
    monkeypatch.setattr(sprint_runtime, "project_runner", lambda *_args, **_kwargs: Green())
    return Field(tmp_path)


async def test_rows_that_come_later_are_a_sprint_of_their_own_and_done_ones_are_not_run_again(field: Field) -> None:
    for story in ("US-001", "US-002"):
        field.team.good(story)
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: len(field.named("sprint_ended")) == 1)
        field.write(field.rows("US-001", "US-002 < US-001"))
        await field.until(lambda: len(field.named("sprint_ended")) == 2)
        assert [state.path for state in daemon.state().backlogs] == [str(field.backlog)]
    assert field.report("SP-001") == {"US-001": "done"}
    assert field.report("SP-002") == {"US-002": "done"}
    assert len(field.calls()) == 8
    events = field.folder / ".orchestrator/events.sqlite"
    with closing(sqlite3.connect(events, isolation_level=None)) as log:  # as if killed right behind the report
        log.execute("DELETE FROM orchestrator_events WHERE id LIKE 'SP-002:sprint_ended:%'")
    for _ in range(2):
        async with field.daemon():
            await field.until(lambda: len(field.named("sprint_ended")) == 3)
            await asyncio.sleep(0.3)
        assert len(field.named("sprint_ended")) == 3, "told once"
    assert len(field.calls()) == 8, "a daemon that starts again does nothing again"
    async with field.daemon() as daemon:
        for _ in range(2):
            await daemon.prune({"days": 1e-9}, dry_run=False)
        await asyncio.sleep(0.3)
    (told,) = (event.message for event in field.named("past_pruned"))
    assert re.fullmatch(r"pruned: SP-001, SP-002, \d+\.\d kB freed", told), told
    assert len(field.calls()) == 8


async def test_what_is_no_backlog_is_refused_with_reasons_and_what_was_good_goes_on_even_over_a_restart(
    field: Field,
) -> None:
    field.team.good("US-001")
    field.rows("US-001")
    async with field.daemon():
        await field.until(lambda: field.named("story_started"))
        field.write("Story_ID,Title\nUS-001,One\nUS-001,Twice\n")
        await field.until(lambda: field.named("backlog_refused"))
        told = field.named("backlog_refused")[0]
        assert "US-001" in told.message
        assert told.data["problems"]
    async with field.daemon():
        await field.until(lambda: field.named("sprint_ended"))
    assert field.report("SP-001") == {"US-001": "done"}
    assert len(field.calls()) == 4


async def test_a_pause_inside_a_call_lets_it_end_and_nothing_more_is_asked_until_it_is_resumed(field: Field) -> None:
    field.slow_delivery("US-001", 700)
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: daemon.works.switchboard.at_work and len(field.calls()) == 1)
        assert (await field.order(Verb.PAUSE, sprint="SP-001")).done
        assert not (await field.order(Verb.PAUSE, sprint="SP-001")).done
        await field.until(lambda: len(field.calls()) == 2)
        await field.until(lambda: field.named("sprint_stopped"))
        assert "paused by ann" in daemon.state().sprints[0].reason
    async with field.daemon() as daemon:
        await field.until(lambda: daemon.state().sprints and "paused by ann" in daemon.state().sprints[0].reason)
        await asyncio.sleep(0.6)
        assert len(field.calls()) == 2, "a pause outlives the process"
        assert (await field.order(Verb.RESUME, sprint="SP-001")).done
        await field.until(lambda: field.named("sprint_ended"))
    assert len(field.calls()) == 4


async def test_a_story_is_cancelled_inside_a_call_and_run_anew_when_asked_while_others_go_on(field: Field) -> None:
    field.slow_delivery("US-001", 60_000)
    for story in ("US-002", "US-003"):
        field.team.good(story)
    field.rows("US-001", "US-002", "US-003 < US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "delivery"))
        done = await field.order(Verb.CANCEL, story="US-001")
        assert done.done
        assert done.stories == ("US-001",)
        await field.until(lambda: field.named("sprint_ended"))
        assert field.report("SP-001") == {"US-001": "cancelled", "US-002": "done", "US-003": "blocked"}
        assert daemon.works.switchboard.at_work == 0
        field.team = Team()
        for story in ("US-001", "US-003"):
            field.team.good(story)
    async with field.daemon():
        assert (await field.order(Verb.RETRY, story="US-001")).done
        refused = await field.order(Verb.RETRY, story="US-002")
        assert not refused.done
        assert "is done" in refused.message
        await field.until(lambda: field.report("SP-001") == {f"US-00{n}": "done" for n in (1, 2, 3)})


@pytest.mark.parametrize("races", [False, True], ids=["merged", "merged-while-it-is-cut"])
async def test_what_is_merged_is_not_cancelled_any_more_and_ends_as_done(
    field: Field, monkeypatch: pytest.MonkeyPatch, races: bool
) -> None:
    merged, may_end = asyncio.Event(), asyncio.Event()
    looked: list[str] = []
    tell, look = story_module.tell_record, Renewal.merged

    async def held_back(*args: Any) -> None:
        merged.set()
        await may_end.wait()
        await tell(*args)

    async def too_early(renewal: Renewal, story: str) -> str | None:
        looked.append(story)
        return await look(renewal, story) if len(looked) > races else None

    monkeypatch.setattr(story_module, "tell_record", held_back)
    monkeypatch.setattr(Renewal, "merged", too_early)
    for story in ("US-001", "US-002"):
        field.team.good(story)
    field.rows("US-001", "US-002 < US-001")
    field.overrides.append("shutdown.grace_s=0")
    async with field.daemon():
        await asyncio.wait_for(merged.wait(), 30)
        refused = await field.order(Verb.CANCEL, story="US-001")
        assert not refused.done
        assert refused.message.startswith("US-001 is merged already, as ")
        if not races:
            both = await field.order(Verb.CANCEL, sprint="SP-001")
            assert (both.done, both.stories) == (True, ("US-002",))
            assert "US-001 is merged already" in both.message
    assert not (await field.order(Verb.CANCEL, story="US-001")).done, "nor when nobody works on the sprint"
    may_end.set()
    async with field.daemon():
        await field.until(lambda: field.named("sprint_ended"))
    assert field.report("SP-001") == {"US-001": "done", "US-002": "done" if races else "cancelled"}
    assert len(field.calls()) == (8 if races else 4)


async def test_a_story_that_ended_is_planned_anew_while_others_are_at_work(field: Field) -> None:
    texts = ("current_architecture", "story_requirement", "conflict_reason", "recommended_action")
    conflict = {"detected": True, **dict.fromkeys(texts, "it holds one file")}
    told = breakdown("US-001") | {"architectural_conflict": conflict, "tasks": []}
    field.team.say("mike", "US-001", "breakdown", told)
    field.team.good("US-001")
    field.slow_delivery("US-002", 60_000)
    field.rows("US-001", "US-002", "US-003 < US-001")
    field.team.good("US-003")
    field.overrides.append("shutdown.grace_s=0")
    settings, environment = field.settings()
    commands = SprintCommands(environment, settings)
    async with field.daemon():
        await field.until(lambda: len(field.named("story_finished")) == 2 and field.asked("US-002", "delivery"))
        with pytest.raises(ConfigError, match="US-002 is executing"):
            await commands.replan(None, "US-002", ReplanBody(comment="again", by="ann"))
        comment = "keep one file;\n" + "and say why " * 30
        done = await commands.replan(None, "US-001", ReplanBody(comment=comment, by="ann"))
        assert (done["sprint"], done["stories"]) == ("SP-001", ["US-001", "US-003"])
        await field.until(lambda: field.report("SP-001")["US-003"] == "done")
        assert field.report("SP-001") == {"US-001": "done", "US-002": "executing", "US-003": "done"}
        trees = StateFolder(environment.home).worktrees("SP-001").glob("US-*")
        assert [tree.name for tree in trees] == ["US-002"], "what has ended needs no tree"
    record = (await asyncio.to_thread(Reader(environment).sprint, "SP-001")).record
    assert record.replans["US-001"].comment == comment.strip()
    assert "it holds one file" in record.replans["US-001"].overridden_conflict


async def test_a_budget_holds_the_sprint_until_it_is_raised_also_over_a_restart(field: Field) -> None:
    field.team.good("US-001")
    field.rows("US-001")
    field.overrides += ["budget.calls_per_day=50", "budget.calls_per_sprint=2"]
    async with field.daemon() as daemon:
        await field.until(lambda: field.named("sprint_stopped"))
        (sprint,) = daemon.state().sprints
        assert "budget.calls_per_sprint (2) is used up" in sprint.reason
        assert [str(one) for one in (*sprint.budgets, *daemon.state().budgets)] == ["2 of 2 calls", "2 of 50 calls"]
    async with field.daemon() as daemon:
        await field.until(lambda: daemon.state().sprints and daemon.state().sprints[0].reason)
        await asyncio.sleep(0.3)
        assert len(field.calls()) == 2
    field.overrides.append("budget.calls_per_sprint=9")
    async with field.daemon():
        await field.until(lambda: field.named("sprint_ended"))
    assert len(field.named("sprint_paused")) == 1
    assert field.report("SP-001") == {"US-001": "done"}
    view = await asyncio.to_thread(Reader(field.settings()[1]).sprint, None)
    assert view.report.totals["budgets"] == [one.model_dump() for one in view.budgets]
    assert [(one.limit, one.spent) for one in view.budgets] == [(9, 4), (None, 0), (None, 0)]


async def test_what_is_at_work_gets_its_grace_and_a_second_word_cuts_it(field: Field) -> None:
    field.slow_delivery("US-001", 700)
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "delivery") and daemon.works.switchboard.at_work)
    assert [call["purpose"] for call in field.calls()] == ["breakdown", "delivery"]
    assert field.named("daemon_stopped")[0].data["cut"] == 0
    field.slow_review("US-001", 60_000)
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "review") and daemon.works.switchboard.at_work)
        daemon.stop()
    assert field.named("daemon_stopped")[1].data["cut"] == 1
    assert daemon.hurried
    assert len(field.calls()) == 2


async def test_a_daemon_that_cannot_tell_anybody_any_more_ends_all_the_same(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "LAST_S", 0.05)
    field.slow_delivery("US-001", 60_000)
    field.overrides.append("shutdown.grace_s=0")
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "delivery"))
        waiting: list[Event] = []

        async def never(event: Event) -> bool:
            waiting.append(event)
            return await asyncio.get_running_loop().create_future()

        monkeypatch.setattr(daemon.works.sink, "emit", never)
        field.write("Story_ID,Title\nUS-001,One\nUS-001,Twice\n")
        await field.until(lambda: waiting)
    assert [event.name for event in waiting][-2:] == ["daemon_stopping", "daemon_stopped"]


async def test_orders_are_carried_out_where_nobody_works_on_the_sprint(field: Field) -> None:
    field.slow_delivery("US-001", 60_000)
    field.team.good("US-002")
    field.rows("US-001", "US-002")
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "delivery") and field.report("SP-001")["US-002"] == "done")
        daemon.stop()
    assert (await field.order(Verb.CANCEL, story="US-001")).done
    assert field.report("SP-001") == {"US-001": "cancelled", "US-002": "done"}
    calls = len(field.calls())
    async with field.daemon():
        await field.until(lambda: field.named("sprint_ended"))
        await asyncio.sleep(0.3)
    assert len(field.calls()) == calls, "what was cancelled is not gone on with"
    with pytest.raises(ConfigError, match="US-009"):
        await field.order(Verb.PAUSE, story="US-009")
    assert not (await field.order(Verb.CANCEL, story="US-002")).done


async def test_a_backlog_that_is_handed_in_is_checked_first_and_then_worked_on(field: Field) -> None:
    field.team.good("US-001")
    field.rows()
    good = field.rows("US-001", path=field.folder / "good.csv").encode()
    async with field.daemon() as daemon:
        with pytest.raises(BacklogError, match="US-001") as refused:
            await daemon.submit("team", ".csv", good + b"US-001,Twice\n")
        assert {finding.where.file for finding in refused.value.findings} == {"team.csv"}
        with pytest.raises(ConfigError, match="cannot name"):
            await daemon.submit("../team", ".csv", good)
        done = await daemon.submit("team", ".csv", good)
        assert (done.stories, done.replaced) == (1, False)
        await field.until(lambda: field.named("sprint_ended"))
        assert (await daemon.submit("team", ".csv", good)).replaced
        await asyncio.sleep(0.5)
        assert len(field.named("sprint_started")) == 1, "the same rows are not run again"
        await daemon.withdraw("team")
        await field.until(lambda: len(daemon.state().backlogs) == 1)
        with pytest.raises(ConfigError, match="no backlog team"):
            await daemon.withdraw("team")


async def test_rows_of_a_sprint_that_has_begun_without_them_are_refused_when_they_are_handed_in(field: Field) -> None:
    field.team.good("US-001")
    field.slow_delivery("US-002", 60_000)
    field.overrides.append("shutdown.grace_s=0.1")
    field.rows("US-001", "US-002 < US-001")
    plain = field.backlog.read_bytes()
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-002", "delivery") and b"SP-001" in field.backlog.read_bytes())
        copied = field.backlog.read_bytes()
        with pytest.raises(BacklogError) as refused:
            await daemon.submit("copy", ".csv", copied)
        (finding,) = refused.value.findings
        assert (finding.code, finding.where.file) == ("backlog.sprint_begun", "copy.csv")
        told = f"rows carry the Sprint_ID SP-001 of a sprint that has begun with the backlog {field.backlog}: US-002"
        assert (finding.message, told in refused.value.message) == (told, True)
        assert len(daemon.state().backlogs) == 1, "it is not watched"
        planned = await asyncio.to_thread(plan_backlog, daemon.environment, daemon.settings, "copy", ".csv", copied)
        assert finding in planned.problems
        more = plain.replace(b"US-00", b"US-01")
        await daemon.submit("team", ".csv", more)
        await field.until(lambda: len(field.named("sprint_started")) == 2)
        without = more.replace(b"US-012", b"US-013").replace(b"Story US-013,US-011,,,", b"Three,,,,SP-002")
        with pytest.raises(BacklogError, match="SP-002 of a sprint that has begun without them: US-013"):
            await daemon.submit("team", ".csv", without)
        assert (await daemon.submit("team", ".csv", more)).replaced, "rows of its own sprints are no trouble"


async def test_a_sprint_that_is_reset_as_a_whole_begins_with_all_its_rows_and_without_its_pause(field: Field) -> None:
    field.team.good("US-001")
    field.slow_delivery("US-002", 60_000)
    field.overrides.append("shutdown.grace_s=0.1")
    field.rows("US-001", "US-002 < US-001")
    async with field.daemon():
        await field.until(lambda: field.asked("US-002", "delivery"))
        assert (await field.order(Verb.PAUSE, sprint="SP-001")).done
        assert (await field.order(Verb.RESET, sprint="SP-001")).done
        await field.until(lambda: len(field.named("sprint_started")) == 2)
        assert field.named("sprint_started")[1].data["stories"] == ["US-001", "US-002"], "its cells were read again"
        await field.until(lambda: field.report("SP-001")["US-001"] == "done")
    started = [event.id for event in field.named("story_started") if event.story == "US-001"]
    assert started == ["SP-001/US-001:story_started", "SP-001/US-001@2:story_started"]


async def test_what_cannot_be_used_is_told_and_the_rest_goes_on(field: Field) -> None:
    """A record and three backlogs that cannot be read, and a row whose Sprint_ID can name no sprint."""
    for story in ("US-001", "US-002"):
        field.team.good(story)
    head, row = field.rows("US-001").splitlines()
    bad = row.replace("US-001", "US-009").split(",")
    bad[head.split(",").index("Sprint_ID")] = "../up"
    field.write("\n".join((head, ",".join(bad), row)) + "\n")
    pipe, long = field.folder / "pipe.csv", field.folder / ("long" * 80)
    os.mkfifo(pipe)
    field.overrides.append(f"serve.backlogs=[{pipe},{long}]")
    async with field.daemon() as daemon:
        await field.until(lambda: field.named("sprint_ended") and field.named("sprint_waits"))
        assert "'../up'" in field.named("sprint_waits")[0].message
        assert {event.data["backlog"] for event in field.named("backlog_refused")} == {str(pipe), str(long)}
        broken = daemon.works.folder.sprint("SP-OLD") / "sprint.json"
        broken.parent.mkdir()
        broken.write_text("{")
        await field.until(lambda: len(field.named("sprint_waits")) == 2)
        assert "SP-OLD" in field.named("sprint_waits")[1].message
    shutil.rmtree(broken.parent)
    assert field.report("SP-001") == {"US-001": "done"}


async def test_a_repository_that_is_gone_is_waited_for_and_not_made_anew(field: Field) -> None:
    repo, away = make_repo(field.folder / "repo"), field.folder / "away"
    field.slow_delivery("US-001", 60_000)
    field.rows("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.asked("US-001", "delivery"))
        mirrors = daemon.works.folder.home / "mirrors"
        daemon.stop()
    repo.rename(away)
    mirrors.rename(field.folder / "mirrors")
    mirrors.touch()
    refused = await field.order(Verb.RESET, story="US-001")
    assert not refused.done
    assert "could not be carried out" in refused.message
    assert (await field.order(Verb.CANCEL, story="US-001")).done, "an order that failed stands in no other's way"
    mirrors.unlink()
    (field.folder / "mirrors").rename(mirrors)
    field.team = Team()
    field.team.good("US-001")
    async with field.daemon() as daemon:
        await field.until(lambda: field.named("sprint_waits"))
        assert "is gone" in daemon.state().sprints[0].reason
        assert not repo.exists()
        away.rename(repo)
        assert (await field.order(Verb.RETRY, story="US-001")).done
        await field.until(lambda: field.report("SP-001") == {"US-001": "done"})
