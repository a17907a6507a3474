"""A run in one terminal, a person in another; killed, answered offline, and continued."""

import json
import os
import subprocess
from pathlib import Path

from tests.support import ALL_PASS, Team, breakdown, plain_environment, run_cli, suite_text, write_backlog
from tests.zygote import zygote

RUN = ("run", "b.csv", "--repo", "repo", "--script", "team.jsonl", "--set", "gate.mode=always", "--set", ALL_PASS)
COMMENT = "Take the name that the shop uses."


class Terminal:
    """A run in the foreground, read line by line."""

    def __init__(self, place: Path) -> None:
        reader, writer = os.pipe()
        self._printed = os.fdopen(reader)
        with os.fdopen(writer, "wb") as log:
            self._process = zygote().start("orchestrator", RUN, cwd=place, env=plain_environment(), log=log)
        self.pid = self._process.pid

    def until(self, *texts: str) -> None:
        """Read on until each of the texts was printed."""
        left = set(texts)
        for line in self._printed:
            left -= {text for text in left if text in line}
            if not left:
                return
        raise AssertionError(f"never printed: {left}")

    def kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> int:
        """Its exit code."""
        with self._printed:
            self._printed.read()
        return self._process.wait()


def person(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_cli(words, place, plain_environment(LOGNAME="anna"))


def write_team(place: Path) -> None:
    team = Team()
    for story in ("US-1", "US-2"):
        team.plan(story, [f"other_{story[-1]}.py"])
        if story == "US-2":
            team.plan(story, ["us_2.py"])
        module = f"us_{story[-1]}"
        team.deliver(story, 1, {f"{module}.py": "def value():\n    return 1\n"})
        team.suite(story, suite_text(story))
    team.write(place / "team.jsonl")
    write_backlog(place / "b.csv", "US-1", "US-2")


def test_a_run_waits_is_killed_answered_offline_and_goes_on(tmp_path: Path) -> None:
    write_team(tmp_path)
    first = Terminal(tmp_path)
    first.until("US-1 waits for a person", "US-2 waits for a person")
    first.kill()

    (tmp_path / "plan.json").write_text(json.dumps(breakdown("US-1", ["us_1.py"])))
    offline = person(tmp_path, "edit", "US-1", "--file", "plan.json")
    assert offline.returncode == 0, offline.stderr
    assert "approved by anna; nobody runs the sprint now, the same run command resumes it" in offline.stdout

    second = Terminal(tmp_path)
    second.until("US-2 still waits for a person", "US-1 is done")
    alive = person(tmp_path, "reject", "US-2", "--comment", COMMENT, "--gate", "1")
    assert f"rejected by anna: {COMMENT}; pid {second.pid} resumes it" in alive.stdout
    second.until("US-2 waits for a person")
    late = person(tmp_path, "approve", "US-2", "--gate", "1")
    assert late.returncode == 2
    assert "question 2 stands now" in late.stderr
    assert person(tmp_path, "approve", "US-2", "--gate", "2").returncode == 0
    assert second.end() == 0

    told = json.loads(person(tmp_path, "status", "--json").stdout)
    assert [(story["id"], story["status"]) for story in told["stories"]] == [("US-1", "done"), ("US-2", "done")]
    assert told["waiting"] == []
    prompts = [path.read_text() for path in (tmp_path / ".orchestrator" / "replies").glob("*/US-2/*.prompt.md")]
    assert any(COMMENT in text and "Plan Revision Required" in text for text in prompts)
    assert not [name for name in os.listdir(tmp_path / ".orchestrator") if name == "edits"]
    answers = json.loads(person(tmp_path, "show", "US-2", "--json").stdout)["answers"]
    assert [(one["choice"], one["by"]) for one in answers] == [("reject", "anna"), ("approve", "anna")]
