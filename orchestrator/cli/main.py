"""The console program: a module is imported when one of its commands is used."""

import io
import platform
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from orchestrator import __version__

_TABLE = """
init      init         Write a commented config.yaml, an example backlog.csv and a scripted team that builds it.
trust     init         Trust a configuration that a repository brought, as long as its content stays the same.
doctor    doctor       Check configuration, keys, programs, disk, database and sandbox.
run       run          Build the stories of a backlog in a git repository, until each has an outcome.
serve     serve        Watch backlogs, build their stories, and serve HTTP, until SIGTERM or SIGINT.
board     serve        Serve the board of the state folder to a browser, without a daemon, until Ctrl-C.
demo      run          Run the packaged example from its backlog to a tested application. The team is scripted.
status    status       Show where each story of a sprint is.
show      show         Show a story.
logs      logs         Print the event log of the state folder, or of the daemon at --url (ORCHESTRATOR_URL).
contract  show         Show what a story's developer may write and depend on, who allowed it, and what was refused.
approve   commands     Approve what a story asks about: its plan is built as it is, its conflict is overridden.
reject    commands     Send the plan back to the architect with a comment.
edit      edit         Change a story's plan in $VISUAL or $EDITOR; it is checked and then built.
replan    commands     Plan a story again from the start; a conflict that it waits for or ended in is overridden.
submit    commands     Submit a backlog to the daemon at --url (ORCHESTRATOR_URL).
pause     commands     Pause a sprint or a story until `resume`.
resume    commands     Resume a sprint or a story that was paused.
cancel    commands     Cancel a story or a whole sprint: it ends as cancelled, what depends on it as blocked.
retry     commands     Run again a story that ended without being done, and what it had blocked.
reset     commands     Delete the branches of a story or a sprint and clear its cells.
prune     maintenance  Delete finished sprints and analyses that are older than retention.days.
extract   extract      Extract the value from a model's answer; exit 0: whole, 3: truncated, 4: refused.
apply     apply        Check an action plan, show its changes, ask, and apply it to a folder: all files or none.
analyse   analyse      Analyse a repository stage by stage.
check     check        Check an answer as a run does.
replay    replay       Run a recorded sprint again without a model and show what changed.
"""
COMMANDS = {name: (module, told) for name, module, told in (line.split(None, 2) for line in _TABLE.split("\n")[1:-1])}
"""Command → the module here whose `app` has it, and the beginning of its help, in the order of --help."""


class _Commands(TyperGroup):
    """Imports a command's module when the command is used: those of the daemon and the parsers cost a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Part of click."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Part of click."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"orchestrator.cli.{COMMANDS[cmd_name][0]}")
        return typer.main.get_group(module.app).commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Part of click; the process ends behind it, and no command is used."""
        self._only_names()
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Part of click, for the word behind the program's name; the process ends behind it as well."""
        self._only_names()
        return super().shell_complete(ctx, incomplete)

    def _only_names(self) -> None:
        self.commands = {name: TyperCommand(name, help=told) for name, (_, told) in COMMANDS.items()}


app = typer.Typer(name="orchestrator", cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        from orchestrator.files.source_commit import source_commit

        print(f"orchestrator {__version__}, commit {source_commit()}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version, the commit and Python's version."
        ),
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
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the CLI top: a defect of ours is one message that says where it is
        from orchestrator.core.errors import OrchestratorError, says_full

        if isinstance(error, OrchestratorError):
            _end(f"error: {error.message}")
        if says_full(error):  # of a disk
            _end(f"error: nothing can be written: {error}; free disk space; the same command resumes it", 75)
        # The innermost place says most about a defect.
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        _end(f"internal error, please report it: {type(error).__name__}: {error} ({place})")


def _end(message: str, code: int = 1) -> NoReturn:
    from orchestrator.cli.common import say

    say(message)
    sys.exit(code)
