"""`demo`: the packaged example, built by a scripted team in a fresh folder."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import Exit, JsonOption, SetOption, configured, told
from orchestrator.cli.console import printer_for
from orchestrator.cli.run import FormatOption, execute
from orchestrator.wiring.options import RunOptions

RESULT = "sprint-result"


@told
def demo_command(
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Parent of the fresh folder.")] = Path(),
    log_format: FormatOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the packaged example from its backlog to a tested application. The team is scripted: no model is asked.

    Example: orchestrator demo
    """
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.wiring.demo import check_out, fresh_copy, run_suite

    place = fresh_copy(folder)
    settings, environment = configured(place / "config.yaml", overrides)
    printer = printer_for(settings, as_json=as_json, log_format=log_format)
    printer.say(f"A scripted team (recorded answers, no model is asked) works through {place / 'backlog.csv'}.")
    options = RunOptions(
        backlog=place / "backlog.csv", repo=place / "repo", call_log=place / "calls.jsonl", push_to=RESULT
    )
    again = f"`cd {place} && orchestrator run backlog.csv --push-to {RESULT}`"
    code = execute(options, settings, environment, printer, as_json=as_json, again=again)
    if code != Exit.GOOD:
        raise typer.Exit(code)
    application = place / "application"

    async def look() -> bool:
        await check_out(place / "repo", RESULT, application)
        report = await run_suite(application, settings, environment)
        printer.say(f"The application's whole suite: {report.passed} passed, {report.failed} failed.")
        return report.green

    green = asyncio.run(look())
    printer.say(f"Look around: cd {application} and git log --graph; what happened is explained in {place}/README.md")
    raise typer.Exit(Exit.GOOD if green else Exit.NOT_DONE)
