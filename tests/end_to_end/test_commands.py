"""Commands of a model: bounded, fed back; what they make of their task's files is kept, and nothing else."""

import os
from pathlib import Path

import pytest

from tests.support import PLAIN_TESTS, Played, Team, make_repo, play, suite_text, task, write_backlog

MODULE = "def value():\n    return 1\n"
BOMB = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.05)\n"

LIMITS = {"ENDLESS": "timeout", "HIDES": "timeout", "FORKS": "processes", "SHOUTS": "output"}
"""Story → the limit that ends its command."""
SLEEPS = tuple(f"sleep {seconds}.{os.getpid()}" for seconds in (607, 608, 609))
FORKING = f"python bomb_{os.getpid()}.py"
"""Command lines that no other run of these tests on this machine has."""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no command may reach through a delivery."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> Played:
    """One sprint of misbehaving commands, with small limits."""
    folder = tmp_path_factory.mktemp("commands")
    team = Team()
    command(team, "ENDLESS", f"{SLEEPS[0]}; true")
    command(team, "HIDES", f"(setsid nohup {SLEEPS[1]} >/dev/null 2>&1 &) ; {SLEEPS[2]}; true")
    command(team, "FORKS", FORKING, {FORKING.removeprefix("python "): BOMB})
    command(team, "SHOUTS", "yes shouting without end")
    makes(team)
    generates(team)
    cannot(team)
    backlog = write_backlog(
        folder / "backlog.csv",
        "ENDLESS",
        "HIDES",
        "FORKS",
        "SHOUTS",
        "MAKES",
        "GENERATES",
        "CANNOT",
        "CANNOTMAKE",
    )
    limits = ("commands.timeout_s=4", "commands.processes=24", "commands.output_killed_kb=256", "build.max_attempts=2")
    limits += ("concurrency.stories=8", "concurrency.commands=6")  # half of the time is waiting for time limits
    return play(
        folder,
        team,
        backlog,
        PLAIN_TESTS,
        *limits,
        repo=make_repo(folder / "repo", {"keep.txt": "kept\n", ".gitignore": "generated/\n"}),
    )


def command(team: Team, story: str, line: str, extra: dict[str, str] | None = None) -> None:
    """A story whose command fails each time it is tried."""
    module = f"{story.lower()}.py"
    team.plan(story, task(story, 1, [module, *(extra or {})], line))
    for _ in range(2):
        team.deliver(story, 1, {module: MODULE, **(extra or {})})
    team.suite(story, suite_text(story))


def makes(team: Team) -> None:
    """One command rewrites a file of its task, the next adds to one that was delivered, the last leaves litter."""
    first = "mkdir -p site && (echo 'body {}' > site/made.css) && echo more > site/map.css"
    second = "printf 'LATER = 2\\n' >> makes.py && grep -q body site/made.css"
    litter = "echo litter > litter.txt && mkdir -p heap && echo more > heap/more.txt && echo changed > keep.txt"
    tasks = [(["site/made.css"], first), (["makes.py"], second), ([], litter)]
    team.plan("MAKES", *(task("MAKES", number, *each) for number, each in enumerate(tasks, start=1)))
    team.deliver("MAKES", 1, {"site/made.css": "/* of the developer */\n"})
    team.deliver("MAKES", 2, {"makes.py": MODULE})
    team.suite("MAKES", suite_text("MAKES"))


def generates(team: Team) -> None:
    """One command makes a file that git ignores; a plan that lists such a file to be delivered is sent back once."""
    line = "mkdir -p generated && sed s/x/7/ source.txt > generated/table.txt"
    team.plan("GENERATES", task("GENERATES", 1, ["source.txt", "generated/by_hand.txt"]))
    last = task("GENERATES", 2, ["generates.py"])
    team.plan("GENERATES", task("GENERATES", 1, ["source.txt"], line), last)
    team.deliver("GENERATES", 1, {"source.txt": "x\n"})
    team.deliver("GENERATES", 2, {"generates.py": MODULE})
    team.suite("GENERATES", suite_text("GENERATES"))


def cannot(team: Team) -> None:
    """Commands that write where the sandbox only reads: one beside its files, one that alone makes a file."""
    outside = "mkdir /usr/share/tides"
    team.plan("CANNOT", task("CANNOT", 1, ["cannot.py"], outside))
    team.deliver("CANNOT", 1, {"cannot.py": MODULE})
    team.suite("CANNOT", suite_text("CANNOT"))
    team.plan("CANNOTMAKE", task("CANNOTMAKE", 1, ["cannotmake.py", "table.txt"], f"{outside} && echo 1 > table.txt"))
    team.deliver("CANNOTMAKE", 1, {"cannotmake.py": MODULE})
    team.suite("CANNOTMAKE", suite_text("CANNOTMAKE"))


def test_a_command_that_the_sandbox_keeps_from_its_work_burns_no_answer(played: Played) -> None:
    assert played.status("CANNOT") == "done", played.story("CANNOT").findings
    found = played.finding("CANNOT", "environment.closed")
    assert found.severity == "minor"
    assert "/usr/share/tides" in found.message
    assert "environment.setup" in found.fix
    assert played.asked("CANNOT", "alex") == played.asked("CANNOTMAKE", "alex") == ["delivery 1"]
    assert played.status("CANNOTMAKE") == "needs_attention"
    assert played.finding("CANNOTMAKE", "environment.closed").severity == "major"


def test_what_git_ignores_is_committed_nowhere_and_told(played: Played) -> None:
    assert played.status("GENERATES") == "done", played.told_of("GENERATES", "answer_sent_back")
    assert {"generates.py", "source.txt"} <= {*played.tree("result")}
    assert "generated/table.txt" not in {*played.tree("GENERATES"), *played.tree("result")}
    assert played.asked("GENERATES", "mike") == ["breakdown 1", "breakdown 2"]
    assert played.finding("GENERATES", "command.not_kept").message.endswith("is not kept: generated/table.txt")


def test_what_a_command_makes_of_its_tasks_files_is_committed_and_the_rest_is_told(played: Played) -> None:
    assert played.status("MAKES") == "done", played.story("MAKES").findings
    assert played.text("MAKES", "site/made.css") == "body {}"
    assert played.text("MAKES", "makes.py") == f"{MODULE}LATER = 2"
    assert "site/map.css" not in played.tree("MAKES")
    told = played.finding("MAKES", "command.not_kept").message
    assert told.endswith("is not kept: site/map.css")


def test_a_command_that_never_ends_is_ended_and_told(played: Played) -> None:
    for story, limit in LIMITS.items():
        assert played.status(story) == "needs_attention", (story, played.story(story).findings)
        assert played.tasks(story) == ["failed"]
        assert f"hit its {limit} limit" in played.finding(story, "command.failed").message
        assert played.asked(story, "alex") == ["delivery 1", "delivery 2"]
        assert played.story(story).tests.run == 0, "nothing is tested that cannot be merged"
