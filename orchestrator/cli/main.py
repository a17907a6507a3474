"""The console program: a module is imported when one of its commands is used."""

import io
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator import __version__
from orchestrator.core.errors import OrchestratorError

MODULES = {
    "init": "init",
    "doctor": "doctor",
    "run": "run",
    "serve": "serve",
    "demo": "run",
    "status": "status",
    "show": "show",
    "logs": "logs",
    "contract": "show",
    "approve": "commands",
    "reject": "commands",
    "edit": "edit",
    "replan": "commands",
    "submit": "commands",
    "pause": "commands",
    "resume": "commands",
    "cancel": "commands",
    "retry": "commands",
    "reset": "commands",
    "prune": "maintenance",
    "backup": "maintenance",
    "restore": "maintenance",
    "extract": "answers",
    "apply": "apply",
    "analyse": "analyse",
    "check": "check",
    "answers": "answers",
}
"""Command → the module here whose `app` has it, in the order of --help."""


class _Commands(TyperGroup):
    """Imports a command's module when it is asked for: those of the daemon and the parsers cost a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Part of click."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Part of click."""
        if cmd_name not in MODULES:
            return None
        module = import_module(f"orchestrator.cli.{MODULES[cmd_name]}")
        return typer.main.get_group(module.app).commands[cmd_name]


app = typer.Typer(
    name="orchestrator", cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        print(f"orchestrator {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Drives an architect, a developer and a tester over a story backlog, inside a git repository."""


def main(program: Callable[[], object] = app) -> None:
    """Runs the command line; an error that no command turned into a message becomes one here."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model's text may hold what no encoding can print; its escape is shown, which is valid in JSON too.
            stream.reconfigure(errors="backslashreplace")
    try:
        program()
    except OrchestratorError as error:
        _end(f"error: {error.message}")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the CLI top: a defect of ours is one message that says where it is
        # The innermost place says most about a defect.
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        _end(f"internal error, please report it: {type(error).__name__}: {error} ({place})")


def _end(message: str) -> None:
    from orchestrator.cli.common import Exit, say

    say(message)
    sys.exit(Exit.NOT_DONE)
