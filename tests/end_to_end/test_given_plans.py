"""`run --plan`: a person's plan is built in place of the architect's, judged like any other, and never rewritten."""

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding
from tests.support import ALL_PASS, Played, Team, cells, make_repo, plain_environment, play, suite_text, write_backlog

PLAN = """\
# One value

**Goal:** The shop knows its value
**Tech Stack:** Python, pytest

### Task 1: The value

- Create: `us_1.py:1-3`
- Test: `tests/test_us_1.py`

A function `value()` that returns 1. Run: `pytest -q`

### Task 2.1: Where it stands

**Depends on:** Task 1

- Modify: `README.md`

Say in the README that there is a value, and where to find it: in the module us_1.
"""
TEXT = """\
# The shop knows its value

The value comes first: a function `value()` in `us_1.py` that returns 1. Then the README says that there is one and
where it stands. Nothing else changes: neither the page nor the numbers of the orders, which another team works on.
"""
INVALID = PLAN.replace("`us_1.py:1-3`", "`../us_1.py`").replace("The shop knows its value", "TODO")


def team() -> Team:
    """US-1 by a person's plan; whoever else is asked stands in the way."""
    said = Team()
    said.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n"})
    said.deliver("US-1", 2, {"README.md": "There is a value in us_1.\n"})
    said.suite("US-1", suite_text("US-1"))
    return said


def shop(folder: Path, *stories: str) -> Path:
    make_repo(folder / "repo", {"README.md": "A shop.\n"})
    (folder / "plan.md").write_text(PLAN)
    return write_backlog(folder / "b.csv", *(stories or ("US-1",)))


def cli(folder: Path, *args: str) -> Result:
    environment = {name: None for name in os.environ} | plain_environment(ORCHESTRATOR_HOME=str(folder / "state"))
    return CliRunner().invoke(app, list(args), env=environment)


def run(folder: Path, *args: str) -> Result:
    words = ["run", str(folder / "b.csv"), "--repo", str(folder / "repo"), "--call-log", str(folder / "calls.jsonl")]
    return cli(folder, *words, "--provider", "scripted", "--script", str(folder / "team.jsonl"), *args)


def purposes(folder: Path) -> list[str]:
    log = folder / "calls.jsonl"
    return [json.loads(line)["purpose"] for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    shop(folder)
    return folder


def refused(folder: Path, said: Team, plan: str, *settings: str) -> tuple[Finding, ...]:
    """What is found wrong with a plan, for which the command ends."""
    (folder / "plan.md").write_text(plan)
    with pytest.raises(ConfigError) as ended:
        play(folder, said, folder / "b.csv", *settings, plans=[f"US-1={folder / 'plan.md'}"])
    return tuple(ended.value.findings)


@pytest.fixture(scope="module")
def invalid(place: Path) -> tuple[Finding, ...]:
    """The first try: a plan that breaks rules."""
    return refused(place, team(), INVALID)


@pytest.fixture(scope="module")
def built(place: Path, invalid: tuple[Finding, ...]) -> Played:
    """The second try, which nothing hinders."""
    (place / "plan.md").write_text(PLAN)
    return play(place, team(), place / "b.csv", ALL_PASS, plans=[str(place / "plan.md")])


def test_an_invalid_plan_ends_the_command_before_anything_is_spent(place: Path, invalid: tuple[Finding, ...]) -> None:
    assert {"breakdown.unsafe_path", "task_plan.placeholder_goal"} <= {finding.code for finding in invalid}
    unsafe = next(finding for finding in invalid if finding.code == "breakdown.unsafe_path")
    assert (unsafe.where.line, unsafe.where.task, unsafe.where.story) == (6, "Task 1", "US-1")
    assert purposes(place) == []
    assert cells(place / "b.csv")["US-1"]["Execution_Status"] == ""


def test_a_persons_plan_is_built_and_the_architect_plans_nothing(built: Played) -> None:
    assert built.status("US-1") == "done"
    assert built.asked("US-1") == ["delivery 1", "review 1", "delivery 1", "review 1", "suite 1"]
    assert built.tree("result") == ["README.md", "tests/test_us_1.py", "us_1.py"]


def test_any_other_text_is_followed_by_the_architect_whose_plan_is_checked_like_any(tmp_path: Path) -> None:
    backlog = shop(tmp_path)
    assert {one.code for one in refused(tmp_path, Team(), "Do it.")} >= {"task_plan.too_short"}
    (tmp_path / "plan.md").write_text(TEXT)
    said = Team()
    said.plan("US-1", ["us_1.py"], ["README.md"])
    said.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n"})
    said.deliver("US-1", 2, {"README.md": "There is a value in us_1.\n"})
    said.suite("US-1", suite_text("US-1"))
    played = play(tmp_path, said, backlog, ALL_PASS, plans=[str(tmp_path / "plan.md")])
    assert played.status("US-1") == "done"
    assert played.asked("US-1")[0] == "breakdown 1"
    (given,) = played.told_of("US-1", "plan_given")
    assert (given.data["followed"], given.data["plan_file"]) == (True, str(tmp_path / "plan.md"))
    prompts = [path.read_text() for path in tmp_path.rglob("*.prompt.md")]
    (asked,) = [text for text in prompts if "## Plan of a person for this story" in text]
    assert "which another team works on" in asked.split("## Plan of a person for this story")[1]


def test_the_plan_is_frozen_when_its_story_begins_until_it_is_planned_again(tmp_path: Path) -> None:
    backlog = shop(tmp_path)
    plan, stopped = tmp_path / "plan.md", Team()
    stopped.say("alex", "US-1", "delivery", "", task=1, error="bad_request")
    first = play(tmp_path, stopped, backlog, plans=[str(plan)])
    assert first.status("US-1") == "failed"
    (given,) = first.told_of("US-1", "plan_given")
    assert (given.data["followed"], given.data["plan_file"]) == (False, str(plan))
    plan.write_text(PLAN + "\nMore.\n")
    sprint = first.result.report.sprint
    same = play(tmp_path, Team(), backlog, sprint=sprint, plans=[str(plan)])
    assert any(f"US-1 has begun with the plan of {plan} as it was then" in text for text in same.told)
    assert cli(tmp_path, "reset", "US-1").exit_code == 0
    again = play(tmp_path, stopped, backlog, sprint=sprint, plans=[str(plan)])
    assert again.told_of("US-1", "plan_judged")[-1].data["plan"]["tasks"][1]["description"].endswith("More.")
    assert cli(tmp_path, "reset", "US-1").exit_code == 0
    plan.unlink()
    without = play(tmp_path, stopped, backlog, sprint=sprint, plans=[str(plan)])
    assert without.told_of("US-1", "plan_given"), "the file is gone, its text is kept"
    assert cli(tmp_path, "replan", "US-1", "--comment", "Plan it yourself.").exit_code == 0
    said = Team()
    said.good("US-1")
    replanned = play(tmp_path, said, backlog, ALL_PASS, sprint=sprint)
    assert replanned.status("US-1") == "done"
    assert replanned.asked("US-1")[-4:] == ["breakdown 1", "delivery 1", "review 1", "suite 1"]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three stories, the last of them completed; no command that is refused here leaves anything."""
    folder = tmp_path_factory.mktemp("untouched")
    shop(folder)
    done = {"Story_ID": "US-3", "Title": "Done", "Execution_Status": "completed"}
    write_backlog(folder / "b.csv", "US-1", "US-2", done)
    (folder / "bytes").write_bytes(b"\xff")
    team().write(folder / "team.jsonl")
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plan", "{plan}"], "write --plan STORY={plan} (US-1, US-2)"),
        (["--plan", "US-01={plan}"], "there is no story US-01; did you mean US-1?"),
        (["--plan", "US-3={plan}"], "US-3 is completed"),
        (["--stories", "US-2", "--plan", "US-1={plan}"], "US-1 is not among the stories of this sprint (US-2)"),
        (["--plan", "US-1={plan}", "--plan", "US-1={plan}"], "--plan names US-1 twice"),
        (["--plan", "US-1=none.md"], "cannot read the plan none.md: No such file"),
        (["--plan", "US-1={bytes}"], "is not UTF-8 (byte 0)"),
        (["--plan", "US-1="], "names no file"),
        (["--plan", "US-1={folder}"], "Is a directory"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_cannot_be_used_is_exit_2(untouched: Path, words: list[str], said: str, dry: tuple[str, ...]) -> None:
    names = {"plan": str(untouched / "plan.md"), "bytes": str(untouched / "bytes"), "folder": str(untouched)}
    done = run(untouched, *dry, *(word.format(**names) for word in words))
    assert (done.exit_code, said.format(**names) in done.stderr) == (2, True), done.stderr
    assert purposes(untouched) == []
    assert not list((untouched / "state").rglob("sprint.json"))
