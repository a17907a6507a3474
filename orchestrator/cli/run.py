"""`run`: a backlog in, merged stories out, or with --dry-run what that would be; `demo`: the packaged example."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from orchestrator.app.histories import is_sprint_finished, read_histories
from orchestrator.app.plan_files import judge_by_rules, read_plans
from orchestrator.app.spending import with_spending
from orchestrator.app.sprints import find_resumable_sprint
from orchestrator.backlogs.files import read_backlog
from orchestrator.cli.common import Context, Exit, command, command_group, fail, print_json, safe, say, split_names
from orchestrator.cli.console import EventPrinter, make_printer, status_word
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.finding import blocking, decisive
from orchestrator.core.sprint import StoryReport, StoryStatus
from orchestrator.core.story import BacklogContent, Story
from orchestrator.core.value import counted, cut_at_word, told_calls
from orchestrator.settings import Environment, ProviderName, Settings, load
from orchestrator.settings.options import RunOptions, default_repository
from orchestrator.settings.prices import AS_OF
from orchestrator.sprint.dry_run import DryRun, JudgedTasks, dry_run
from orchestrator.sprint.selection import select
from orchestrator.storage.state_folder import StateFolder

if TYPE_CHECKING:
    from orchestrator.app.sprint_reader import RunResult

app = command_group()
T = TypeVar("T")
CAUSE_CHARS = 300
"""Of a finding in the last lines of a run."""
RESULT = "sprint-result"
"""Branch of the demo's result."""

FormatOption = Annotated[str | None, typer.Option("--log-format", metavar="plain|json", help="Form of the log lines.")]
BacklogArgument = Annotated[Path, typer.Argument(metavar="BACKLOG", help="CSV, YAML, JSON, or a folder of Markdown.")]
RepoOption = Annotated[Path | None, typer.Option(help="Repository; created if absent or empty.")]
SprintName = Annotated[str | None, typer.Option(metavar="ID", help="Id of the sprint; default: the next free one.")]
StoriesOption = Annotated[str | None, typer.Option(metavar="A,B", help="Only these stories.")]
ProviderOption = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"Who answers: {', '.join(get_args(ProviderName))}.")
]
ScriptOption = Annotated[Path | None, typer.Option(metavar="FILE", help="The scripted team's replies.")]
RecordOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a recording of the sprint there when the run ends.")
]
ReplayOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The recording there answers in place of all models.")
]
CallLogOption = Annotated[Path | None, typer.Option(metavar="FILE", help="File that gets a line per paid reply.")]
PlanOption = Annotated[
    list[str] | None,
    typer.Option(metavar="[STORY=]FILE", help="A person's task plan in place of the architect's; repeatable."),
]
PushOption = Annotated[str | None, typer.Option(metavar="BRANCH", help="Branch to create or fast-forward at the end.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="An unmet dependency outside the sprint is an error.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show waves, problems, calls and cost; spend nothing.")]


@command(app, "run", "url")
def run_command(
    context: Context,
    backlog: BacklogArgument,
    repo: RepoOption = None,
    sprint: SprintName = None,
    stories: StoriesOption = None,
    provider: ProviderOption = None,
    script: ScriptOption = None,
    call_log: CallLogOption = None,
    record: RecordOption = None,
    replay: ReplayOption = None,
    plan: PlanOption = None,
    push_to: PushOption = None,
    strict: StrictOption = False,
    dry_run: DryRunOption = False,
    log_format: FormatOption = None,
) -> int:
    """Build the stories of a backlog in a git repository, until each has an outcome.

    Example: orchestrator run backlog.csv --repo ./app --provider anthropic --set provider.model=MODEL-ID

    Example: orchestrator run backlog.csv --repo ./app --stories US-007 --plan US-007=plans/rounding.md
    """
    settings, environment, as_json = context.settings, context.environment, context.as_json
    chosen = split_names(stories)
    if stories is not None and not chosen:
        fail("--stories names no story: name some, or leave it out to run all")
    if script is not None and replay is not None:
        fail("--script and --replay both answer: leave one out")
    options = RunOptions(
        backlog=backlog, repo=repo, sprint=sprint, stories=chosen, provider=provider, script=script,
        call_log=call_log, record=record, replay=replay, push_to=push_to, strict=strict, plans=tuple(plan or ()),
        waits=not as_json and sys.stdin.isatty() and sys.stdout.isatty(),
    )  # fmt: skip
    if dry_run:
        return dry_run_command(options, settings, environment, as_json=as_json)
    printer = make_printer(settings, as_json=as_json, log_format=log_format)
    return execute(options, settings, environment, printer, as_json=as_json)


def execute(
    options: RunOptions,
    settings: Settings,
    environment: Environment,
    printer: EventPrinter,
    *,
    as_json: bool,
    again: str = "the same command",
) -> int:
    """Runs the sprint and prints how it ended. Returns the exit code. `again` is what resumes an interrupted one."""
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.app.run import Run
    from orchestrator.reports.report import exit_code
    from orchestrator.telemetry.tracing import traced

    tell = say if as_json else printer.say
    with printer, traced(environment, printer.event) as listen:
        run = Run(options, settings, environment, tell=tell, listen=listen, waits=printer.waits, watch=printer.watch)
        result = run_interruptible(run.go())
    if printer.closed and not as_json:
        say("the output was not read to its end; the sprint went on, and `orchestrator logs` shows all of it")
    if result is None:
        say(f"interrupted; {again} goes on where this one stopped")
        return Exit.INTERRUPTED
    if as_json:
        print_json(result.report.model_dump(mode="json"))
    for line in format_summary(result):
        (say if as_json else printer.say)(line)
    return Exit.NOT_DONE if result.unpushed else exit_code(result.report)


def run_interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Runs `work` on a loop of its own. Returns None when SIGINT or SIGTERM ended it, after all that it started."""

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


@command(app, "demo", "url", "config")
def demo_command(
    context: Context,
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Parent of the fresh folder.")] = Path(),
    log_format: FormatOption = None,
) -> int:
    """Run the packaged example from its backlog to a tested application. The team is scripted: no model is asked.

    Example: orchestrator demo
    """
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.app.init import check_out, fresh_copy, run_suite

    place = fresh_copy(folder)
    settings, environment = load(place / "config.yaml", context.overrides)
    as_json = context.as_json
    printer = make_printer(settings, as_json=as_json, log_format=log_format)
    printer.say(f"A scripted team (recorded answers, no model is asked) works through {place / 'backlog.csv'}.")
    options = RunOptions(
        backlog=place / "backlog.csv", repo=place / "repo", call_log=place / "calls.jsonl", push_to=RESULT
    )
    again = f"`cd {place} && orchestrator run backlog.csv --push-to {RESULT}`"
    code = execute(options, settings, environment, printer, as_json=as_json, again=again)
    # There is no application to look at.
    if code != Exit.GOOD:
        return code
    application = place / "application"

    async def look() -> bool:
        await check_out(place / "repo", RESULT, application)
        report = await run_suite(application, settings, environment)
        printer.say(f"The application's whole suite: {report.passed} passed, {report.failed} failed.")
        return report.green

    green = asyncio.run(look())
    printer.say(f"Look around: cd {application} and git log --graph; what happened is explained in {place}/README.md")
    return Exit.GOOD if green else Exit.NOT_DONE


def format_summary(result: "RunResult") -> Iterator[str]:
    """Yields a line per story, the totals, what to do about open stories, and where the result is."""
    report = result.report
    yield ""
    yield f"Sprint {report.sprint}"
    for story in report.stories:
        yield from _story_lines(story)
    yield _totals_line(result)
    yield from _next_step(report.stories)
    if result.paused:
        still_open = any(not story.status.final for story in report.stories)
        goes_on = " The same command then resumes the open stories." if still_open else ""
        yield f"Paused: {result.paused}.{goes_on}"
    yield f"Report: {result.report_path.with_suffix('.md')} (and report.json beside it)"
    if not any(story.status is StoryStatus.DONE for story in report.stories):
        yield f"No story is done, so there is no result; {result.repo} is as it was"
        return
    if not result.pushed:
        yield f"{result.repo} is as it was; in it, the last line and then `git merge FETCH_HEAD` take the result over"
    if result.unpushed:
        yield f"Not pushed: {result.unpushed}"
    if result.pushed:
        yield f"Result: branch {result.pushed} of {result.repo}"
    else:
        yield f"Result: {result.fetch_command}"


def _story_lines(story: StoryReport) -> Iterator[str]:
    tests = f"{story.tests.passed}/{story.tests.run} tests" if story.tests.run else "no tests run"
    yield (
        f"  {story.id:<12} {status_word(story.status):<16} {counted(len(story.tasks), 'task')}, {tests}, "
        f"{told_calls(story.calls, story.looks)}, {story.duration_s:.1f} s"
    )
    if story.status is StoryStatus.DONE or not story.status.final:
        return  # what is open waits for what the pause says below
    first = decisive(story.findings)
    if first is None:
        return
    others = [one for one in blocking(story.findings) if one is not first]
    # Beside the cause, the last ones are what the story ended with.
    for finding in (first, *others[-2:]):
        place = f" ({finding.where.file})" if finding.where.file else ""
        yield f"      {finding.code}{place}: {cut_at_word(finding.message.partition(chr(10))[0], CAUSE_CHARS)}"
    if first.fix:
        yield f"      → {cut_at_word(first.fix, CAUSE_CHARS)}"


def _next_step(stories: Sequence[StoryReport]) -> Iterator[str]:
    """Yields what to do about stories that are not done; a blocked one only waits for another."""
    ended = [s for s in stories if s.status.final and s.status not in {StoryStatus.DONE, StoryStatus.BLOCKED}]
    if ended:
        name = ended[0].id
        yield f"Why: `orchestrator show {name}`. To try again: `orchestrator reset {name}`, then the same command"


def _totals_line(result: "RunResult") -> str:
    totals = result.report.totals
    counts = [f"{totals[status.value]} {status_word(status)}" for status in StoryStatus if totals[status.value]]
    tokens = totals["tokens"]
    assert isinstance(tokens, dict)
    cost = totals["cost_usd"]
    return (
        f"{', '.join(counts)}; {told_calls(int(str(totals['calls'])), int(str(totals.get('looks', 0))))}, "
        f"{tokens['input']} tokens in, {tokens['output']} out, "
        + (f"{cost:.2f} USD" if isinstance(cost, float | int) else "cost unknown")
    )


def dry_run_command(options: RunOptions, settings: Settings, environment: Environment, *, as_json: bool) -> int:
    """Prints waves, problems and calls. Returns exit code 2 for a problem that keeps the sprint from starting."""
    try:
        content = read_backlog(options.backlog, settings, environment)
    except BacklogError as error:
        content = BacklogContent(source=str(options.backlog), stories=(), problems=error.findings)
        if as_json:
            print_json(dry_run(content, stories=None, settings=settings).as_json())
        raise
    try:
        stories = _selected(options, settings, environment, content)
    except BacklogError:
        # The problems of the whole file are told below; only a selection's own error ends here.
        if not blocking(dry_run(content, stories=None, settings=settings).problems):
            raise
        stories = None
    plans = _plans(options, settings, content, stories)
    made = dry_run(content, stories=stories, settings=settings, strict=options.strict, plans=plans)
    told = with_spending(
        made, settings, environment, provider=options.provider, repo=_repository(options),
        backlog=options.backlog.absolute(),
    )  # fmt: skip
    return print_dry_run(told, as_json=as_json)


def _repository(options: RunOptions) -> Path:
    return (options.repo or default_repository()).resolve()


def print_dry_run(planned: DryRun, *, as_json: bool) -> Exit:
    """Prints it. Returns USAGE for a problem that keeps the sprint from starting."""
    if as_json:
        print_json(planned.as_json())
    else:
        _print(planned)
    serious = blocking(planned.problems)
    for problem in serious:
        say(f"error: {problem}" + (f"; {problem.fix}" if problem.fix else ""))
    return Exit.USAGE if serious else Exit.GOOD


def _plans(
    options: RunOptions, settings: Settings, content: BacklogContent, stories: list[Story] | None
) -> dict[str, JudgedTasks]:
    """Returns the plans of --plan as rules read them. Raises ConfigError as the run would."""
    rows = content.stories if stories is None else stories
    selected = [story.id for story in rows if not story.completed]
    return judge_by_rules(options, read_plans(options.plans, selected, content, {}), settings) if options.plans else {}


def _selected(
    options: RunOptions, settings: Settings, environment: Environment, content: BacklogContent
) -> list[Story] | None:
    """Returns the stories that a run would work on: what is left of a sprint that it resumes, else a selection.

    None where nothing narrows the backlog. Raises BacklogError for a selection that a run would refuse.
    """
    chosen = _left_of_sprint(options, environment)
    if chosen is None and options.sprint is None and not options.stories:
        return None
    if chosen is None:
        # Not strict: what --strict finds is a problem to print beside the waves, not the end of the dry run.
        selection = select(content, sprint=options.sprint, stories=options.stories, taken_sprints=(), strict=False)
        chosen = frozenset(selection.story_ids)
    return [story for story in content.stories if story.id in chosen]


def _left_of_sprint(options: RunOptions, environment: Environment) -> frozenset[str] | None:
    """Returns the stories without an outcome of the sprint that a run would resume; None when it would begin one."""
    folder = StateFolder.of(environment)
    try:
        record = find_resumable_sprint(
            options, _repository(options), folder, lambda one: not is_sprint_finished(environment, folder, one)
        )
    except ConfigError:  # a run says so; the waves of the backlog can be told all the same
        return None
    if record is None or record.cleared:
        return None
    histories = read_histories(environment, folder, record)
    return frozenset(story for story, history in histories.items() if history.outcome is None)


def _print(planned: DryRun) -> None:
    print(f"{counted(planned.stories, 'story', 'stories')} in {counted(len(planned.waves), 'wave')}")
    for number, wave in enumerate(planned.waves, start=1):
        print(safe(f"  wave {number}: {', '.join(wave)}"))
    if planned.closed:
        closed = ", ".join(f"{row} (by {closer})" for row, closer in planned.closed.items())
        print(safe(f"  done with others: {closed}"))
    print(f"calls: about {planned.calls.expected}, at most {planned.calls.maximal}")
    if planned.stories:
        expected, maximal = planned.explained
        print(f"  about: {expected}")
        print(f"  at most: {maximal}")
        for line in _spending_lines(planned):
            print(safe(line))
    for problem in planned.problems:
        if not problem.severity.blocks:
            print(safe(f"note: {problem}"))


def _spending_lines(planned: DryRun) -> Iterator[str]:
    spending = planned.spending
    if spending is not None:
        basis = "as in the last sprints" if spending.measured else "as on other projects; this one has no sprint yet"
        a_call = f"{spending.input_per_call} and {spending.output_per_call} a call, {basis}"
        yield f"tokens: about {spending.input_tokens} in, {spending.output_tokens} out ({a_call})"
        if spending.unpriced:
            yield f"cost: unknown: no price of {', '.join(spending.unpriced)}; name it under `prices` in config.yaml"
        elif spending.usd is not None:
            whose = f"list prices of {AS_OF} where `prices` in config.yaml names no others"
            yield f"cost: about {spending.usd:.2f} USD ({whose})"
        if (before := spending.as_before) is not None:
            parts = {"calls": before.calls, "tokens in": before.input_tokens, "out": before.output_tokens}
            told = ", ".join(f"{low} to {high} {unit}" for unit, (low, high) in parts.items())
            cost = ", {:.2f} to {:.2f} USD".format(*before.usd) if before.usd is not None else ""
            yield f"as the last {counted(before.stories, 'story', 'stories')} of this project went: {told}{cost}"
    if planned.past:
        yield "the last sprints of this project:"
    for sprint in planned.past:
        cost = "cost unknown" if sprint.cost_usd is None else f"{sprint.cost_usd:.2f} USD"
        yield (
            f"  {sprint.sprint}: {counted(sprint.stories, 'story', 'stories')} ({sprint.done} done), "
            f"{counted(sprint.calls, 'call')}, {sprint.input_tokens} tokens in, {sprint.output_tokens} out, {cost}"
        )
