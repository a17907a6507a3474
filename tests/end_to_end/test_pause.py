"""`pause` and `resume` around one `run`: at a terminal it waits, elsewhere it ends and says what to give."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from orchestrator.app.commands import SprintCommands
from orchestrator.app.run import Run
from orchestrator.cli.run import format_summary
from orchestrator.core.command import OrderBody, Settled, Verb
from orchestrator.core.event import Event
from orchestrator.core.value import counted
from orchestrator.records.sprint_reader import Reader, RunResult
from orchestrator.reports.path import of_story
from orchestrator.settings import Environment, Settings, load
from orchestrator.settings.options import RunOptions
from tests.support import ALL_PASS, Team, plain_environment, write_backlog


class Place:
    """A state folder with one scripted sprint of two stories, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events = folder, list[Event]()
        self.settings: Settings
        self.environment: Environment
        environ = plain_environment(ORCHESTRATOR_HOME=str(folder / "state"))
        self.settings, self.environment = load(None, ("concurrency.stories=1", ALL_PASS), environ, folder)
        team = Team()
        team.good("A")
        team.good("B")
        self.script = team.write(folder / "team.jsonl")
        self.backlog = write_backlog(folder / "b.csv", "A", "B")

    def run(self, *, waits: bool, on: dict[str, Verb]) -> RunResult:
        """Gives an order at the first event of each name."""
        options = RunOptions(backlog=self.backlog, repo=self.folder / "repo", script=self.script, waits=waits)
        orders = dict(on)
        given: list[asyncio.Task[Settled]] = []

        def listen(event: Event) -> None:
            self.events.append(event)
            verb = orders.pop(event.name, None)
            if verb is not None:
                given.append(asyncio.get_running_loop().create_task(self.order(verb)))

        silent: Callable[[str], None] = [].append
        return asyncio.run(Run(options, self.settings, self.environment, tell=silent, listen=listen).go())

    async def order(self, verb: Verb) -> Settled:
        return await SprintCommands(self.environment, self.settings).order(None, None, OrderBody(verb=verb, by="ana"))


def test_without_a_terminal_a_pause_ends_the_run_which_says_what_to_give(tmp_path: Path) -> None:
    place = Place(tmp_path)
    paused = place.run(waits=False, on={"turn_finished": Verb.PAUSE})
    why = "sprint SP-001 is paused by ana; `orchestrator resume SP-001` ends the pause"
    assert paused.paused == why
    lines = list(format_summary(paused))
    assert f"Paused: {why}. The same command then resumes the open stories." in lines
    assert [line.split()[:2] for line in lines[2:4]] == [["A", "open"], ["B", "pending"]]
    calls = sum(event.name == "turn_finished" for event in place.events)
    assert lines[4].startswith(f"1 pending, 1 open; {counted(calls, 'call')}, ")
    assert not any("git fetch" in line or line.startswith("Result") for line in lines), "there is no result yet"
    view = Reader(place.environment).sprint(None)
    assert (view.report.totals["calls"], view.paused) == (calls, "sprint SP-001 is paused by ana")

    told = asyncio.run(place.order(Verb.RESUME))
    assert told.message == (
        "sprint SP-001 (2 stories) is no longer paused, by ana; nobody works on the sprint now: "
        "the `run` command that began it does"
    )
    done = place.run(waits=False, on={})
    assert ([story.status.value for story in done.report.stories], done.paused) == (["done", "done"], None)
    assert any(line.startswith("Result: git ") for line in format_summary(done))

    view = Reader(place.environment).story(None, "A")
    path = [step.text for step in of_story(view.histories["A"], running=False, orders=view.events)]
    assert path[0] == "begins"
    assert sum("paused" in text for text in path) == 2, path  # the pause and its end


def test_at_a_terminal_a_paused_run_waits_for_resume(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run(waits=True, on={"turn_finished": Verb.PAUSE, "sprint_stopped": Verb.RESUME})
    assert ([story.status.value for story in done.report.stories], done.paused) == (["done", "done"], None)
    (rest,) = [event.message for event in place.events if event.name == "sprint_stopped"]
    assert rest == (
        "the sprint rests: sprint SP-001 is paused by ana; `orchestrator resume SP-001` ends the pause; not started: B"
    )
