"""Commands about a sprint: orders (`pause`, `cancel`, …), answers (`approve`, …), and new backlogs (`submit`).

An order or an answer is recorded first, then applied by the process that works on the sprint, else by the command.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.common import (
    Context,
    Exit,
    GateOption,
    SprintOption,
    command,
    command_group,
    print_json,
    safe,
    say,
)
from orchestrator.core.command import AnswerBody, Choice, OrderBody, PersonsChoice, ReplanBody, Settled, Verb
from orchestrator.core.errors import ConfigError
from orchestrator.core.value import counted
from orchestrator.sprint.gate_answers import kept_comment

app = command_group()
NameArgument = Annotated[
    str | None, typer.Argument(metavar="[STORY|SPRINT]", help="A story's or a sprint's id; default: the whole sprint.")
]
WhoseOption = Annotated[
    str | None, typer.Option("--sprint", metavar="ID", help="The sprint; default: the latest that has the story.")
]
WhyOption = Annotated[str, typer.Option("--comment", metavar="TEXT", help="The reason; kept with the order.")]
WaitingArgument = Annotated[str, typer.Argument(metavar="STORY", help="A story that waits for a person.")]
CommentOption = Annotated[str, typer.Option("--comment", metavar="TEXT", help="The reason; kept with the answer.")]
FORMS = {".csv": "csv", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
"""Suffix → the format of a backlog, as sent to a daemon."""


@command(app, "pause")
def pause_command(
    context: Context, name: NameArgument = None, sprint: WhoseOption = None, comment: WhyOption = ""
) -> int:
    """Pause a sprint or a story until `resume`: running calls end, nothing new starts, nothing paid for is lost.

    The order is recorded and survives restarts; the process that works on the sprint (`run`, `serve`) applies it. A
    `run` at a terminal waits for `resume`; elsewhere it ends with exit code 1 and says what to give.
    Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator pause --comment "the budget is under review"
    """
    return _order(context, Verb.PAUSE, name, sprint, comment)


@command(app, "resume")
def resume_command(
    context: Context, name: NameArgument = None, sprint: WhoseOption = None, comment: WhyOption = ""
) -> int:
    """Resume a sprint or a story that was paused; when nobody works on the sprint, the answer says what goes on.

    Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator resume US-003
    """
    return _order(context, Verb.RESUME, name, sprint, comment)


@command(app, "cancel")
def cancel_command(
    context: Context,
    name: NameArgument = None,
    sprint: WhoseOption = None,
    comment: WhyOption = "",
    gate: GateOption = None,
) -> int:
    """Cancel a story or a whole sprint: it ends as cancelled, what depends on it as blocked; branches are kept.

    For a story that waits for a person, this is the answer; asked about a merge, the story stays unmerged on its branch
    (needs_attention). A running story is stopped at once, with its calls and commands; `retry` runs it again.

    Exit 1: it was refused, or another answer came first; 2: there is nothing of this name to cancel.

    Example: orchestrator cancel US-003 --comment "no longer wanted"
    """
    if name is None and (sprint is None or gate is not None):
        raise ConfigError("name the story to cancel, or the whole sprint with --sprint")
    if name is None or gate is None:
        return _order(context, Verb.CANCEL, name, sprint, comment)
    return _answer(context, name, Choice.CANCEL, comment, gate, sprint)


@command(app, "retry")
def retry_command(
    context: Context, name: NameArgument = None, sprint: WhoseOption = None, comment: WhyOption = ""
) -> int:
    """Run again a story that ended without being done, and what it had blocked; without a story, all such stories.

    It starts over: its branch is deleted, as by `reset`. What was spent stays spent.

    A daemon starts it at once; otherwise the command that began the sprint does, when it is given again.
    Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator retry US-003
    """
    return _order(context, Verb.RETRY, name, sprint, comment)


@command(app, "reset")
def reset_command(
    context: Context,
    name: Annotated[str, typer.Argument(metavar="SPRINT|STORY", help="A sprint's or a story's id.")],
    sprint: WhoseOption = None,
    comment: WhyOption = "",
) -> int:
    """Delete the branches of a story or a sprint and clear its cells, so that it runs from the start.

    What a story has merged stays in the result, and stories that it blocked are reset with it. Of a whole sprint the
    result is deleted too. A `run` or `serve` that works on the sprint stops and restarts the story itself, otherwise
    the next `run` does.

    Example: orchestrator reset US-003
    """
    return _order(context, Verb.RESET, name, sprint, comment)


def _order(context: Context, verb: Verb, name: str | None, sprint: str | None, comment: str) -> int:
    """Gives an order and prints the result. Raises ConfigError for an unknown name."""
    given = OrderBody(verb=verb, comment=clean_comment(comment), by=context.environment.user[:80])
    settled: Settled = context.sprints.order(*context.sprints.target(name, sprint), given)
    if context.as_json:
        print_json(settled.model_dump(mode="json"))
    elif settled.done:
        print(safe(settled.message))
    if not settled.done:
        say(f"error: {settled.message}")
    return Exit.GOOD if settled.done else Exit.NOT_DONE


@command(app, "approve")
def approve_command(
    context: Context,
    story: WaitingArgument,
    comment: CommentOption = "",
    gate: GateOption = None,
    sprint: SprintOption = None,
) -> int:
    """Approve what a story asks about: its plan is built as it is, its conflict is overridden.

    Asked about a merge: the story is merged, without the tests that ran before and no longer run.

    The answer is recorded, also while nothing runs the sprint. Exit 1: another answer came first; 2: nothing is asked
    that can be answered so.

    Example: orchestrator approve US-003 --gate 1
    """
    return _answer(context, story, Choice.APPROVE, comment, gate, sprint)


@command(app, "reject")
def reject_command(
    context: Context,
    story: WaitingArgument,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="What is to change.")],
    gate: GateOption = None,
    sprint: SprintOption = None,
) -> int:
    """Send the plan back to the architect with a comment: one more revision than plan.max_iterations allows.

    Asked about a merge: the developer is asked once more to merge both sides.

    Exit 1: another answer came first; 2: nothing is asked that can be answered so.

    Example: orchestrator reject US-003 --comment "use the table that is there"
    """
    if not comment.strip():
        raise ConfigError("the comment is empty: say what is to change")
    return _answer(context, story, Choice.REJECT, comment, gate, sprint)


@command(app, "replan")
def replan_command(
    context: Context,
    story: Annotated[
        str,
        typer.Argument(metavar="STORY", help="A story that waits for a person, or that ended without being done."),
    ],
    comment: Annotated[
        str,
        typer.Option("--comment", metavar="TEXT", help="For the architect; required for a story that has ended."),
    ] = "",
    gate: GateOption = None,
    sprint: SprintOption = None,
) -> int:
    """Plan a story again from the start; a conflict that it waits for or ended in is overridden.

    For a story that waits for a person, this is the answer, with or without a comment. A story that ended without being
    done needs the comment and is reset. A `run` or `serve` that works on the sprint starts it at once, otherwise the
    same `run` command does.

    Example: orchestrator replan US-003 --comment "keep the file format, add a second file beside it"
    """
    return replan(context, sprint, story, comment, gate)


def replan(context: Context, sprint: str | None, story: str, comment: str, gate: int | None = None) -> int:
    """Has a story planned again and prints what comes of it. Returns the exit code. Raises ConfigError."""
    given = ReplanBody(comment=clean_comment(comment), gate=gate, by=context.environment.user[:80])
    done = context.sprints.replan(sprint, story, given)
    if "counts" in done:
        return print_answer(context, done)
    stories = [str(one) for one in done.get("stories", ())]
    if context.as_json:
        print_json({"sprint": done["sprint"], "stories": stories})
        return Exit.GOOD
    print(safe(f"to be planned again in sprint {done['sprint']}: {story}; {_resumer(done)} it"))
    if len(stories) > 1:
        print(safe(f"reset with it: {', '.join(other for other in stories if other != story)}"))
    return Exit.GOOD


def _answer(
    context: Context, story: str, choice: PersonsChoice, comment: str, gate: int | None, sprint: str | None
) -> int:
    """Answers a story's question and prints which answer counts."""
    given = AnswerBody(choice=choice, comment=clean_comment(comment), gate=gate, by=context.environment.user[:80])
    return print_answer(context, context.sprints.answer(sprint, story, given))


def print_answer(context: Context, given: Mapping[str, Any]) -> int:
    """Prints which answer counts. Returns 0 when it is the one that was given now, 1 when another came first."""
    first = given.get("counts") is True
    if context.as_json:
        print_json(dict(given))
    elif first:
        pid = given.get("running_pid")
        other = f"pid {pid}" if pid is not None else given.get("running_on")
        alive = f"{other} resumes" if other else f"nobody runs the sprint now, {_resumer(given)}"
        print(safe(f"{given['message']}; {alive} it"))
    if not first:
        say(f"error: {given['message']}")
    return Exit.GOOD if first else Exit.NOT_DONE


def clean_comment(comment: str) -> str:
    """Returns a person's comment as it is kept: without secrets, with a warning where there was one.

    Raises ConfigError when it is no text, or one that no prompt should hold.
    """
    plain = kept_comment(comment)
    if plain != comment.strip():
        say("warning: what looks like a key or a password was left out of the comment")
    return plain


def _resumer(done: Mapping[str, Any]) -> str:
    """Returns which command resumes a sprint that no process works on."""
    return "`orchestrator serve` resumes" if done.get("begun_by") == "serve" else "the same run command resumes"


@command(app, "submit")
def submit_command(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backlog: CSV, YAML or JSON.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Its name there; default: the file's, without its suffix."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show waves, problems and calls; nothing is submitted.")
    ] = False,
) -> int:
    """Submit a backlog to the daemon at --url (ORCHESTRATOR_URL), or to the one of the state folder.

    It is validated first: problems are reported with exit code 2, and the daemon keeps what it had. Rows with the
    Sprint_ID of a sprint that has begun without them are one: clear it. A backlog of the same name is replaced;
    running stories continue.

    Example: orchestrator submit backlog.csv --url https://daemon.example.org
    """
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise ConfigError(f"{file} has no suffix that says what it is: use one of {', '.join(FORMS)}")
    try:
        content = file.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error
    from orchestrator.client.discovery import connect_own

    daemon = context.daemon or connect_own(context.environment)
    called = name if name is not None else file.stem
    if dry_run:
        from orchestrator.cli.dry_run import print_dry_run

        return print_dry_run(daemon.dry_run(called, form, content), as_json=context.as_json)
    done = daemon.submit(called, form, content)
    for warning in done.warnings:
        say(f"warning: {warning}" + (f"; {warning.fix}" if warning.fix else ""))
    if context.as_json:
        print_json(done.model_dump(mode="json"))
        return Exit.GOOD
    what = "replaces what was there" if done.replaced else "is new there"
    stories = counted(done.stories, "story", "stories")
    print(safe(f"backlog {done.name} with {stories} {what}, and is watched from now on"))
    return Exit.GOOD
