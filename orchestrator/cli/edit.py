"""`edit`: a person changes the plan that a story waits with; what is checked and answered is one whole plan."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import ValidationError

from orchestrator.app.plans import Draft
from orchestrator.cli.commands import CommentOption, WaitingArgument, comment_text, print_answer
from orchestrator.cli.common import (
    Context,
    Exit,
    GateOption,
    SprintOption,
    command,
    command_group,
    print_json,
    say,
    text_of,
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


class _Question(NamedTuple):
    """The question that an edit answers."""

    sprint: str
    story: str
    title: str
    criteria: tuple[str, ...]
    gate: Gate


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
    """Change the plan that is asked about in $VISUAL or $EDITOR, have it checked, and have it built.

    While something major is found, the editor opens again with the findings on top; a file that is saved empty or as it
    was answers nothing. Exit 1: nothing was answered, and a file that is named keeps what was written; 2: nothing is
    asked that can be answered so.

    Example: orchestrator edit US-003

    Example: orchestrator show US-003 --json | jq .plan > plan.json; orchestrator edit US-003 --file plan.json
    """
    question = _question(context.sprints.story(sprint, story), gate)
    given = AnswerBody(
        choice=Choice.EDIT, comment=comment_text(comment), gate=question.gate.number, force=force,
        file=file if file is not None and file.lower().endswith(MARKDOWN) else "", by=context.environment.user[:80],
    )  # fmt: skip
    stem = f"{story}-{question.gate.number}"
    if file is not None:
        path = None if file == "-" else Path(file)
        draft = Draft(context.environment, question.sprint, stem, text_of(file), path=path)
        return _submit(context, question, draft, given)
    draft = Draft(context.environment, question.sprint, stem, plan_text(question.gate.plan, _head(question)))
    return _edit(context, question, draft, given)


def _question(shown: dict[str, Any], number: int | None) -> _Question:
    """Returns the question of a story as `show --json` tells it. Raises ConfigError when an edit cannot answer it."""
    story, asked = str(shown["id"]), shown.get("question")
    if not isinstance(asked, dict):
        raise ConfigError(f"{story} waits for nobody: it is {shown.get('status')}")
    try:
        gate = Gate.model_validate({name: value for name, value in asked.items() if name in Gate.model_fields})
    except ValidationError as error:
        raise ConfigError(f"the question of {story} is one that this version does not know") from error
    if number is not None and number != gate.number:
        raise ConfigError(f"question {gate.number} of {story} stands now, not {number}")
    expect_choice(story, gate, Choice.EDIT)
    criteria = tuple(str(one.get("criterion", "")) for one in shown.get("criteria") or ())
    return _Question(str(shown["sprint"]), story, str(shown.get("title") or ""), criteria, gate)


def _edit(context: Context, question: _Question, draft: Draft, given: AnswerBody) -> int:
    """Opens the editor until the plan is accepted, or no one is there to mend it; a person may leave."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    written = False
    while True:
        before = draft.text
        code = draft.edit(terminal=terminal)
        same = _words(draft.text) == _words(before)
        written = written or not same
        if code != 0 or same or not _words(draft.text):
            return _leave(context, question, draft, code, written=written and _words(draft.text) != "")
        try:
            return _answer(context, question, draft, given)
        except RequestRefused as refused:
            if not terminal:
                return _refuse(context, question, draft, refused)
            for finding in refused.findings:
                say(str(finding))
            draft.text = commented(_again(refused), draft.text)


def _submit(context: Context, question: _Question, draft: Draft, given: AnswerBody) -> int:
    try:
        return _answer(context, question, draft, given)
    except RequestRefused as refused:
        return _refuse(context, question, draft, refused)


def _answer(context: Context, question: _Question, draft: Draft, given: AnswerBody) -> int:
    """Hands the plan in; the exit code. Raises RequestRefused with what was found in it."""
    try:
        answer = given.model_copy(update={"plan": draft.text})
        code = print_answer(context, context.sprints.answer(question.sprint, question.story, answer))
    except ConfigError as error:
        if isinstance(error, RequestRefused) or error.findings:
            raise RequestRefused(error.message, findings=error.findings) from error
        raise ConfigError(f"{error.message}; what you wrote is kept in {draft.keep()}") from error
    if code == Exit.GOOD:
        draft.drop()
    else:
        say(f"what you wrote is kept in {draft.keep()}")
    return code


def _words(text: str) -> str:
    return body_of(text.replace("\r\n", "\n")).strip()


def _leave(context: Context, question: _Question, draft: Draft, code: int, *, written: bool) -> int:
    """Answers nothing; what a person wrote stays in its file."""
    why = f"the editor ended with exit code {code}" if code else "the plan was left as it was"
    kept = str(draft.keep()) if written else None
    if not written:
        draft.drop()
    _print_unanswered(context, question, [], kept)
    say(f"error: nothing was answered: {why}" + (f"; what you wrote is kept in {kept}" if kept else ""))
    return Exit.NOT_DONE


def _refuse(context: Context, question: _Question, draft: Draft, refused: RequestRefused) -> int:
    """Answers nothing: the plan is not accepted."""
    for finding in refused.findings:
        say(f"{finding}; {finding.fix}")
    kept = str(draft.keep())
    _print_unanswered(context, question, [finding.model_dump(mode="json") for finding in refused.findings], kept)
    say(f"error: {refused.message}; what you wrote is kept in {kept}")
    return Exit.NOT_DONE


def _print_unanswered(context: Context, question: _Question, findings: list[Any], kept: str | None) -> None:
    if context.as_json:
        named = {"sprint": question.sprint, "story": question.story, "gate": question.gate.number}
        print_json({**named, "counts": False, "findings": findings, "kept": kept})


def _head(question: _Question) -> Iterator[str]:
    """What a person sees above the plan."""
    gate = question.gate
    until = f", to be answered until {gate.deadline:%Y-%m-%d %H:%M:%S} UTC" if gate.deadline else ""
    yield f"{question.story} {question.title}".strip() + f": plan {gate.iteration}, question {gate.number}{until}"
    if question.criteria:
        yield from ("", "It shall satisfy", *(f"- {criterion}" for criterion in question.criteria))
    yield from ("", f"Why you are asked: {gate.reason}")
    yield from finding_comments([*gate.issues, *gate.notes])
    yield from HOW_TO.splitlines()


def _again(refused: RequestRefused) -> Iterator[str]:
    yield from (f"{refused.message}. What you wrote stands below; this was found in it:", "")
    yield from finding_comments(refused.findings)
    yield from HOW_TO.splitlines()
