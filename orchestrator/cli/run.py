"""`run`: a backlog in, merged stories out; `demo`: the packaged example."""

import asyncio
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from orchestrator.app.trust import load_settings
from orchestrator.cli.common import (
    Context,
    Exit,
    command,
    command_group,
    fail,
    find_own_command,
    print_json,
    say,
    split_names,
)
from orchestrator.cli.console import EventPrinter, make_printer
from orchestrator.cli.sprint_lines import status_word
from orchestrator.core.finding import blocking, decisive
from orchestrator.core.sprint import StoryReport, StoryStatus
from orchestrator.core.value import counted, cut_at_word, told_calls
from orchestrator.settings import Environment, ProviderName, Settings
from orchestrator.settings.options import RunOptions

if TYPE_CHECKING:
    from orchestrator.records.sprint_reader import RunResult

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
    typer.Option(metavar="[STORY=]FILE", help="A person's plan for a story, built or followed; repeatable."),
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
    printer = make_printer(settings, as_json=as_json, log_format=log_format)
    if dry_run:
        # Imported here: a dry run reads what --help has no use for.
        from orchestrator.cli.dry_run import dry_run_command

        return dry_run_command(options, settings, environment, as_json=as_json)
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
    from orchestrator.engine.durable import send_traces
    from orchestrator.reports.report import exit_code

    tell = say if as_json else printer.say
    send_traces(environment.variables)
    with printer:
        run = Run(
            options, settings, environment, tell=tell, listen=printer.event, begins=partial(printer.begin, environment)
        )
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
    board: Annotated[bool, typer.Option("--board", help="Serve its board from the start until Ctrl-C.")] = False,
    log_format: FormatOption = None,
) -> int:
    """Run the packaged example from its backlog to a tested application. The team is scripted: no model is asked.

    Example: orchestrator demo --board
    """
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.app.init import fresh_copy

    place = fresh_copy(folder)
    settings, environment = load_settings(place / "config.yaml", context.overrides)
    printer = make_printer(settings, as_json=context.as_json, log_format=log_format)
    told = sys.stderr if context.as_json else sys.stdout
    shown: AbstractContextManager[str | None] = nullcontext()
    if board:
        from orchestrator.server.viewer import board_in_thread

        shown = board_in_thread(settings, environment)
    with shown as link:
        if link is not None:
            print(f"Watch it in a browser: {link}", file=told, flush=True)
        code = _run_demo(place, settings, environment, printer, as_json=context.as_json)
        if code == Exit.INTERRUPTED:
            return code
        if link is None:
            printer.say(f"Its board, for a browser: `cd {place} && {find_own_command()} board`")
            return code
        print(f"The board stays open until Ctrl-C: {link}", file=told, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
        return code


def _run_demo(
    place: Path, settings: Settings, environment: Environment, printer: EventPrinter, *, as_json: bool
) -> int:
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.app.init import check_out, run_suite

    printer.say(f"A scripted team (recorded answers, no model is asked) works through {place / 'backlog.csv'}.")
    options = RunOptions(
        backlog=place / "backlog.csv", repo=place / "repo", call_log=place / "calls.jsonl", push_to=RESULT
    )
    again = f"`cd {place} && {find_own_command()} run backlog.csv --push-to {RESULT}`"
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
    held = story.tests
    ran = held.passed + held.failed
    tests = f"{held.passed}/{ran} tests" if ran else "no tests run"
    tests += f", {held.run - ran} skipped" if held.run > ran else ""
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
