"""`doctor`: checks what a run needs before one is started."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, command, command_group, print_json, safe, say
from orchestrator.cli.run import run_interruptible
from orchestrator.core.suite import TRYING

app = command_group()


@command(app, "doctor", "url")
def doctor_command(
    context: Context,
    repo: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also install and test this repository's last commit, here."),
    ] = None,
) -> int:
    """Check configuration, keys, programs, disk, database and sandbox, and say what to do about problems.

    Nothing is changed or sent, and nothing of a project is run, unless --repo is given: that installs and tests a copy
    of its last commit. Keys are shown as present or absent. Exit code 1: something would stop a run.

    Example: orchestrator doctor

    Example: orchestrator doctor --repo ./app --json
    """
    # Imported here: --help needs none of it.
    from orchestrator.maintenance.doctor import examine

    if repo is not None:
        say(TRYING)
    examined = run_interruptible(examine(context.config, context.overrides, repo))
    if examined is None:
        return Exit.INTERRUPTED
    wrong = sum(not row.ok for row in examined.rows)
    if context.as_json:
        print_json({"ok": not wrong, **examined.model_dump(mode="json", exclude_none=repo is None)})
        return Exit.NOT_DONE if wrong else Exit.GOOD
    width = max(len(row.name) for row in examined.rows)
    for row in examined.rows:
        print(f"{'ok   ' if row.ok else 'wrong'} {safe(row.name):<{width}}  {safe(row.happened)}")
        if row.todo:
            print(f"      {'':<{width}}  to do: {safe(row.todo)}")
    say(f"{wrong} of {len(examined.rows)} checks failed" if wrong else "nothing stands in the way of a run")
    return Exit.NOT_DONE if wrong else Exit.GOOD
