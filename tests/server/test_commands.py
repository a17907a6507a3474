"""Commands through the interface: elsewhere they print what they print where the state is."""

import asyncio
import json
import os
import re
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.cli.waiting import Waiting, about_plan, plan
from tests.server.stand import TOKEN, Stand, running
from tests.support import copy_state, plain_environment

ENDED: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("prune", "--dry-run", "--set", "retention.days=0.0000001"),
    ("prune", "--json"),
    ("show", "US-1"),
    ("contract", "US-2"),
    ("logs", "--json", "--level", "debug"),
    ("pause", "US-1"),
    ("retry", "US-2", "--json", "--comment", "once more"),
    ("pause",),
    ("resume", "S1"),
    ("cancel", "US-3", "--sprint", "S1"),
    ("replan", "US-1", "--comment", "again"),
    ("replan", "US-3", "--comment", "again", "--json"),
    ("cancel", "--sprint", "S1"),
    ("replan", "US-2", "--comment", "again"),
    ("approve", "US-2"),
    ("reset", "US-9"),
    ("reset", "US-1", "--sprint", "S9"),
    ("pause", "S9", "--sprint", "S9"),
    ("pause", "S1", "--sprint", "S1"),
    ("reset", "US-1", "--json"),
    ("reset", "S1"),
    ("logs",),
)
ASKED: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("show", "US-1"),
    ("show", "US-2", "--json"),
    ("show", "US-1", "--sprint", "S1", "--full"),
    ("approve", "US-1", "--gate", "7"),
    ("approve", "US-1", "--gate", "1", "--json"),
    ("approve", "US-1"),
    ("cancel", "US-1"),
    ("reject", "US-2", "--comment", " "),
    ("reject", "US-2", "--comment", "use the table that is there"),
    ("replan", "US-3", "--json"),
    ("edit", "US-4", "--file", "bad.yaml", "--json"),
    ("edit", "US-4", "--file", "good.yaml", "--json"),
    ("cancel", "US-5", "--json"),
    ("replan", "US-5"),
    ("status", "--json"),
    ("logs",),
)
AT = re.compile(r", at http://[^\s]*")
VARIES = (
    AT,
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\",;]*"),
    re.compile(r"\b[0-9a-f]{12}\b"),
    re.compile(r"\d\d:\d\d:\d\d"),
    re.compile(r"\+?\d+(\.\d+)? ?(ms|s|min|h|d)\b"),
)
"""Times, the ids of orders, the address of the daemon, how long something lasts by now."""


def cli(*words: str, **variables: str) -> Result:
    """A command in this process and no other environment than this."""
    env = {name: None for name in os.environ} | plain_environment(LOGNAME="anna", **variables)
    result = CliRunner().invoke(app, list(words), env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def without_past(told: str) -> str:
    """What is told of a backlog without the daemon's own last sprints."""
    if told.startswith("{"):
        kept = {name: value for name, value in json.loads(told).items() if name != "past"}
        return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
    return told.partition("the last sprints of this project:")[0]


async def test_a_backlog_is_looked_at_there_as_it_is_here(guarded: Stand, tmp_path: Path) -> None:
    header = "Story_ID,Title,Dependencies,Acceptance_Criteria\n"
    texts = {
        "good.csv": f"{header}A-1,One,,It works\nA-2,Two,A-1,It works\n",
        "cycle.csv": f"{header}A-1,One,A-2,It works\nA-2,Two,A-1,It works\n",
        "twice.yaml": "- {id: A-1, title: One}\n- {id: A-1, title: Two}\n",
        "broken.json": "{",
    }
    far = {"ORCHESTRATOR_HOME": str(tmp_path / "nothing"), "ORCHESTRATOR_TOKEN": TOKEN}
    async with running(guarded) as daemon:
        for name, text in texts.items():
            file = tmp_path / name
            await asyncio.to_thread(file.write_text, text)
            for more in ([], ["--json"]):
                script = ("--script", os.devnull)  # the daemon has somebody to answer too
                here = await asyncio.to_thread(partial(cli, "run", str(file), "--dry-run", *script, *more))
                words = "submit", str(file), "--dry-run", "--url", daemon.address, *more
                there = await asyncio.to_thread(partial(cli, *words, **far))
                assert there.exit_code == here.exit_code, there.stderr
                if name != "broken.json":
                    assert without_past(there.stdout) == here.stdout.replace(str(file), name)
                assert str(guarded.environment.home) not in there.output
        for wrong in ("name=-x", "name=.x", "name=a%2Fb", "format=md"):
            answer = await daemon.client.post(f"/api/v1/dry-run?{wrong}", content=b"Story_ID\nA-1\n")
            assert answer.status_code == 422, answer.text
    assert guarded.handed_in == {}


def said(done: Result, home: Path) -> tuple[int, str, str]:
    """What a command came to, without what differs each time it is given."""

    def still(text: str) -> str:
        text = text.replace(str(home), "HOME")
        for what in VARIES:
            text = what.sub("" if what is AT else "…", text)
        return " ".join(text.split())

    return done.exit_code, still(done.stdout), still(done.stderr)


async def both_ways(home: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    """Give the commands in a copy of the folder, then elsewhere to a daemon in it."""
    alone = await asyncio.to_thread(copy_state, home, home.parent / "alone")
    here = {"ORCHESTRATOR_HOME": str(alone)}
    expected = [said(await asyncio.to_thread(partial(cli, *words, **here)), alone) for words in commands]
    stand = await asyncio.to_thread(partial(Stand, home, ORCHESTRATOR_TOKEN=TOKEN))
    async with running(stand) as daemon:
        far = {
            "ORCHESTRATOR_HOME": str(home.parent / "nothing"),
            "ORCHESTRATOR_URL": daemon.address,
            "ORCHESTRATOR_TOKEN": TOKEN,
        }
        for words, one in zip(commands, expected, strict=True):
            done = await asyncio.to_thread(partial(cli, *words, **far))
            assert said(done, home) == one, words
            assert words != ("status",) or f", at {daemon.address}\n" in done.stdout


async def test_of_a_sprint_that_has_ended(home: Path) -> None:
    await both_ways(home, ENDED)


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """Five stories that ask about their plans, and plans for one of them."""
    waiting = Waiting(tmp_path, [f"US-{number}" for number in range(1, 6)])
    waiting.open_branch("US-4", {"app.py": "x = 1\n"})
    for story in waiting.record.story_ids:
        waiting.ask(story, about_plan(story))
    (tmp_path / "bad.yaml").write_text("tasks: []\n")
    (tmp_path / "good.yaml").write_text(json.dumps(plan("US-4").model_dump(mode="json")))
    return waiting.state.home


async def test_of_stories_that_wait_for_a_person(asking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(asking.parent)
    await both_ways(asking, ASKED)
