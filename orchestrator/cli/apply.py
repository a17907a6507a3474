"""`apply`: a person's action plan, checked, shown and carried out in a folder."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.app.judge import judged_json
from orchestrator.app.plans import JudgedPlan, apply, check_plan, diff_plan, holds_actions
from orchestrator.cli.check import ShownOption, get_exit_code, say_findings, split_context
from orchestrator.cli.common import (
    Context,
    Exit,
    FileArgument,
    SprintOption,
    command,
    command_group,
    fail,
    print_json,
    read_text,
    safe,
    say,
)
from orchestrator.core.action_plan import ActionPlan, ExecutionReport
from orchestrator.core.command import Choice
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.finding import Finding, blocking, questions
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import printable, shortened
from orchestrator.prompts.feedback import render_execution_report
from orchestrator.settings import forget_secrets

app = command_group()
MOST_TOLD = 600
"""Characters of the findings in a comment for the architect."""
_STYLES = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("-", "red"), ("+", "green"))


@command(app, "apply", "url")
def apply_command(
    call: Context,
    file: FileArgument,
    repo: Annotated[Path, typer.Option("--repo", metavar="PATH", help="The folder; default: this one.")] = Path(),
    context: ShownOption = None,
    story: Annotated[
        str | None,
        typer.Option("--story", metavar="ID", help="The plan's story: its contract counts, and it can be replanned."),
    ] = None,
    sprint: SprintOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write the files and run the commands without asking.")] = False,
) -> int:
    """Check an action plan, show its changes, ask, and apply it to a folder: all files or none.

    Commands of EXECUTE run after the files are written, confined, after a second question; when one fails, the rest is
    skipped.

    With --story the plan is also held against the story's recorded contract. A plan that is not valid is not written;
    then the command is shown that has the story planned again with what was found.

    Exit 0: done; 1: not valid, not confirmed, or something failed; 3: cut off; 4: no plan in the text.

    Example: orchestrator apply plan.md --repo ./app

    Example: orchestrator apply plan.md --repo ./app --story US-003

    Example: orchestrator apply plan.md --yes --json
    """
    settings, environment, as_json = call.settings, call.environment, call.as_json
    # No command of the plan inherits a key.
    forget_secrets()
    text = _action_plan(file)
    known = call.sprints.story(sprint, story) if story is not None else {}
    contract = ArchitectureContract.model_validate(known["contract"]) if known.get("contract") else None
    judged = check_plan(text, repo, split_context(context), story, contract)
    plan = judged.extraction.plan
    if plan is None or not judged.judged.valid:
        _tell_invalid(judged, as_json)
        code = get_exit_code(judged.judged)
        if code is Exit.NOT_DONE and not as_json:
            _tell_replan(known, judged.judged.findings)
        return code
    if as_json and not yes:
        fail("--json asks nothing: give --yes with it")
    if not as_json:
        say_findings(judged.judged, "action plan")
        _show(judged, plan)
    if not yes and not _confirmed("Write these changes?" if _changes(judged) else "Carry this plan out?"):
        say("nothing was written")
        if questions(judged.judged.findings):
            _tell_replan(known, judged.judged.findings)
        return Exit.NOT_DONE
    commands = bool(plan.commands) and (yes or _confirmed(f"Run these commands ({len(plan.commands)})?"))
    report = asyncio.run(apply(judged, repo, settings, environment, commands=commands))
    _tell(judged, report, as_json)
    return Exit.GOOD if report.ok else Exit.NOT_DONE


def _tell_replan(story: Mapping[str, Any], findings: Sequence[Finding]) -> None:
    """Says how to have the plan's story planned again.

    `story` is as `show --json` prints it; empty where none was named.
    """
    if not story:
        say("if it belongs to a story, name it with --story ID: its contract counts then, and it can be planned again")
        return
    name, sprint, status = str(story["id"]), str(story["sprint"]), StoryStatus(story["status"])
    asked, ended = story["question"], status.final and status not in {StoryStatus.DONE, StoryStatus.BLOCKED}
    if not (ended if asked is None else Choice.REPLAN in asked["choices"]):
        say(f"{name} is {status} and cannot be planned again now")
        return
    found = blocking(findings) or questions(findings)
    told = "; ".join(one.message for one in found)
    comment = shortened(f"Found in a plan that was to be applied by hand: {told}", MOST_TOLD)
    say(f"to have {name} planned again: orchestrator replan {name} --sprint {sprint} --comment {shlex.quote(comment)}")


def _action_plan(file: str) -> str:
    """Returns the text of a plan of actions; ends with exit code 2 where it holds tasks."""
    text = read_text(file)
    if not holds_actions(text) and read_task_plan(text).plan.tasks:
        fail(f"{file} holds a task plan (`### Task N`), which `run --plan` builds; apply takes an action plan alone")
    return text


def _tell(judged: JudgedPlan, report: ExecutionReport, as_json: bool) -> None:
    if as_json:
        print_json({**judged_json(judged.judged), "changes": _changes(judged), **report.model_dump(mode="json")})
    else:
        print(safe(render_execution_report(report)), end="")


def _tell_invalid(judged: JudgedPlan, as_json: bool) -> None:
    if as_json:
        print_json({**judged_json(judged.judged), "changes": [], "actions": []})
    else:
        say_findings(judged.judged, "action plan")
        say("nothing was written")


def _changes(judged: JudgedPlan) -> list[dict[str, str]]:
    """Returns what happens to which file."""
    if judged.applied is None or judged.world is None:
        return []
    there = judged.world.paths
    return [
        {"path": path, "change": "removed" if text is None else "changed" if path in there else "created"}
        for path, text in judged.applied.changes.items()
    ]


def _show(judged: JudgedPlan, plan: ActionPlan) -> None:
    """The difference, coloured where a person looks at it, and the commands."""
    # A line of a diff is never broken or coloured by its content.
    console = Console(soft_wrap=True, highlight=False)
    for line in diff_plan(judged):
        style = next((style for start, style in _STYLES if line.startswith(start)), "")
        console.print(Text(printable(line), style=style))
    for action in plan.commands:
        where = "" if action.cwd == "." else f" (in {action.cwd})"
        console.print(Text(printable(f"$ {action.command}{where}"), style="bold"))


def _confirmed(question: str) -> bool:
    """Yes, said by a person; an end of the input says no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        say("no (--yes answers for you)")
        return False
