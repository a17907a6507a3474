"""`doctor`: checks what a run needs before one is started."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, command, command_group, print_json, safe, say
from orchestrator.cli.run import run_interruptible
from orchestrator.core.daemon import DoctorRow
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import listening
from orchestrator.core.suite import TRYING

app = command_group()


@command(app, "doctor")
def doctor_command(
    context: Context,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Also try harmless hostile actions in every sandbox tier.")
    ] = False,
    repo: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also install and test this repository's last commit, here."),
    ] = None,
) -> int:
    """Check configuration, keys, programs, disk, database and sandbox, and say what to do about problems.

    Nothing is changed or sent, and nothing of a project is run, unless --repo is given: that installs and tests a copy
    of its last commit. Keys are shown as present or absent. Exit code 1: something would stop a run, or a tier does not
    hold what it promises. A named daemon (--url, ORCHESTRATOR_URL) checks its own machine; otherwise, and with --repo,
    this machine is checked.

    Example: orchestrator doctor --sandbox

    Example: orchestrator doctor --repo ./app --json
    """
    more: dict[str, object] = {}
    if repo is None:
        rows = _rows(context, sandbox=sandbox)
    else:
        # Imported here: --help needs none of it.
        from orchestrator.maintenance.doctor import examine_project

        say(TRYING)
        with _announcing():
            look = run_interruptible(examine_project(repo, context.config, context.overrides, sandbox=sandbox))
        if look is None:
            return Exit.INTERRUPTED
        rows, more = [*look.rows], look.model_dump(mode="json", exclude={"rows"})
    wrong = sum(not row.ok for row in rows)
    if context.as_json:
        print_json({"ok": not wrong, "rows": [row.model_dump(mode="json") for row in rows], **more})
        return Exit.NOT_DONE if wrong else Exit.GOOD
    width = max(len(row.name) for row in rows)
    for group, own in groupby(rows, key=lambda row: row.group):
        print(group)
        for row in own:
            print(f"  {'ok   ' if row.ok else 'wrong'} {safe(row.name):<{width}}  {safe(row.happened)}")
            if not row.ok:
                print(f"        {'':<{width}}  expected: {safe(row.expected)}")
            if row.todo:
                print(f"        {'':<{width}}  to do: {safe(row.todo)}")
    say(f"{wrong} of {len(rows)} checks failed" if wrong else "nothing stands in the way of a run")
    return Exit.NOT_DONE if wrong else Exit.GOOD


@contextmanager
def _announcing() -> Iterator[None]:
    """Says what lasts, with its end; on a terminal also for how long it has lasted."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    from orchestrator.engine.activities import Announcer, told_end

    words = TextColumn("{task.description}", markup=False)
    bars = Progress(SpinnerColumn(), words, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    shown: dict[str, TaskID] = {}

    async def announce(what: str, seconds: float | None) -> None:
        say(safe(what if seconds is None else told_end(what, seconds)))
        if seconds is None:
            shown[what] = bars.add_task(safe(what), total=None)
        elif what in shown:
            bars.remove_task(shown.pop(what))

    with bars, listening(Announcer(announce)):
        yield


def _rows(context: Context, *, sandbox: bool) -> list[DoctorRow]:
    try:
        daemon = context.daemon
    except ConfigError:
        if context.url is not None:
            raise
        daemon = None  # what is wrong with the configuration is a row
    if daemon is not None:
        return daemon.examine(sandbox=sandbox)
    from orchestrator.maintenance.doctor import examine

    return asyncio.run(examine(context.config, context.overrides, sandbox=sandbox))
