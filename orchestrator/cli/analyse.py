"""`analyse`: an improvement plan and a backlog of a repository, stage by stage."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.app.trust import load_settings
from orchestrator.cli.common import Context, Exit, command, command_group, fail, print_json, safe, say, split_names
from orchestrator.cli.console import make_printer
from orchestrator.cli.run import CallLogOption, FormatOption, ProviderOption, ScriptOption, run_interruptible
from orchestrator.core.analysis import ImprovementPlan, StageStatus, TaskPriority
from orchestrator.core.value import counted
from orchestrator.settings.options import AnalyseOptions

if TYPE_CHECKING:
    from orchestrator.analysis.files import Written
    from orchestrator.analysis.stages import AnalysisEstimate

RepoArgument = Annotated[
    Path | None, typer.Argument(metavar="REPO", help="The folder to read; it is not changed; default: this one.")
]
PrdOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Requirements; default: project.vision.")]
ProfileOption = Annotated[str | None, typer.Option(metavar="NAME", help="A profile of analysis.profiles.")]
StagesOption = Annotated[str | None, typer.Option(metavar="A,B", help="Ids of prompts, in place of a profile.")]
PromptsOption = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with your own prompts in Markdown.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder of mvp_improvement_plan.md and plan.json.")]
BacklogOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the tasks as stories: .csv, .yaml or .yml.")
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Overwrite a plan and a backlog that are there.")]
MockOption = Annotated[
    bool, typer.Option("--mock", help="Try it without a model: each stage gets a stand-in that says it is one.")
]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Name of the analysis; default: AN-001 …")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show stages, calls and tokens; spend nothing.")]

app = command_group()


@command(app, "analyse", "url")
def analyse_command(
    context: Context,
    repo: RepoArgument = None,
    prd: PrdOption = None,
    profile: ProfileOption = None,
    stages: StagesOption = None,
    prompts: PromptsOption = None,
    out: OutOption = Path(),
    to_backlog: BacklogOption = None,
    replace: ReplaceOption = False,
    analysis: IdOption = None,
    provider: ProviderOption = None,
    script: ScriptOption = None,
    call_log: CallLogOption = None,
    mock: MockOption = False,
    dry_run: DryRunOption = False,
    log_format: FormatOption = None,
) -> int:
    """Analyse a repository stage by stage: a prioritised improvement plan, and a backlog for `run`.

    Example: orchestrator analyse ./app --prd PRD.md --profile full_review --to-backlog backlog.yaml
    """
    as_json = context.as_json
    if mock and (provider or script or call_log):
        fail("--mock asks no model: leave out --provider, --script and --call-log")
    settings, environment = load_settings(context.config, context.overrides)
    chosen = split_names(stages)
    if stages is not None and not chosen:
        fail("--stages names no prompt: name some, or leave it out")
    options = AnalyseOptions(
        repo=repo or Path(), prd=prd, profile=profile, stages=chosen, prompts=prompts, out=out,
        to_backlog=to_backlog, replace=replace, analysis=analysis, script=script, call_log=call_log, mock=mock,
        provider="scripted" if mock else provider,
    )  # fmt: skip
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.analysis.run import Analysis

    if dry_run:
        planned = Analysis(options, settings, environment, tell=say, listen=lambda _event: None).dry_run()
        _print_estimate(planned, as_json=as_json)
        return Exit.GOOD
    printer = make_printer(settings, as_json=as_json, log_format=log_format)
    tell = say if as_json else printer.say
    with printer:
        written = run_interruptible(Analysis(options, settings, environment, tell=tell, listen=printer.event).go())
    if written is None:
        say("interrupted; the same command resumes it")
        return Exit.INTERRUPTED
    return _report(written, tell, as_json=as_json)


def _print_estimate(planned: "AnalysisEstimate", *, as_json: bool) -> None:
    if as_json:
        print_json(planned.model_dump(mode="json"))
    for line in () if as_json else _estimate_lines(planned):
        print(safe(line))


def _estimate_lines(planned: "AnalysisEstimate") -> Iterator[str]:
    yield f"{planned.profile}: {counted(len(planned.stages), 'stage')}: {', '.join(planned.stages)}"
    left = f"{len(planned.cut)} in part, {len(planned.left_out)} left out"
    yield f"repository: {planned.shown} of {counted(planned.files, 'file')} whole, {left}"
    yield f"calls: about {planned.calls.expected}, never more than {planned.calls.maximal}"
    tokens = planned.tokens
    yield (
        f"tokens: about {tokens.input} in ({tokens.shared} of each call are the same), about {tokens.output} out"
        + (f"; {planned.cost_usd:.2f} USD without a cache" if planned.cost_usd is not None else "")
    )


def _report(written: "Written", tell: Callable[[str], None], *, as_json: bool) -> int:
    """Says what it came to, and with `as_json` prints plan.json. Returns the exit code."""
    from orchestrator.analysis.files import is_whole

    if as_json:
        print_json(written.plan.model_dump(mode="json"))
    for line in _summary(written):
        tell(line)
    return Exit.GOOD if is_whole(written.plan) else Exit.NOT_DONE


def _summary(written: "Written") -> Iterator[str]:
    plan = written.plan
    yield ""
    yield f"Analysis {plan.analysis}, {plan.profile}"
    if plan.mock:
        yield "Mock: no model was asked; summaries and tasks are stand-ins"
    for stage in plan.stages:
        how = counted(stage.tasks, "task") if stage.status is StageStatus.ANSWERED else stage.status.replace("_", " ")
        yield f"  {stage.id:<20} {how}"
        for finding in stage.findings:
            if finding.severity.blocks:
                yield f"      {finding.code}: {finding.message}; {finding.fix}"
    for finding in plan.findings:
        yield f"{'error' if finding.severity.blocks else 'note'}: {finding}; {finding.fix}"
    yield _totals(plan)
    yield f"Plan: {written.plan_path} (and plan.json beside it)"
    if written.backlog_path is not None:
        command = shlex.join(["orchestrator", "run", str(written.backlog_path), "--repo", plan.repo, "--dry-run"])
        yield f"Backlog: {written.backlog_path}; `{command}` shows what it comes to"


def _totals(plan: ImprovementPlan) -> str:
    counts = {priority: sum(task.priority is priority for task in plan.tasks) for priority in TaskPriority}
    by_priority = ", ".join(f"{count} {priority}" for priority, count in counts.items() if count)
    cost = f"{plan.cost_usd:.2f} USD" if plan.cost_usd is not None else "cost unknown"
    return (
        f"{counted(len(plan.tasks), 'task')}{f' ({by_priority})' if by_priority else ''}"
        f"; {counted(plan.calls, 'call')}, "
        f"{plan.tokens.input} tokens in ({plan.tokens.cached} cached), {plan.tokens.output} out, {cost}"
    )
