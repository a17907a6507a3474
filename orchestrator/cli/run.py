"""`run`: a backlog in, merged stories out."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    configured,
    fail,
    print_json,
    say,
    told,
)
from orchestrator.cli.console import EventPrinter, printer_for
from orchestrator.cli.plan import dry_run_command
from orchestrator.cli.summary import summary_lines
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.options import RunOptions

T = TypeVar("T")

FormatOption = Annotated[str | None, typer.Option("--log-format", metavar="plain|json", help="Form of the log lines.")]
BacklogArgument = Annotated[Path, typer.Argument(metavar="BACKLOG", help="CSV, YAML, JSON, or a folder of Markdown.")]
RepoOption = Annotated[Path | None, typer.Option(help="Repository; created when absent or empty.")]
SprintName = Annotated[str | None, typer.Option(metavar="ID", help="Name of the run; default: the next free one.")]
StoriesOption = Annotated[str | None, typer.Option(metavar="A,B", help="Only these stories.")]
ProviderOption = Annotated[str | None, typer.Option(metavar="NAME", help="Who answers: scripted, anthropic, openai.")]
ScriptOption = Annotated[Path | None, typer.Option(metavar="FILE", help="The scripted team's replies.")]
CallLogOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Append a line per paid reply.")]
PlanOption = Annotated[
    list[str] | None,
    typer.Option(metavar="[STORY=]FILE", help="A person's task plan in place of the architect's; repeatable."),
]
PushOption = Annotated[str | None, typer.Option(metavar="BRANCH", help="Create or fast-forward it at the end.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="An unmet dependency outside the sprint is an error.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show waves, problems and calls; spend nothing.")]


@told
def run_command(
    backlog: BacklogArgument,
    repo: RepoOption = None,
    sprint: SprintName = None,
    stories: StoriesOption = None,
    provider: ProviderOption = None,
    script: ScriptOption = None,
    call_log: CallLogOption = None,
    plan: PlanOption = None,
    push_to: PushOption = None,
    strict: StrictOption = False,
    dry_run: DryRunOption = False,
    log_format: FormatOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Work through a backlog in a git repository until each story has an outcome.

    Example: orchestrator run backlog.csv --repo ./app --provider anthropic --set provider.model=MODEL-ID

    Example: orchestrator run backlog.csv --repo ./app --stories US-007 --plan US-007=plans/rounding.md
    """
    settings, environment = configured(config, overrides)
    chosen = tuple(name.strip() for name in (stories or "").split(",") if name.strip())
    if stories is not None and not chosen:
        fail("--stories names no story: name some, or leave it out to run all")
    options = RunOptions(
        backlog=backlog, repo=repo, sprint=sprint, stories=chosen, provider=provider, script=script,
        call_log=call_log, push_to=push_to, strict=strict, plans=tuple(plan or ()),
    )  # fmt: skip
    if dry_run:
        raise typer.Exit(dry_run_command(options, settings, environment, as_json=as_json))
    printer = printer_for(settings, as_json=as_json, log_format=log_format)
    raise typer.Exit(execute(options, settings, environment, printer, as_json=as_json))


def execute(
    options: RunOptions,
    settings: Settings,
    environment: Environment,
    printer: EventPrinter,
    *,
    as_json: bool,
    again: str = "the same command",
) -> int:
    """Run the sprint and print how it ended; the exit code. `again` is what goes on with an interrupted one."""
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.sprint.report import exit_code
    from orchestrator.wiring.run import Run
    from orchestrator.wiring.tracing import traced

    tell = say if as_json else printer.say
    with printer, traced(environment, printer.event) as listen:
        run = Run(options, settings, environment, tell=tell, listen=listen, waits=printer.waits)
        result = interruptible(run.go())
    if printer.closed and not as_json:
        say("nobody read the output to its end; the sprint went on, and `orchestrator logs` shows all of it")
    if result is None:
        say(f"interrupted; {again} goes on where this one stopped")
        return Exit.INTERRUPTED
    if as_json:
        print_json(result.report.model_dump(mode="json"))
    for line in summary_lines(result):
        (say if as_json else printer.say)(line)
    return Exit.NOT_DONE if result.unpushed else exit_code(result.report)


def interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` on a loop of its own; None when SIGINT or SIGTERM ended it (everything started is ended first)."""

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        return None
