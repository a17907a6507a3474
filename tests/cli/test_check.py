"""`check` over the examples of contracts/examples, one of each kind per rule, and what its options mean."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.app.judge import CheckOptions, check, judged_json
from orchestrator.cli.main import app
from orchestrator.core.action_plan import ActionPlan, Create, Execute
from tests.answers.action_plan_text import render_plan
from tests.contracts_tool import FOLDER
from tests.example_project import STORY, lay_out, task_files
from tests.support import breakdown, delivery, git, make_repo, task, write_backlog

EXAMPLES = FOLDER / "examples"
KINDS = ("breakdown", "delivery")


def code_of(path: Path) -> str:
    """`breakdown.cycle.json`, `delivery.contract.file.json`, `breakdown.unsafe_path.drive.json` → the rule's code."""
    kind, *rest = path.stem.split(".")
    return f"contract.{rest[1]}" if rest[0] == "contract" else f"{kind}.{rest[0]}"


def examples(folder: str) -> list[Path]:
    return [path for path in sorted((EXAMPLES / folder).glob("*.json")) if path.name.split(".")[0] in KINDS]


CODES = {code_of(path) for path in examples("accepted")} & {
    code_of(path) for folder in ("refused", "told") for path in examples(folder)
}
"""Rules that have an example of both kinds."""


def run(*args: str, stdin: str | None = None) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["check", *args, "--json"], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}


def judged(folder: str, project: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, rule and judgement of each example of a folder."""
    for path in examples(folder):
        kind = path.name.split(".")[0]
        context = task_files(path) if kind == "delivery" else None
        options = CheckOptions(story=STORY, repo=project, context=tuple(context or ()) or None, file=str(path))
        yield path.stem, code_of(path), judged_json(check(kind, path.read_text(encoding="utf-8"), options))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("project"))


def test_refused_examples(project: Path) -> None:
    for name, code, said in judged("refused", project):
        blocking = {finding["code"] for finding in said["findings"] if finding["severity"] in {"major", "critical"}}
        assert (said["valid"], bool(blocking)) == (False, True), name
        if code in CODES and {"answer.truncated", "answer.unfit"}.isdisjoint(blocking):
            assert code in blocking, name


def test_accepted_examples(project: Path) -> None:
    for name, code, said in judged("accepted", project):
        assert said["valid"], (name, said["findings"])
        if code in CODES and code != "breakdown.conflict":
            assert code not in {finding["code"] for finding in said["findings"]}, name


def test_told_examples(project: Path) -> None:
    for name, code, said in judged("told", project):
        # What is only told counts for nothing in a plan's severity.
        assert (said["valid"], said["severity"]) == (True, "none" if name.startswith("breakdown") else "minor"), name
        assert code in {finding["code"] for finding in said["findings"]}, name
        assert all(finding["fix"] for finding in said["findings"]), name


PLAN = breakdown("US-1", task("US-1", 1, ["shop/prices.py"]), dependencies={"dependencies": {"rich": "*"}})


def test_a_repository_says_what_is_there(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"shop/prices.py": "X = 1\n", "data": "1\n", "pyproject.toml": ""})
    (repo / "new.py").write_text("import shop.prices\n")
    text = json.dumps(breakdown("US-1", ["data"], ["data/more.py"]))
    assert [f["code"] for f in run("breakdown", "-", stdin=text)[1]["findings"]] == [
        "breakdown.abstract_path", "breakdown.abstract_path",
    ]  # fmt: skip
    exit_code, said = run("breakdown", "-", "--repo", str(repo), stdin=text)
    assert (exit_code, [f["where"]["task"] for f in said["findings"]]) == (1, ["T-US-1-02"])
    assert git(repo, "status", "--porcelain") == "?? new.py"


def test_a_delivery_is_held_against_the_contract_of_its_breakdown(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"shop/prices.py": "X = 1\n"})
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    around = ["--repo", str(repo), "--breakdown", str(tmp_path / "plan.json")]
    fine = json.dumps(delivery("US-1", 1, {"shop/prices.py": "import rich\nX = rich\n"}))
    assert run("delivery", "-", *around, stdin=fine) == (0, {"valid": True, "severity": "none", "findings": []})
    assert run("delivery", "-", "--repo", str(repo), stdin=fine)[1]["findings"][0]["code"] == "contract.import"
    beyond = json.dumps(delivery("US-1", 1, {"shop/prices.py": "X = 2\n", "shop/more.py": "Y = 1\n"}))
    exit_code, said = run("delivery", "-", *around, stdin=beyond)
    assert (exit_code, said["severity"], [f["code"] for f in said["findings"]]) == (0, "minor", ["contract.file"])
    assert said["findings"][0]["ask"] is True
    assert run("delivery", "-", stdin=beyond)[0] == 0
    assert not (repo / "shop" / "more.py").exists()


def test_cut_off_refused_and_a_suite() -> None:
    whole = json.dumps(PLAN)
    assert run("breakdown", "-", stdin=whole[: whole.index('"dependency_reason"')])[0] == 3
    exit_code, said = run("breakdown", "-", stdin='{"detected": false}')
    assert (exit_code, said["valid"], said["severity"]) == (4, False, "major")
    nothing = {"test_file": "tests/test_a.py", "test_content": "A = 1\n", "test_cases": ["test_a"]}
    exit_code, said = run("suite", "-", stdin=json.dumps({"story_id": "US-1", **nothing}))
    assert (exit_code, "suite.no_tests" in {f["code"] for f in said["findings"]}) == (1, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["breakdown", "none.json"], "cannot read none.json"),
        (["breakdown", "-", "--repo", "nowhere"], "--repo nowhere is no folder"),
        (["delivery", "-", "--context", "../x"], "climbs out"),
        (["delivery", "-", "--breakdown", "none.json"], "cannot read none.json"),
    ],
)
def test_what_cannot_be_used_is_exit_2(args: list[str], said: str) -> None:
    exit_code, found = run(*args, stdin="{}")
    assert exit_code == 2
    assert said in found["stderr"]


def test_what_is_shown_of_foreign_texts_has_no_secret_and_gives_the_terminal_no_orders(tmp_path: Path) -> None:
    hostile = "\x1b]0;x\x07\x1b[2Jsk-ant-api03-AbQd1934efGh5678ijKl9012mnOp"
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(delivery("US-001", 1, {f"../{hostile}": "x"})), encoding="utf-8")
    row = {"Story_ID": f"A{hostile}", "Title": "T", "User_Story": "U"}
    backlog = write_backlog(tmp_path / "b.csv", row)
    (tmp_path / "repo").mkdir()
    actions = (Create(path="a.txt", content="\x1b[2J\n"), Execute(command="echo '\x1b[2J'"))
    plan = tmp_path / "plan.md"
    plan.write_text(render_plan(ActionPlan(title="T", rationale="R", actions=actions)), encoding="utf-8")
    for args, said in (
        (["check", "delivery", str(answer)], "`../\\x1b"),
        (["run", str(backlog), "--dry-run"], "wave 1: A"),
        (["apply", str(plan), "--repo", str(tmp_path / "repo")], "echo"),
    ):
        done = CliRunner().invoke(app, args)
        assert said in done.output, (args, done.output)
        assert [part for part in ("\x1b", "\x07", "AbQd1934") if part in done.output] == []


def test_people_read_what_to_do() -> None:
    done = CliRunner().invoke(app, ["check", "breakdown", str(EXAMPLES / "refused" / "breakdown.cycle.json")])
    assert done.exit_code == 1
    assert "to do: Take one of these dependencies out." in done.stdout
    assert "not valid; ok, " in done.stderr
