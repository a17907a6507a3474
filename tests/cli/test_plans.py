"""`check plan` and `apply`: judged, shown, written whole or not at all, commands with the one that failed named."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.contract.freeze import freeze
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Pair, Read
from orchestrator.core.command import Choice
from orchestrator.core.sprint import StoryStatus
from tests.answers.action_plan_text import render_plan
from tests.cli.waiting import SPRINT, Waiting, plan
from tests.git.git_samples import snapshot
from tests.support import make_repo

FILES = {"a.py": "def f():\n    return 1\n", "old.txt": "o\n", "crlf.txt": "x\r\ny\r\n", "src/b.py": "B = 1\n"}


def edit(path: str, find: str, replace: str) -> Edit:
    return Edit(path=path, pairs=(Pair(find=find, replace=replace),))


GOOD: tuple[Action, ...] = (
    Create(path="new/c.py", content="C = 1\n"),
    edit("a.py", "return 1", "return 2"),
    edit("crlf.txt", "y", "z"),
    Move(path="src/b.py", target="src/d.py"),
    Delete(path="old.txt"),
)
AFTER = {
    "a.py": b"def f():\n    return 2\n", "crlf.txt": b"x\r\nz\r\n", "new/c.py": b"C = 1\n", "src/d.py": b"B = 1\n",
}  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def text_of(*actions: Action) -> str:
    return render_plan(ActionPlan(title="T", rationale="R", actions=actions))


def run(*args: str, stdin: str = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(args), input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def said(*args: str, stdin: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run(*args, "--json", stdin=stdin)
    assert out, err
    return code, json.loads(out)


def files(repo: Path) -> dict[str, bytes]:
    return {path: content for path, content in snapshot(repo).items() if not path.startswith(".git/")}


def apply(repo: Path, *actions: Action) -> tuple[int, dict[str, Any]]:
    return said("apply", "-", "--repo", str(repo), "--yes", stdin=text_of(*actions))


def states(report: dict[str, Any]) -> list[str]:
    return [action["state"] for action in report["actions"]]


def test_a_plan_is_checked_stage_by_stage(repo: Path) -> None:
    where = ["--repo", str(repo)]
    code, found = said("check", "plan", "-", *where, "--context", ",".join(FILES), stdin=text_of(*GOOD))
    assert (code, found) == (0, {"kind": "action plan", "valid": True, "severity": "none", "findings": []})
    code, found = said("check", "plan", "-", *where, stdin=text_of(*GOOD))
    assert (code, [f["code"] for f in found["findings"]]) == (0, ["plan.context_unknown"])
    code, found = said("check", "plan", "-", stdin=text_of(*GOOD))
    assert (code, [f["code"] for f in found["findings"]]) == (0, ["plan.unchecked"])
    code, found = said("check", "plan", "-", *where, "--context", "src/b.py", stdin=text_of(*GOOD))
    assert (code, {f["code"] for f in found["findings"]}) == (1, {"plan.unread"})
    broken = text_of(*GOOD, edit("a.py", "return 9", "x"))
    code, found = said("check", "plan", "-", *where, stdin=broken)
    assert (code, [f["code"] for f in found["findings"] if f["severity"] == "major"]) == (1, ["plan.not_found"])
    code, found = said("check", "plan", "-", *where, stdin=broken.replace("### `MOVE`", "### `SHIFT`"))
    assert (code, [f["code"] for f in found["findings"]]) == (1, ["plan.verb"])
    code, found = said("check", "plan", "-", *where, stdin="Sorry, I cannot.")
    assert (code, found["kind"]) == (4, "no plan")
    assert {"plan.none", "task_plan.too_short"} <= {f["code"] for f in found["findings"]}
    assert said("check", "plan", "-", *where, stdin=broken[:-20])[0] == 3
    assert files(repo) == {path: text.encode() for path, text in FILES.items()}


def test_the_contract_and_the_contents_count_for_a_story(repo: Path) -> None:
    plan = text_of(Create(path="n.py", content="import rich\n"), Create(path="m.py", content="x = (\n"))
    assert said("check", "plan", "-", "--repo", str(repo), stdin=plan)[0] == 0
    code, found = said("check", "plan", "-", "--repo", str(repo), "--story", "US-1", stdin=plan)
    assert (code, {f["code"] for f in found["findings"]}) == (1, {"contract.import", "delivery.syntax"})


def test_what_cannot_be_used_is_exit_2(repo: Path) -> None:
    code, _, err = run("apply", "-", "--repo", str(repo), stdin="# Plan\n\n### Task 1\n\nDo it.\n")
    assert (code, "holds a task plan" in err) == (2, True)
    assert run("check", "plan", "-", "--repo", str(repo / "none"), stdin=text_of(*GOOD))[0] == 2
    assert run("check", "plan", "-", "--repo", str(repo), "--context", "../x", stdin=text_of(*GOOD))[0] == 2
    assert run("apply", "-", "--repo", str(repo), "--json", stdin=text_of(*GOOD))[0] == 2


def test_a_plan_is_applied_and_told(repo: Path) -> None:
    code, report = apply(repo, *GOOD, Read(resource="a.py"), Execute(command="test -f new/c.py && echo fine"))
    assert code == 0
    assert states(report) == ["done"] * 5 + ["skipped", "done"]
    assert report["actions"][-1]["output"] == "fine\n"
    assert {entry["path"]: entry["change"] for entry in report["changes"]} == {
        "new/c.py": "created", "a.py": "changed", "crlf.txt": "changed", "src/b.py": "removed", "src/d.py": "created",
        "old.txt": "removed",
    }  # fmt: skip
    assert files(repo) == AFTER


def test_a_person_sees_the_difference_and_is_asked_twice(repo: Path) -> None:
    plan = repo.parent / "plan.md"
    plan.write_text(text_of(*GOOD, Execute(command="touch ran")), encoding="utf-8")
    before = files(repo)
    for answer in ("", "n\n"):
        code, out, err = run("apply", str(plan), "--repo", str(repo), stdin=answer)
        assert code == 1
        assert "-    return 1\n+    return 2" in out
        assert "--- a/old.txt\n+++ /dev/null" in out
        assert "$ touch ran" in out
        assert "nothing was written" in err
        assert files(repo) == before
    code, out, _ = run("apply", str(plan), "--repo", str(repo), stdin="y\nn\n")
    assert code == 0
    assert "6. **skipped** `EXECUTE` touch ran: commands were not confirmed" in out
    assert files(repo) == AFTER


def test_the_first_failure_skips_the_rest_and_a_chain_names_its_part(repo: Path) -> None:
    code, report = apply(
        repo,
        Execute(command="exit 3", allow_failure=True),
        Execute(command="echo one && test -f none && echo two\necho three"),
        Execute(command="touch ran"),
        Create(path="new.txt", content="x\n"),
    )
    assert code == 1
    assert states(report) == ["done", "failed", "skipped", "skipped"]
    reasons = [action["reason"] for action in report["actions"]]
    assert reasons[0] == "`exit 3` ended with exit code 3, which is allowed"
    assert reasons[1] == "`test -f none` ended with exit code 1"
    assert reasons[2] == "action 2 (EXECUTE echo one && test -f none && echo two …) failed"
    assert report["actions"][1]["output"] == "one\n"
    assert not (repo / "ran").exists()


def test_commands_run_below_the_folder_with_their_environment_and_time(repo: Path) -> None:
    code, report = apply(
        repo,
        Execute(command="pwd; echo $A", cwd="src", env={"A": "1 2"}),
        Execute(command="sleep 60", timeout_s=0.5, allow_failure=True),
        Execute(command="ln -s ../.. src/out"),
        Execute(command="touch ran", cwd="src/out"),
    )
    assert code == 1
    assert states(report) == ["done", "done", "done", "failed"]
    assert report["actions"][0]["output"] == f"{(repo / 'src').resolve()}\n1 2\n"
    assert "hit its timeout limit" in report["actions"][1]["reason"]
    assert report["actions"][3]["output"] == "cwd leads out of the folder through a link\n"
    code, report = apply(repo, Execute(command="touch ran", cwd="src/out"))
    assert (code, [f["code"] for f in report["findings"]]) == (1, ["plan.cwd"])
    assert not (repo.parent / "ran").exists()


def test_links_lead_nowhere_and_nothing_is_done_by_halves(repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("precious\n")
    (repo / "link").symlink_to(outside / "victim")
    (repo / "folder").symlink_to(outside)
    before = files(repo)
    for action in (
        edit("link", "precious", "spoilt"),
        edit("folder/victim", "precious", "spoilt"),
        Create(path="link", content="x"),
        Create(path="link", content="x", overwrite=True),
        Create(path="folder/new", content="x"),
        Delete(path="link"),
        Move(path="folder/victim", target="mine"),
        Create(path=".git/hooks/x", content="x"),
        Create(path="../outside/x", content="x"),
    ):
        code, report = apply(repo, Create(path="first.txt", content="x\n"), action, Execute(command="touch ran"))
        assert code == 1, action
        assert "done" not in states(report)
        assert files(repo) == before
        assert snapshot(outside) == {"victim": b"precious\n"}


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    monkeypatch.chdir(tmp_path)
    return Waiting(tmp_path)


BROKEN = text_of(edit("a.py", "return 9", "return 2"))


def test_a_plan_that_is_refused_shows_how_its_story_is_planned_again(repo: Path, waiting: Waiting) -> None:
    words = ["apply", "-", "--repo", str(repo)]
    assert "name it with --story ID" in waiting.cli(*words, text=BROKEN).stderr
    waiting.ask("US-1")
    done = waiting.cli(*words, "--story", "US-1", text=BROKEN)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("to have US-1 planned again: "))
    assert (done.exit_code, waiting.answers(), files(repo)) == (1, [], {p: t.encode() for p, t in FILES.items()})
    command = shlex.split(line.partition(": ")[2])
    assert command[:5] == ["orchestrator", "replan", "US-1", "--sprint", SPRINT]
    assert waiting.cli(*command[1:]).exit_code == 0
    (answer,) = waiting.answers()
    assert answer.choice is Choice.REPLAN
    assert answer.comment.startswith("Found in a plan that was to be applied by hand: FIND")
    for status in (StoryStatus.DONE, StoryStatus.BLOCKED):
        story = "US-2" if status is StoryStatus.DONE else "US-3"
        waiting.finish(story, status)
        said = waiting.cli(*words, "--story", story, text=BROKEN).stderr
        assert f"{story} is {status.value} and cannot be planned again now" in said
    assert waiting.cli(*words, "--story", "US-9", text=BROKEN).exit_code == 2


def test_the_contract_that_a_story_has_counts_for_its_plan(repo: Path, waiting: Waiting) -> None:
    made = freeze(breakdown=plan("US-1", ["a.py"]), base_commit="", files=tuple(FILES), manifests={})
    waiting.ask("US-1")
    waiting.freeze("US-1", made)
    words = ["apply", "-", "--repo", str(repo), "--story", "US-1"]
    test_file = text_of(Create(path="tests/test_a.py", content="def test_a():\n    assert True\n"))
    done = waiting.cli(*words, text=test_file)
    assert (done.exit_code, "contract.test_file" in done.stdout) == (1, True), done.output
    assert "to have US-1 planned again: " in done.stderr
    done = waiting.cli(*words, text=text_of(Create(path="c.py", content="C = 1\n")))
    assert "question: [minor] contract.file" in done.stdout, done.output
    assert "`c.py` is outside the plan" in done.stderr.splitlines()[-1], "nobody wanted it written"
    done = waiting.cli(*words, "--yes", text=text_of(edit("a.py", "return 1", "return 2")))
    assert (done.exit_code, "contract" in done.stdout) == (0, False), done.output
