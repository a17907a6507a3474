"""What every command shares: one message for a user's error, no traceback, the exit code."""

import json

import pytest
import typer

from orchestrator.cli.common import Exit, explain, fail, print_json, told
from orchestrator.core.errors import BacklogError, ConfigError, WorkspaceError
from orchestrator.core.finding import Where, major


def test_a_users_error_is_one_message_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    @told
    def command(name: str) -> None:
        raise ConfigError(f"unknown {name}")

    with pytest.raises(typer.Exit) as ended:
        command("thing")
    assert ended.value.exit_code == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: unknown thing\n")
    assert command.__name__ == "command"


def test_other_errors_pass_through_for_the_top_to_tell() -> None:
    @told
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
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4, 130]
    print_json({"text": "ü"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"text": "ü"}
    assert "ü" in out
    with pytest.raises(typer.Exit) as ended:
        fail("cut", Exit.TRUNCATED)
    assert ended.value.exit_code == 3
