"""`check plan` of a person's task plan: which kind it is, all findings, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.answers.task_plans import WRITTEN
from tests.support import make_repo

ACTIONS = "# T\n\n## Rationale\n\nR\n\n## Action Plan\n\n### `DELETE`\n\n- **File Path:** `a`\n"


def run(*args: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["check", "plan", *args], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def said(*args: str, stdin: str = "") -> tuple[int, dict[str, Any]]:
    code, out, err = run(*args, "--json", stdin=stdin)
    assert out, err
    return code, json.loads(out)


def test_a_task_plan_is_judged_and_told_as_one(tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text(WRITTEN, encoding="utf-8-sig")
    code, found = said(str(plan), "--story", "US-1")
    assert (code, found["kind"], found["valid"], found["severity"]) == (0, "task plan", True, "none")
    plan.write_text(WRITTEN.replace("shop/prices.py", "/shop/prices.py"))
    code, found = said(str(plan))
    assert (code, found["valid"], found["severity"]) == (1, False, "major")
    (issue,) = [finding for finding in found["findings"] if finding["severity"] == "major"]
    assert (issue["code"], issue["where"]["file"], issue["where"]["line"]) == ("breakdown.unsafe_path", str(plan), 15)
    code, out, err = run(str(plan))
    assert (code, "Task 1" in out, "task plan: not valid" in err) == (1, True, True)


def test_a_repository_says_which_files_and_packages_there_are(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path / "repo", {"data": "1\n", "pyproject.toml": '[project]\nname="x"\ndependencies=["rich"]\n'}
    )
    text = f"**Goal:** See it\n\n### Task 1\n\n- Modify: `data`\n\n**Command:** `pip install rich`\n\n{'Much. ' * 50}"
    assert {finding["code"] for finding in said("-", stdin=text)[1]["findings"]} == {
        "breakdown.abstract_path",
        "breakdown.undeclared_package",
    }
    assert said("-", "--repo", str(repo), stdin=text) == (
        0,
        {"kind": "task plan", "valid": True, "severity": "none", "findings": []},
    )
    assert run("-", "--repo", str(tmp_path / "none"), stdin=text)[0] == 2


@pytest.mark.parametrize(
    ("text", "code", "kind", "codes"),
    [
        ("", 4, "no plan", {"plan.none", "task_plan.too_short"}),
        ("Sorry, I cannot.", 4, "no plan", {"plan.none", "task_plan.too_short"}),
        ("# Plan\n\n**Goal:** See prices\n", 4, "no plan", {"task_plan.too_short"}),
        (f"# Prices\n\n{'Round them once. ' * 20}", 0, "text for the architect", {"task_plan.followed"}),
        ("### Task 1\n\n- Create: `a.py`\n\n### Task 1a\n", 1, "task plan", {"task_plan.heading"}),
        (ACTIONS, 0, "action plan", set()),
        (ACTIONS.replace("R\n", "1. **R** in `a.py`\n- [ ] T001 in src/a.py\n"), 0, "action plan", set()),
        (ACTIONS.replace("DELETE", "CREATE") + "\n````\n### Task 1\n````\n", 0, "action plan", set()),
        ('{"files": []}', 4, "no plan", {"plan.none"}),
    ],
)
def test_which_kind_a_text_is(text: str, code: int, kind: str, codes: set[str]) -> None:
    exit_code, found = said("-", stdin=text)
    assert (exit_code, found["kind"], found["valid"]) == (code, kind, code == 0)
    assert codes <= {finding["code"] for finding in found["findings"]}


def test_a_file_that_is_no_text_is_exit_2(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_bytes(b"### Task 1\xff\xfe")
    assert run(str(tmp_path / "plan.md"))[0] == 2
    assert run(str(tmp_path / "none.md"))[0] == 2
