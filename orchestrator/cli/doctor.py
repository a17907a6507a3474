"""`doctor`: what a run needs, looked at before one is begun."""

import asyncio
from itertools import groupby

import typer

from orchestrator.cli.common import ConfigOption, Exit, JsonOption, SetOption, print_json, say, told
from orchestrator.cli.logline import safe


@told
def doctor_command(config: ConfigOption = None, overrides: SetOption = None, as_json: JsonOption = False) -> None:
    """Look at configuration, keys, programs, disk and database, and say what to do where something is amiss.

    Nothing is run, changed or sent; keys are told as present or absent. Exit code 1 when something would stop a run.

    Example: orchestrator doctor --config config.yaml
    """
    # Imported here: --help needs none of it.
    from orchestrator.wiring.doctor import examine

    rows = asyncio.run(examine(config, overrides or ()))
    wrong = sum(not row.ok for row in rows)
    if as_json:
        print_json({"ok": not wrong, "rows": [row.model_dump(mode="json") for row in rows]})
        raise typer.Exit(Exit.NOT_DONE if wrong else Exit.GOOD)
    width = max(len(row.name) for row in rows)
    for group, own in groupby(rows, key=lambda row: row.group):
        print(group)
        for row in own:
            print(f"  {'ok   ' if row.ok else 'wrong'} {safe(row.name):<{width}}  {safe(row.happened)}")
            if not row.ok:
                print(f"        {'':<{width}}  expected: {safe(row.expected)}")
            if row.todo:
                print(f"        {'':<{width}}  to do: {safe(row.todo)}")
    say(f"{wrong} of {len(rows)} would stop a run" if wrong else "nothing stands in the way of a run")
    raise typer.Exit(Exit.NOT_DONE if wrong else Exit.GOOD)
