"""`doctor` tells what a run would stumble over, what to do, and no secret."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.sandbox import choose
from orchestrator.settings import packaged
from tests.support import git, make_repo

KEY = "plain-key-1234"


TEAM = packaged("examples") / "init" / "team.jsonl"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def looked(*args: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """What doctor says where a scripted team is configured."""
    done = CliRunner().invoke(app, ["doctor", "--json", "--set", f"provider.script={TEAM}", *args])
    said = json.loads(done.stdout)
    rows = {row["name"]: row for row in said["rows"]}
    assert said["ok"] == all(row["ok"] for row in said["rows"]) == (done.exit_code == 0)
    assert all(row["todo"] for row in said["rows"] if not row["ok"])
    return done.exit_code, rows, done.stdout


def test_a_machine_that_has_all_is_told_so_and_nothing_is_left_behind(here: Path) -> None:
    code, rows, _ = looked()
    assert code == 0, rows
    assert {
        "settings", "personas", "prompts", "scripted", "git", "python", "node", "state folder", "database", "sandbox",
    } <= set(rows)  # fmt: skip
    assert list(here.iterdir()) == []


def test_it_says_what_run_would_say_of_a_script(here: Path) -> None:
    for script, said in (("none.jsonl", "none.jsonl is not there"), ("null", "no script is configured")):
        code, rows, _ = looked("--set", f"provider.script={script}")
        assert (code, rows["scripted"]["happened"]) == (1, said)


def test_what_is_amiss_is_told_with_what_to_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "config.yaml").write_text("project: {vision: gone.md}\nprompts: {dir: nowhere}\n")
    (here / "bin").mkdir()
    (here / "bin/git").write_text("#!/bin/sh\necho git version 2.20.1\n")
    (here / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(here / "bin"))
    monkeypatch.setenv("DATABASE_URL", f"postgres://u:{KEY}@127.0.0.1:1/x")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    code, rows, text = looked("--set", "provider.name=anthropic", "--set", "provider.model=m")
    assert code == 1
    wrong = {name for name, row in rows.items() if not row["ok"]}
    assert wrong == {"project.vision", "prompts", "anthropic m", "git", "database"}
    assert "put the key into ANTHROPIC_API_KEY" in rows["anthropic m"]["todo"]
    assert rows["node"]["ok"], "only some projects need it"
    assert KEY not in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--set", "provider.nam=x"], "did you mean provider.name?"),
        (["--config", "none.yaml"], "cannot read configuration none.yaml"),
        (["--set", "personas.nobody={}"], "there is no such persona"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_row_of_its_own(args: list[str], said: str) -> None:
    code, rows, _ = looked(*args)
    assert (code, [said in row["happened"] for row in rows.values() if not row["ok"]]) == (1, [True])


def test_people_read_it_too() -> None:
    done = CliRunner().invoke(app, ["doctor", "--set", "provider.name=openai"])
    assert done.exit_code == 1
    assert "wrong openai" in done.stdout
    assert "to do: name provider.model, and put the key into OPENAI_API_KEY" in done.stdout
    assert "checks failed" in done.stderr


def test_a_project_is_installed_and_run_without_a_sprint_and_left_as_it_was(here: Path) -> None:
    good = "def test_a():\n    assert True is not None\n\n\ndef test_b():\n    assert 1 == 2\n"
    repo = make_repo(here / "app", {"tests/test_a.py": good, "requirements.txt": "# none\n"})
    (repo / "tests/test_a.py").write_text("import nosuch_package\n")  # what is not committed is not looked at
    code, _, text = looked("--repo", str(repo))
    said = json.loads(text)
    assert (code, said["environment"]["because"], said["environment"]["problem"]) == (0, ["requirements.txt"], "")
    assert {name: said["base"][name] for name in ("collected", "passed", "failed", "skipped")} == {
        "collected": 2, "passed": 1, "failed": 1, "skipped": 0,
    }  # fmt: skip
    assert git(repo, "status", "--porcelain", "--ignored") == "M tests/test_a.py"
    assert [path.name for path in here.iterdir()] == ["app"]
    (repo / "requirements.txt").unlink()  # from here on no environment is made for its own sake
    git(repo, "commit", "--quiet", "--all", "--message", "Broken")
    code, rows, text = looked("--repo", str(repo))
    assert (code, rows["base"]["ok"], json.loads(text)["base"]["collected"]) == (1, False, 0)
    assert "No module named 'nosuch_package'" in rows["base"]["happened"]
    made = "environment.setup=['echo X = 1 > nosuch_package.py']"
    assert looked("--repo", str(repo), "--set", made)[0] == 0, "what a setup makes is there"
    code, rows, _ = looked("--repo", str(repo), "--set", "environment.setup=['exit 3']")
    assert (code, rows["environment"]["ok"], rows["base"]["ok"]) == (1, False, False)
    assert "environment.setup: `exit 3` failed (exit code 3)" in rows["environment"]["happened"]
    code, rows, _ = looked("--repo", str(repo), "--set", "environment.python='3.99'")
    assert (code, "`3.99` is not installed; there are 3." in rows["environment"]["happened"]) == (1, True)
    assert looked("--repo", str(here / "gone"))[0] == 1
    assert not (here / "gone").exists()


def test_a_sandbox_that_is_not_there_stops_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "find_bwrap", lambda: None)
    monkeypatch.setattr(choose, "abi_version", lambda: 0)
    monkeypatch.setattr(choose, "_passed", {})
    code, rows, _ = looked()
    assert (code, rows["sandbox"]["ok"]) == (1, False)
    assert "cannot be confined" in rows["sandbox"]["happened"]
