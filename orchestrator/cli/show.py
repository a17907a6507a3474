"""`show` and `contract`: what the record says of a story, from any terminal, also while a run is alive."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import Context, Exit, SprintOption, command, command_group, cut, print_json, safe
from orchestrator.cli.console import format_finding, format_question
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding
from orchestrator.core.secrets import redact
from orchestrator.core.sprint import CaseOutcome, JudgedCase, StoryStatus
from orchestrator.core.value import printable, told_calls
from orchestrator.reports.path import Mark, PathStep, of_data, span
from orchestrator.sprint.plan_edit import write_data

app = command_group()
StoryArgument = Annotated[str, typer.Argument(metavar="STORY", help="A story's id.")]
LONG = timedelta(minutes=1)
"""A gap between two lines that is worth telling."""
MARKS = {
    Mark.BEGIN: ("○", "o", ""),
    Mark.GOOD: ("✓", "+", "green"),
    Mark.AGAIN: ("↻", "~", "yellow"),
    Mark.WAIT: ("?", "?", "magenta"),
    Mark.BAD: ("✗", "x", "red"),
    Mark.NOW: ("▸", ">", "cyan"),
}
"""Mark → its sign, the sign where only ASCII can be printed, its colour."""
_ASCII = str.maketrans({"→": "->", "…": "...", "└": "-"})


@command(app, "show")
def show_command(
    context: Context,
    story: StoryArgument,
    sprint: SprintOption = None,
    full: Annotated[bool, typer.Option("--full", help="Draw every event, not only decisions.")] = False,
) -> int:
    """Show a story: its path as a timeline, plan, contract, findings, changes and the output of its failing tests.

    Example: orchestrator show US-003
    """
    shown = context.sprints.story(sprint, story, full=full)
    if context.as_json:
        print_json(shown)
        return Exit.GOOD
    try:
        draw(story, of_data(shown["timeline"]))
        lines = [safe(line) for line in _lines(shown)]
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown(context, story) from error
    for line in lines:
        print(line)
    return Exit.GOOD


@command(app, "contract")
def contract_command(context: Context, story: StoryArgument, sprint: SprintOption = None) -> int:
    """Show what a story's developer may write and depend on, who allowed it, and what was refused.

    --json prints the contract alone, as contracts/architecture.schema.json describes it.

    Example: orchestrator contract US-003 --json
    """
    shown = context.sprints.story(sprint, story)
    try:
        contract = ArchitectureContract.model_validate(context.sprints.contract(str(shown["sprint"]), story))
        history = [(one["event"], datetime.fromisoformat(one["time"]), one["message"]) for one in shown["history"]]
        refusals = [Finding.model_validate(one) for one in shown.get("refused", ())]
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown(context, story) from error
    if context.as_json:
        print_json(contract.model_dump(mode="json"), exact=True)
        return Exit.GOOD
    for line in _contract_lines(contract, history):
        print(safe(line))
    for finding in refusals:
        print(safe(f"  refused: {finding}"))
    return Exit.GOOD


def _unknown(context: Context, story: str) -> Exception:
    source = context.sprints.url or "the record"
    return ConfigError(f"{source} tells of {story} what this version does not know: use --json")


def draw(story: str, steps: Sequence[PathStep]) -> None:
    """Prints the drawing, in colours on a terminal, with signs that its encoding has."""
    console = Console(highlight=False, soft_wrap=True)
    started = f", started {steps[0].time:%Y-%m-%d %H:%M:%S} UTC" if steps else ""
    console.print(Text(f"Path of {story}{started}:"))
    for line in draw_lines(steps, ascii_only=not (console.encoding or "").lower().startswith("utf")):
        console.print(line)
    console.print()


def draw_lines(steps: Sequence[PathStep], *, ascii_only: bool) -> list[Text]:
    """Returns the drawing: clock time (UTC), gap, mark, what happened; a loop within a step is indented before it."""
    if not steps:
        return [Text("  has not started")]
    # A date is shown only where it tells anything.
    days = steps[0].time.date() != steps[-1].time.date()
    clock = "%m-%d %H:%M:%S" if days else "%H:%M:%S"
    drawn, before = [], steps[0].time
    for step in steps:
        gap = f"+{span(step.time - before)}" if step.time - before >= LONG else ""
        drawn.append(_line(step, f"{step.time:{clock}}", gap, ascii_only))
        before = step.time
    return drawn


def _line(step: PathStep, clock: str, gap: str, ascii_only: bool) -> Text:
    sign, plain, colour = MARKS[step.mark]
    notes = f" [{', '.join(step.notes)}]" if step.notes else ""
    told = printable(redact(f"{step.text}{notes}"), keep="")
    indent = "  " if step.inner else ""
    if ascii_only:
        sign, told = plain, told.translate(_ASCII).encode("ascii", "backslashreplace").decode()
    return Text.assemble(
        (f"  {clock} {gap:>9} ", "dim"), indent, (sign, colour), " ", (told, "dim" if step.inner else "")
    )


def _contract_lines(contract: ArchitectureContract, history: Sequence[tuple[str, datetime, str]]) -> list[str]:
    """Returns what is allowed, and by what: a file of before, a task, an amendment. History: event, time, message."""
    given = {path: number for number, one in enumerate(contract.amendments, start=1) for path in one.files}
    lines = [f"Contract of {contract.story_id}, base {contract.base_commit[:10] or 'empty tree'}"]
    for task, files in contract.task_files.items():
        told = [f"{path} (amendment {given[path]})" if path in given else path for path in files]
        lines.append(f"  {task} may write: {', '.join(told) or 'nothing'}")
    added = {name for one in contract.amendments for name in one.dependencies}
    planned = [name for name in contract.declared_dependencies if name not in added]
    lines.append(f"  files already there: {len(contract.baseline_files)}")
    lines.append(f"  packages declared by the plan: {', '.join(planned) or 'none'}")
    lines.append(f"  packages already there: {', '.join(contract.baseline_dependencies) or 'none'}")
    if contract.local_names:
        lines.append(f"  names of the project's own modules: {', '.join(contract.local_names)}")
    times = [time for name, time, _ in history if name == "contract_amended"]
    for number, one in enumerate(contract.amendments, start=1):
        when = f" at {times[number - 1]:%Y-%m-%d %H:%M:%S}" if number <= len(times) else ""
        granted = ", ".join((*one.files, *one.dependencies))
        lines.append(
            f"  amendment {number}, by {one.by}{when} for {one.task_id}: {granted}: {one.reason or 'no reason given'}"
        )
    lines += [f"  {message}" for name, _, message in history if name == "amendment_refused"]
    return lines


def _lines(shown: dict[str, Any]) -> list[str]:
    lines = [f"{shown['id']} in sprint {shown['sprint']}: {shown['status']}", *filter(None, [cut(shown["title"])])]
    calls = told_calls(shown["calls"], shown.get("looks", 0))
    lines.append(f"branch {shown['branch'] or '-'}, commit {shown['commit'] or '-'}, {calls}")
    if shown["prompts"]:
        lines.append("prompts " + ", ".join(f"{one['name']} {one['version']}" for one in shown["prompts"]))
    lines += [*format_question(shown), *_decision_lines(shown)]
    lines += ["", *_plan_lines(shown), "", "Contract:", f"  {_contract_line(shown)}", "", "Findings:"]
    nothing = "  none" if StoryStatus(shown["status"]).final else "  none so far"
    lines += [line for finding in shown["findings"] for line in _finding_lines(finding)] or [nothing]
    lines += ["", "Tests:", *(_test_lines(shown) or ["  none were run"])]
    lines += ["", "Changes:", shown["diff_stat"] or "  none"]
    if shown["test_output"]:
        lines += ["", "Output of the failing tests:", shown["test_output"]]
    return lines


def _test_lines(shown: dict[str, Any]) -> list[str]:
    """Returns each criterion with its number and its tests, parametrized ones counted, then the tests of none."""
    lines: list[str] = []
    named: set[str] = set()
    for number, row in enumerate(shown["criteria"], start=1):
        lines.append(f"  {number}. {cut(row['criterion'])}")
        lines += _folded([JudgedCase.model_validate(case) for case in row["tests"]]) or ["      not covered"]
        named |= {case["name"] for case in row["tests"]}
    others = [CaseOutcome.model_validate(one) for one in shown["tests"]["cases"] if one["name"] not in named]
    return [*lines, *_folded(others)] if shown["tests"]["cases"] else []


def _folded(cases: Sequence[CaseOutcome]) -> list[str]:
    rows = Counter((case.result, case.name, case.shown_by) for case in cases)
    return [
        f"      {result:<8} {name}{f' x{count}' if count > 1 else ''}{f' ({shown_by})' if shown_by else ''}"
        for (result, name, shown_by), count in rows.items()
    ]


def _decision_lines(shown: dict[str, Any]) -> list[str]:
    """Returns the conflict a person has to decide, and what a person has answered."""
    lines: list[str] = []
    if shown["conflict"]:
        lines += ["", "Conflict:", *(f"  {name.replace('_', ' ')}: {text}" for name, text in shown["conflict"].items())]
    if shown["replan"]:
        over = " (its conflict overridden)" if shown["replan"]["overridden_conflict"] else ""
        lines += ["", f"Planned again{over}: {shown['replan']['comment']}"]
    return lines


def _finding_lines(raw: dict[str, Any]) -> list[str]:
    return format_finding(Finding.model_validate(raw))


def _plan_lines(shown: dict[str, Any]) -> list[str]:
    """Returns the plan as its author wrote it, what was found in it, and what its mended form changes."""
    accepted = "" if shown["contract"] else ", not accepted so far"
    if shown["plan_file"]:
        lines = [f"Plan: {shown['plan_file']} (written by a person){accepted}"]
    else:
        lines = [f"Plan{' as the architect wrote it' if shown.get('written') else ''}{accepted}:"]
    raw = shown.get("written") or shown["plan"]
    if raw is None:
        return lines
    plan = Breakdown.model_validate(raw)
    status_of = {task["id"]: task["status"] for task in shown["tasks"]}
    for task in plan.tasks:
        lines += _task_lines(task, status_of.get(task.task_id, "pending"))
    lines += _design_lines(plan)
    gate = shown["question"] or {}
    told = [*gate.get("issues", ()), *gate.get("notes", ())]  # these stand above, with the question
    found = [one for one in shown.get("found", ()) if one not in told]
    if found:
        lines += ["  Found in it:", *(f"  {line}" for one in found for line in _finding_lines(one))]
    if shown.get("mended"):
        what = "would be" if accepted else "is"
        lines.append(f"  What {what} built is its mended form, in which")
        lines += [f"  {line}" for one in shown["mended"] for line in _finding_lines(one)]
    return lines


def _task_lines(task: Task, status: str) -> list[str]:
    head, *rest = task.description.split("\n")
    lines = [f"  {task.task_id} [{status}] {head}", *(f"      {line}" for line in rest)]
    lines.append(f"      files: {', '.join(task.files_to_create) or '-'}; command: {task.command or '-'}")
    if task.dependencies:
        why = f" ({task.dependency_reason})" if task.dependency_reason else ""
        lines.append(f"      after: {', '.join(task.dependencies)}{why}")
    return lines


def _design_lines(plan: Breakdown) -> list[str]:
    """Returns what a plan says besides its tasks."""
    lines: list[str] = []
    for group, packages in plan.dependencies:
        if packages:
            kind = "Packages" if group == "dependencies" else "Packages for development"
            lines.append(f"  {kind}: {', '.join(f'{name} {version}'.strip() for name, version in packages.items())}")
    if plan.acceptance_tests:
        lines.append("  Tests:")
        # Of a person's plan the first line names the files, the rest is code.
        shown = ((one.criterion, one.test.split("\n")[0]) for one in plan.acceptance_tests)
        lines += [f"    {criterion} -> {test or 'not said how'}" for criterion, test in shown]
    for change in plan.tests_to_change:
        lines.append(f"  Older tests to change: {change.file}: {change.reason or 'no reason given'}")
    for name in ("database_design", "api_design", "code_patterns", "conventions", "tech_stack", "technical_notes"):
        value = getattr(plan, name)
        if value:
            text = (value if isinstance(value, str) else write_data(value)).rstrip()
            lines.append(f"  {name.replace('_', ' ').capitalize()}:")
            lines += [f"    {line}" for line in text.split("\n")]
    for verb, texts in plan.todos:
        lines += [f"  TODO to {verb}: {text}" for text in texts]
    return lines


def _contract_line(shown: dict[str, Any]) -> str:
    contract = shown["contract"]
    if contract is None and shown["question"] and shown["plan"]:
        plan = Breakdown.model_validate(shown["plan"])
        files = ", ".join(sorted({path for task in plan.tasks for path in task.files_to_create})) or "no files"
        packages = ", ".join(sorted(plan.dependencies.names)) or "no packages"
        return f"none yet; with this plan it would be: {files}; {packages}"
    if contract is None:
        return "none: no plan was accepted"
    files = ", ".join(contract["declared_files"]) or "no new files"
    packages = ", ".join(contract["declared_dependencies"]) or "no new packages"
    return f"{files}; {packages}"
