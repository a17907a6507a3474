"""`edit`: a person changes the plan that a story waits with; what is checked and answered is one whole plan."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from orchestrator.app.plans import Draft
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
from orchestrator.core.finding import Finding
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

    While something major is found, the editor opens again with the findings on top; a file that is saved empty or as it
    was answers nothing. Exit 1: nothing was answered, and a file that is named keeps what was written; 2: nothing is
    asked that can be answered so.

    Example: orchestrator edit US-003

    Example: orchestrator show US-003 --json | jq .plan > plan.json; orchestrator edit US-003 --file plan.json
    """
    shown = context.sprints.story(sprint, story)
    asked = _gate(shown, gate)
    given = AnswerBody(
        choice=Choice.EDIT, comment=clean_comment(comment), gate=asked.number, force=force,
        file=file if file is not None and file.lower().endswith(MARKDOWN) else "", by=context.environment.user[:80],
    )  # fmt: skip
    path = Path(file) if file is not None and file != "-" else None
    text = read_text(file) if file is not None else plan_text(asked.plan, _head(shown, asked))
    draft = Draft(context.environment, str(shown["sprint"]), f"{story}-{asked.number}", text, path=path)
    edit = _Edit(context, str(shown["sprint"]), str(shown["id"]), given, draft)
    return edit.open_editor() if file is None else edit.submit()


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


@dataclass(frozen=True)
class _Edit:
    """An edited plan on its way to become the answer. Each method returns the exit code."""

    context: Context
    sprint: str
    story: str
    given: AnswerBody
    draft: Draft

    def open_editor(self) -> int:
        """Opens the editor until the plan is accepted, the person leaves, or there is no terminal to correct it."""
        terminal = sys.stdin.isatty() and sys.stdout.isatty()
        written = False
        while True:
            before = self.draft.text
            code = self.draft.edit(terminal=terminal)
            same = _words(self.draft.text) == _words(before)
            written = written or not same
            # An editor that fails may have saved half of the text.
            if code != 0 or same or not _words(self.draft.text):
                return self._leave(code, written=written and _words(self.draft.text) != "")
            try:
                return self._answer()
            except RequestRefused as refused:
                if not terminal:
                    return self._refuse(refused)
                for finding in refused.findings:
                    say(str(finding))
                self.draft.text = commented(_again(refused), self.draft.text)

    def submit(self) -> int:
        """Hands the file in as it is."""
        try:
            return self._answer()
        except RequestRefused as refused:
            return self._refuse(refused)

    def _answer(self) -> int:
        """Raises RequestRefused with what was found in the plan."""
        try:
            answer = self.given.model_copy(update={"plan": self.draft.text})
            code = print_answer(self.context, self.context.sprints.answer(self.sprint, self.story, answer))
        except ConfigError as error:
            if isinstance(error, RequestRefused) or error.findings:
                raise RequestRefused(error.message, findings=error.findings) from error
            raise ConfigError(f"{error.message}; what you wrote is kept in {self.draft.keep()}") from error
        if code == Exit.GOOD:
            self.draft.drop()
        else:
            say(f"what you wrote is kept in {self.draft.keep()}")
        return code

    def _leave(self, code: int, *, written: bool) -> int:
        why = f"the editor ended with exit code {code}" if code else "the plan was left as it was"
        if not written:
            self.draft.drop()
        return self._answer_nothing(f"nothing was answered: {why}", [], kept=written)

    def _refuse(self, refused: RequestRefused) -> int:
        for finding in refused.findings:
            say(f"{finding}; {finding.fix}")
        return self._answer_nothing(refused.message, refused.findings, kept=True)

    def _answer_nothing(self, message: str, findings: Sequence[Finding], *, kept: bool) -> int:
        place = str(self.draft.keep()) if kept else None
        if self.context.as_json:
            found = [finding.model_dump(mode="json") for finding in findings]
            named = {"sprint": self.sprint, "story": self.story, "gate": self.given.gate}
            print_json({**named, "counts": False, "findings": found, "kept": place})
        say(f"error: {message}" + (f"; what you wrote is kept in {place}" if place else ""))
        return Exit.NOT_DONE


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


def _again(refused: RequestRefused) -> Iterator[str]:
    yield from (f"{refused.message}. What you wrote stands below; this was found in it:", "")
    yield from finding_comments(refused.findings)
    yield from HOW_TO.splitlines()
