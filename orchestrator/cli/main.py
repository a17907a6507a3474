"""The console program: one typer application, commands registered from their modules."""

import io
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import __version__
from orchestrator.cli.analyse import analyse_command
from orchestrator.cli.answers import answers_app
from orchestrator.cli.apply import apply_command
from orchestrator.cli.backup import backup_command, restore_command
from orchestrator.cli.check import check_app
from orchestrator.cli.common import Exit, say
from orchestrator.cli.control import cancel_command, pause_command, resume_command, retry_command
from orchestrator.cli.decide import approve_command, reject_command
from orchestrator.cli.demo import demo_command
from orchestrator.cli.doctor import doctor_command
from orchestrator.cli.edit import edit_command
from orchestrator.cli.extract import extract_command
from orchestrator.cli.init import init_command
from orchestrator.cli.inspect import contract_command, show_command
from orchestrator.cli.logs import logs_command
from orchestrator.cli.prune import prune_command
from orchestrator.cli.replan import replan_command
from orchestrator.cli.reset import reset_command
from orchestrator.cli.run import run_command
from orchestrator.cli.serve import serve_command
from orchestrator.cli.status import status_command
from orchestrator.cli.submit import submit_command
from orchestrator.errors import OrchestratorError

app = typer.Typer(
    name="orchestrator", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Drives an architect, a developer and a tester over a story backlog, inside a git repository.",
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


for command_name, command in (
    ("init", init_command),
    ("doctor", doctor_command),
    ("run", run_command),
    ("serve", serve_command),
    ("demo", demo_command),
    ("status", status_command),
    ("show", show_command),
    ("logs", logs_command),
    ("contract", contract_command),
    ("approve", approve_command),
    ("reject", reject_command),
    ("edit", edit_command),
    ("replan", replan_command),
    ("submit", submit_command),
    ("pause", pause_command),
    ("resume", resume_command),
    ("cancel", cancel_command),
    ("retry", retry_command),
    ("reset", reset_command),
    ("prune", prune_command),
    ("backup", backup_command),
    ("restore", restore_command),
    ("extract", extract_command),
    ("apply", apply_command),
    ("analyse", analyse_command),
):
    app.command(command_name)(command)
app.add_typer(check_app, name="check")
app.add_typer(answers_app, name="answers")


def main(program: Callable[[], object] = app) -> None:
    """Run the command line; an error that no command turned into a message becomes one here."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model's text may hold what no encoding can print; its escape is shown, which is valid in JSON too.
            stream.reconfigure(errors="backslashreplace")
    try:
        program()
    except OrchestratorError as error:
        say(f"error: {error.message}")
        sys.exit(Exit.NOT_DONE)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the CLI top: a defect of ours is one message that says where it is
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        say(f"internal error, please report it: {type(error).__name__}: {error} ({place})")
        sys.exit(Exit.NOT_DONE)
