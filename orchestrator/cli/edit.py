"""`edit`: a person changes the plan that a story waits with; what is checked and answered is one whole plan."""

import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import click
import typer
from pydantic import ValidationError

from orchestrator.cli.commands import CommentOption, WaitingArgument, clean_comment, print_answer
from orchestrator.cli.common import (
    Context,
    Exit,
    GateOption,
    SprintOption,
    command,
    command_group,
    print_json,
    read_text,
    say,
)
from orchestrator.core.command import MARKDOWN, AnswerBody, Choice, Gate
from orchestrator.core.errors import ConfigError, RequestRefused
from orchestrator.sprint.gate_answers import expect_choice
from orchestrator.sprint.plan_edit import body_of, commented, finding_comments, plan_text

app = command_group()
FileOption = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE|-", help="The plan: YAML, JSON, a task plan (.md); -: standard input."),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also with major findings, as approve would, if it can be carried out.")
]
HOW_TO = """
Change the plan and save it: it is checked, and built as it is then. An empty file, or this one unchanged,
answers nothing. files_to_create names each file that a task creates or changes, at most three and no tests;
command_to_run is run after it; dependencies name tasks of this story that come before.
"""


@command(app, "edit")
def edit_command(
    context: Context,
    story: WaitingArgument,
    comment: CommentOption = "",
    file: FileOption = None,
    force: ForceOption = False,
    gate: GateOption = None,
    sprint: SprintOption = None,
) -> int:
    """Change a story's plan in $VISUAL or $EDITOR; it is checked and then built.

    On a terminal the editor opens again with what was found in the plan. A plan that is refused is printed to stderr; a
    file that is saved empty or as it was answers nothing. Exit 1: nothing was answered; 2: nothing is asked that can be
    answered so.

    Example: orchestrator edit US-003

    Example: orchestrator show US-003 --json | jq .plan > plan.json; orchestrator edit US-003 --file plan.json
    """
    shown = context.sprints.story(sprint, story)
    asked = _gate(shown, gate)
    given = AnswerBody(
        choice=Choice.EDIT, comment=clean_comment(comment), gate=asked.number, force=force,
        file=file if file is not None and file.lower().endswith(MARKDOWN) else "", by=context.environment.user[:80],
    )  # fmt: skip
    at_terminal = file is None and sys.stdin.isatty() and sys.stdout.isatty()
    text = first = read_text(file) if file is not None else plan_text(asked.plan, _head(shown, asked))
    while True:
        if file is None:
            before, text = text, _edited(text, context.environment.variables, at_terminal=at_terminal)
            if _words(text) in {"", _words(before)}:
                if _words(before) != _words(first):
                    print(_words(before), file=sys.stderr)  # nothing that a person wrote is lost
                return _refuse(context, given, shown, ConfigError("the plan was left as it was"))
        try:
            answer = given.model_copy(update={"plan": text})
            code = print_answer(context, context.sprints.answer(str(shown["sprint"]), str(shown["id"]), answer))
        except ConfigError as error:
            is_found = isinstance(error, RequestRefused) or bool(error.findings)
            for finding in error.findings:
                say(f"{finding}; {finding.fix}")
            if is_found and at_terminal:
                text = commented(_again(error), text)
                continue
            print(text, file=sys.stderr)
            if not is_found:
                raise
            return _refuse(context, given, shown, error)
        if code != Exit.GOOD:
            print(text, file=sys.stderr)
        return code


def _edited(text: str, variables: Mapping[str, str], *, at_terminal: bool) -> str:
    """Returns the text as the editor left it. Raises ConfigError where there is none, or it failed."""
    if not at_terminal and not any(variables.get(name, "").strip() for name in ("VISUAL", "EDITOR")):
        raise ConfigError("there is no terminal for an editor: name a file with --file, or set VISUAL or EDITOR")
    # Ctrl-C is a key of the editor's; it must not end us and leave the editor alone with the terminal.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        saved = click.edit(text, extension=".yaml")
        return text if saved is None else saved
    except click.ClickException as error:
        raise ConfigError(f"{error.message}: set VISUAL or EDITOR, or name a file with --file") from error
    except OSError as error:
        raise ConfigError(f"what the editor saved cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"what the editor saved is not UTF-8 (byte {error.start})") from error
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse(context: Context, given: AnswerBody, shown: Mapping[str, Any], error: ConfigError) -> int:
    if context.as_json:
        found = [finding.model_dump(mode="json") for finding in error.findings]
        named = {"sprint": shown["sprint"], "story": shown["id"], "gate": given.gate}
        print_json({**named, "counts": False, "findings": found})
    say(f"error: nothing was answered: {error.message}")
    return Exit.NOT_DONE


def _gate(shown: dict[str, Any], number: int | None) -> Gate:
    """Returns the question of a story as `show --json` prints it. Raises ConfigError if an edit cannot answer it."""
    story, asked = str(shown["id"]), shown.get("question")
    if not isinstance(asked, dict):
        raise ConfigError(f"{story} waits for no answer: it is {shown.get('status')}")
    try:
        gate = Gate.model_validate({name: value for name, value in asked.items() if name in Gate.model_fields})
    except ValidationError as error:
        raise ConfigError(f"the question of {story} is one that this version does not know") from error
    if number is not None and number != gate.number:
        raise ConfigError(f"question {gate.number} of {story} stands now, not {number}")
    expect_choice(story, gate, Choice.EDIT)
    return gate


def _words(text: str) -> str:
    # An editor may change line ends alone, which is no change.
    return body_of(text.replace("\r\n", "\n")).strip()


def _head(shown: dict[str, Any], gate: Gate) -> Iterator[str]:
    """Yields what a person sees above the plan."""
    until = f", to be answered until {gate.deadline:%Y-%m-%d %H:%M:%S} UTC" if gate.deadline else ""
    name = f"{shown['id']} {shown.get('title') or ''}".strip()
    yield f"{name}: plan {gate.iteration}, question {gate.number}{until}"
    criteria = [str(one.get("criterion", "")) for one in shown.get("criteria") or ()]
    if criteria:
        yield from ("", "It shall satisfy", *(f"- {criterion}" for criterion in criteria))
    yield from ("", f"Why you are asked: {gate.reason}")
    yield from finding_comments([*gate.issues, *gate.notes])
    if gate.mended:
        yield "In what the architect wrote, this was mended:"
        yield from finding_comments(gate.mended)
    yield from HOW_TO.splitlines()


def _again(refused: ConfigError) -> Iterator[str]:
    yield from (f"{refused.message}. What you wrote stands below; this was found in it:", "")
    yield from finding_comments(refused.findings)
    yield from HOW_TO.splitlines()
