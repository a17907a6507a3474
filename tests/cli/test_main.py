"""The top of the command line: help, exit codes, and one message for each error that ends a command."""

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli.common import Exit, explain, fail, find_own_command, print_json, report_errors
from orchestrator.cli.main import COMMANDS, app, main
from orchestrator.core.errors import BacklogError, ConfigError, WorkspaceError
from orchestrator.core.finding import Where, major

GROUPS = {"answers": ("export", "replay"), "check": ("breakdown", "delivery", "suite", "plan")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_an_example(name: str) -> None:
    for words in [[name, one] for one in GROUPS.get(name, ())] or [[name]]:
        shown = CliRunner().invoke(app, [*words, "--help"])
        assert (shown.exit_code, f"Example: orchestrator {' '.join(words)}" in shown.stdout) == (0, True), words


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        asked = {"_ORCHESTRATOR_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return CliRunner().invoke(app, prog_name="orchestrator", env=asked).stdout.split()

    assert completed("orchestrator st") == ["status"]
    assert completed("orchestrator run --rep") == ["--repo", "--replay"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WorkspaceError("git said no"), 1, "error: git said no\n"),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("one by none"), 1, "internal error, please report it: ZeroDivisionError: one by none"),
    ],
)
def test_what_ends_a_command_is_one_message(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    def program() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        main(program)
    assert ended.value.code == code
    stderr = capsys.readouterr().err
    assert stderr.startswith(said)
    assert stderr.count("\n") == bool(said)


def test_a_users_error_is_one_message_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    @report_errors
    def command(name: str) -> None:
        raise ConfigError(f"unknown {name}")

    with pytest.raises(typer.Exit) as ended:
        command("thing")
    assert ended.value.exit_code == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: unknown thing\n")
    assert command.__name__ == "command"


def test_other_errors_pass_through_for_the_top_to_tell() -> None:
    @report_errors
    def command() -> None:
        raise WorkspaceError("git said no")

    with pytest.raises(WorkspaceError):
        command()


def test_findings_that_the_message_does_not_hold_are_listed_with_what_to_do() -> None:
    known = major("backlog.x", "row 1 is wrong")
    more = major("backlog.y", "row 2 too", where=Where(file="b.csv", line=3), fix="mend it")
    assert explain(BacklogError("row 1 is wrong", findings=[known, more])) == (
        "row 1 is wrong\n  [major] backlog.y (b.csv:3): row 2 too; mend it"
    )


def test_codes_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4, 75, 130]
    print_json({"text": "ü"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"text": "ü"}
    assert "ü" in out
    with pytest.raises(typer.Exit) as ended:
        fail("cut", Exit.TRUNCATED)
    assert ended.value.exit_code == 3


def test_the_command_that_is_named_is_one_that_the_shell_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sys.executable).with_name("orchestrator")
    (tmp_path / "orchestrator").symlink_to(own)  # as uv and pipx put it on PATH
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_own_command() == "orchestrator"
    (tmp_path / "orchestrator").unlink()
    assert find_own_command() == str(own)
    (tmp_path / "orchestrator").write_text("#!/bin/sh\n")  # another installation's
    (tmp_path / "orchestrator").chmod(0o755)
    assert find_own_command() == str(own)
