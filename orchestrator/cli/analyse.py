"""`analyse`: a repository read stage by stage, an improvement plan, a backlog."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.analyse_there import analyse_there, goes_there
from orchestrator.cli.analysis_summary import tell_written
from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    command_group,
    configured,
    fail,
    print_json,
    say,
    told,
)
from orchestrator.cli.console import EventPrinter, printer_for
from orchestrator.cli.early import ends_with_stdin
from orchestrator.cli.logline import safe
from orchestrator.cli.run import CallLogOption, FormatOption, ProviderOption, ScriptOption, interruptible
from orchestrator.domain.words import counted
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.options import AnalyseOptions

if TYPE_CHECKING:
    from orchestrator.analysis.estimate import AnalysisEstimate

RepoArgument = Annotated[
    Path | None, typer.Argument(metavar="REPO", help="The folder to be read, not changed; default: this one.")
]
PrdOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Requirements; default: project.vision.")]
ProfileOption = Annotated[str | None, typer.Option(metavar="NAME", help="A profile of analysis.profiles.")]
StagesOption = Annotated[str | None, typer.Option(metavar="A,B", help="Prompts by their ids, in place of a profile.")]
PromptsOption = Annotated[Path | None, typer.Option(metavar="DIR", help="Prompts of your own; plain Markdown will do.")]
TriageOption = Annotated[bool, typer.Option("--triage", help="A model picks the prompts; else the profile counts.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder of mvp_improvement_plan.md and plan.json.")]
BacklogOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Tasks as stories: .csv, .yaml or .yml.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Write over a backlog that is there.")]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Name of the analysis; default: AN-001 …")]
TheirUrlOption = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="A daemon, for its repository; default: ORCHESTRATOR_URL.")
]
OwnedOption = Annotated[
    bool, typer.Option("--owned", hidden=True, help="End when stdin does.", callback=ends_with_stdin)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show stages, calls and tokens; spend nothing.")]

app = command_group()


@app.command("analyse")
@told
def analyse_command(
    repo: RepoArgument = None,
    prd: PrdOption = None,
    profile: ProfileOption = None,
    stages: StagesOption = None,
    prompts: PromptsOption = None,
    triage: TriageOption = False,
    out: OutOption = Path(),
    to_backlog: BacklogOption = None,
    replace: ReplaceOption = False,
    analysis: IdOption = None,
    provider: ProviderOption = None,
    script: ScriptOption = None,
    call_log: CallLogOption = None,
    dry_run: DryRunOption = False,
    log_format: FormatOption = None,
    url: TheirUrlOption = None,
    owned: OwnedOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a repository stage by stage and write a prioritised improvement plan, and a backlog that `run` takes.

    Without REPO a daemon that is named (--url, ORCHESTRATOR_URL) reads its own; the files are written here.

    Example: orchestrator analyse ./app --prd PRD.md --profile full_review --to-backlog backlog.yaml
    """
    settings, environment = configured(config, [*(overrides or ()), *(["analysis.triage=true"] if triage else [])])
    options = AnalyseOptions(
        repo=repo or Path(), prd=prd, profile=profile, stages=_names(stages), prompts=prompts, out=out,
        to_backlog=to_backlog, replace=replace, analysis=analysis, provider=provider, script=script, call_log=call_log,
    )  # fmt: skip
    if goes_there(environment, url, here={"REPO": repo is not None, "--dry-run": dry_run}, options=options):
        raise typer.Exit(analyse_there(options, settings, environment, url, triage=triage, as_json=as_json))
    if dry_run:
        raise typer.Exit(_dry_run(options, settings, environment, as_json=as_json))
    printer = printer_for(settings, as_json=as_json, log_format=log_format)
    raise typer.Exit(_execute(options, settings, environment, printer, as_json=as_json))


def _names(stages: str | None) -> tuple[str, ...]:
    chosen = tuple(name.strip() for name in (stages or "").split(",") if name.strip())
    if stages is not None and not chosen:
        fail("--stages names no prompt: name some, or leave it out")
    return chosen


def _dry_run(options: AnalyseOptions, settings: Settings, environment: Environment, *, as_json: bool) -> int:
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.wiring.analyse import Analysis

    planned = Analysis(options, settings, environment, tell=say, listen=lambda _event: None).dry_run()
    if as_json:
        print_json(planned.as_json())
    else:
        for line in _estimate_lines(planned):
            print(safe(line))
    return Exit.GOOD


def _execute(
    options: AnalyseOptions, settings: Settings, environment: Environment, printer: EventPrinter, *, as_json: bool
) -> int:
    from orchestrator.wiring.analyse import Analysis

    tell = say if as_json else printer.say
    with printer:
        written = interruptible(Analysis(options, settings, environment, tell=tell, listen=printer.event).go())
    if written is None:
        say("interrupted; the same command goes on where this one stopped")
        return Exit.INTERRUPTED
    return tell_written(written, tell, as_json=as_json)


def _estimate_lines(planned: "AnalysisEstimate") -> Iterator[str]:
    what = "triage picks among" if planned.triage else counted(len(planned.stages), "stage")
    yield f"{planned.profile}: {what}: {', '.join(planned.stages)}"
    left = f"{len(planned.cut)} in part, {len(planned.left_out)} left out"
    yield f"repository: {planned.shown} of {counted(planned.files, 'file')} whole, {left}"
    yield f"calls: about {planned.calls.expected}, never more than {planned.calls.maximal}"
    tokens = planned.tokens
    yield (
        f"tokens: about {tokens.input} in ({tokens.shared} of each call are the same), about {tokens.output} out"
        + (f"; {planned.cost_usd:.2f} USD without a cache" if planned.cost_usd is not None else "")
    )
