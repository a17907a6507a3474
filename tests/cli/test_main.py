"""The top of the command line: whatever ends a command, its user sees a message."""

import pytest

from orchestrator.cli.main import main
from orchestrator.core.errors import WorkspaceError


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
