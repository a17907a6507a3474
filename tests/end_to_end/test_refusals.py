"""What cannot be run is refused in one message that says what to do: exit 2, no traceback, nothing made."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.support import make_repo, plain_environment, run_cli

HEADER = "Story_ID,Title,Dependencies,Acceptance_Criteria,Priority,Sprint_ID,Execution_Status\n"
ROWS = "A-1,x,,,,,\nA-2,x,A-1,,,,\nA-3,x,,,,,\n"
ENTRY = '{"persona":"mike","story":"A-1","purpose":"breakdown"}\n'
Cli = Callable[..., Result]

BACKLOGS: dict[str, tuple[str | bytes, Sequence[str]]] = {
    "cycle": (f"{HEADER}A-1,x,A-3,,,,\nA-2,x,A-1,,,,\nA-3,x,A-2,,,,\n", ["A-1 → A-3 → A-2 → A-1", "line 2", "line 4"]),
    "unknown": (f"{HEADER}A-1,x,A-9,,,,\n", ["A-1 (line 2) depends on A-9", "did you mean A-1?"]),
    "doubled": (f"{HEADER}A-1,x,,,,,\nA-2,x,,,,,\nA-1,x,,,,,\n", ["A-1 (line 4)", "A-1 (line 2)", "another id"]),
    "without": (f"{HEADER}A-1,x,,,,,\n,x,,,,,\n", ["line 3 has no Story_ID"]),
    "reserved": (f"{HEADER}result,x,,,,,\n", ["`result` is reserved", "rename"]),
    "columns": ("Foo,Bar\n1,2\n", ["no column Story_ID", "Foo, Bar"]),
    "empty": ("", ["is empty"]),
    "rowless": (HEADER, ["no rows"]),
    "latin": (f"{HEADER}A-1,caf\xe9,,,,,\n".encode("latin-1"), ["not UTF-8", "byte 0xe9 in line 2"]),
    "wide": (f"{HEADER}A-1,x,,,,,\n".encode("utf-16"), ["not UTF-8"]),
    "unclosed": (f'{HEADER}A-1,"x,,,,,\n', ["starts in line 2 is never closed"]),
}
OPTIONS: dict[tuple[str, ...], Sequence[str]] = {
    ("--stories", "A-1,A-O2"): ["no story 'A-O2'", "did you mean A-2?"],
    ("--stories", " , "): ["names no story"],
    ("--sprint", "../x"): ["bad sprint id '../x'"],
    ("--stories", "A-2", "--strict"): ["A-2 (line 3) depends on A-1 (line 2)", "not in this run"],
    ("--set", "build.max_atempts=3"): ["build.max_atempts", "did you mean build.max_attempts?"],
    ("--set", "build.max_attempts=none at all"): ["build.max_attempts", "integer", "none at all"],
    ("--set", "build"): ["--set name.of.setting=VALUE"],
    ("--set", "build=3"): ["build holds names and values"],
    ("--config", "broken.yaml"): ["broken.yaml, line 3"],
    ("--config", "unknown.yaml"): ["build.max_attemps", "did you mean build.max_attempts?"],
    ("--config", "none.yaml"): ["none.yaml", "No such file"],
    ("--provider", "claude"): ["unknown provider claude", "scripted"],
    ("--script", "none.jsonl"): ["none.jsonl", "No such file"],
    ("--call-log", "/nonexistent/calls.jsonl"): ["call log /nonexistent/calls.jsonl"],
    ("--log-format", "xml"): ["--log-format xml"],
    ("--repo", "files"): ["files is no git repository"],
    ("--repo", "ok.csv"): ["cannot be used as a repository"],
    ("--record", "files"): ["files is not empty"],
    ("--set", "personas.alex.max_iterations=3"): ["only mike and reviewer have iterations"],
    ("--set", "prompts.dir=none"): ["prompt folder", "does not exist"],
    ("--set", "personas.alex={provider: openai, model: x, base_url: no}"): ["is no http(s) address"],
}


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process, in a folder with a good backlog and an empty script."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.csv").write_text(HEADER + ROWS)
    (tmp_path / "team.jsonl").write_text("")
    (tmp_path / "broken.yaml").write_text("build:\n  max_attempts: 3\n bad: [\n")
    (tmp_path / "unknown.yaml").write_text("build:\n  max_attemps: 3\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mine.txt").write_text("mine\n")
    environment = {name: None for name in os.environ} | {**plain_environment()}

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(app, list(args), env=environment)

    return invoke


def refused(result: Result, *said: str) -> None:
    """One message on stderr with these texts, exit 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("error:") == 1, result.stderr
    for text in said:
        assert text in result.stderr, result.stderr


def test_a_backlog_that_cannot_be_run(cli: Cli, tmp_path: Path) -> None:
    for name, (content, said) in BACKLOGS.items():
        (tmp_path / f"{name}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        refused(cli("run", f"{name}.csv", "--repo", "new"), *said)
        assert not (tmp_path / "new").exists(), "nothing is made for a backlog that cannot be run"
    refused(cli("run", "absent.csv"), "absent.csv", "No such file")
    refused(cli("run", "."), "no story files")


def test_the_dry_run_of_a_bad_backlog_prints_its_object_all_the_same(cli: Cli, tmp_path: Path) -> None:
    for name, (content, said) in BACKLOGS.items():
        (tmp_path / f"{name}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        result = cli("run", f"{name}.csv", "--dry-run", "--json")
        assert result.exit_code == 2
        shown = json.loads(result.stdout)
        assert list(shown) == ["stories", "waves", "problems", "calls"]
        assert set(shown["calls"]) == {"expected", "maximal"}
        assert {problem["severity"] for problem in shown["problems"]} & {"major", "critical"}
        keys = {"code", "severity", "message", "where", "fix", "ask"}
        assert all(set(problem) == keys for problem in shown["problems"])
        for text in said:
            assert text in result.stderr, (name, result.stderr)
    cycle = f"{HEADER}A-1,x,A-2,,,,\nA-2,x,A-1,,,,\nB-1,x,,,,,\nB-2,x,B-1,,,,\n"
    (tmp_path / "half.csv").write_text(cycle)
    assert json.loads(cli("run", "half.csv", "--dry-run", "--json").stdout)["waves"] == [["B-1"], ["B-2"]]
    (tmp_path / "outside.csv").write_text(f"{HEADER}A-1,x,,,,,\nA-2,x,A-1,,,,\n")
    strict = cli("run", "outside.csv", "--dry-run", "--json", "--strict", "--stories", "A-2")
    assert strict.exit_code == 2
    assert "A-2 (line 3) depends on A-1 (line 2)" in strict.stderr
    problems = json.loads(strict.stdout)["problems"]
    assert {
        problem["code"]: problem["severity"] for problem in problems if problem["code"] != "backlog.no_criteria"
    } == {problems[0]["code"]: "major"}


def test_options_configuration_and_scripts_that_cannot_be_used(cli: Cli, tmp_path: Path) -> None:
    for args, said in OPTIONS.items():
        script = () if "--script" in args else ("--script", "team.jsonl")
        repo = () if "--repo" in args else ("--repo", "new")
        refused(cli("run", "ok.csv", *args, *script, *repo), *said)
        if args[0] != "--call-log":  # a dry run writes none, and its file is made by trying
            refused(cli("run", "ok.csv", "--dry-run", *args, *script, *repo), *said)


def test_a_model_key_or_script_that_is_missing_ends_a_run_and_is_told_by_a_dry_run(cli: Cli) -> None:
    """A dry run needs none of them."""
    named = ("--provider", "anthropic", "--set", "provider.model=x")
    for args, told in {
        (): "--script FILE",
        named[:2]: "provider.model=ID",
        named: "ANTHROPIC_API_KEY",
        ("--script", "team.jsonl", "--set", "personas.alex={provider: azure, model: x}"): "AZURE_OPENAI_ENDPOINT",
    }.items():
        refused(cli("run", "ok.csv", *args), told)
        dry = cli("run", "ok.csv", "--dry-run", *args)
        assert (dry.exit_code, dry.stderr) == (0, "")
        assert "3 stories in 2 waves" in dry.stdout
        assert dry.stdout.splitlines()[-1].startswith("not ready to run: the provider ")
        assert told in dry.stdout
        assert told in json.loads(cli("run", "ok.csv", "--dry-run", "--json", *args).stdout)["missing"]
    assert "missing" not in json.loads(cli("run", "ok.csv", "--dry-run", "--json", "--script", "team.jsonl").stdout)


def test_the_process_itself(tmp_path: Path) -> None:
    """Once as a user meets it: a real process, its exit code and streams."""
    (tmp_path / "cycle.csv").write_text(str(BACKLOGS["cycle"][0]))
    done = run_cli(["run", "cycle.csv", "--dry-run", "--json"], tmp_path)
    assert (done.returncode, list(json.loads(done.stdout))) == (2, ["stories", "waves", "problems", "calls"])
    assert "A-1 → A-3 → A-2 → A-1" in done.stderr
    make_repo(tmp_path / "repo", {"app.py": "APP = 1\n"})
    (tmp_path / "ok.csv").write_text(HEADER + ROWS)
    (tmp_path / "team.jsonl").write_text(ENTRY)
    args = ["run", "ok.csv", "--repo", "repo", "--script", "team.jsonl", "--push-to", "main"]
    done = run_cli(args, tmp_path)
    assert (done.returncode, done.stdout.count("turn")) == (2, 0)
    assert "checked out" in done.stderr
    assert "Traceback" not in done.stderr
