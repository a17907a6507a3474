"""`edit`: a person changes the plan that a story waits with; what is checked and answered is one whole plan."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    SprintOption,
    UrlOption,
    configured,
    print_json,
    say,
    told,
)
from orchestrator.cli.decide import CommentOption, GateOption, WaitingArgument, answer, comment_text, tell_given
from orchestrator.cli.edit_there import MARKDOWN, There, asked_there
from orchestrator.cli.extract import text_of
from orchestrator.cli.through import daemon_for
from orchestrator.domain.gate import Choice
from orchestrator.domain.sprint import BroughtPlan
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.sprint.plan_edit import (
    Edited,
    body_of,
    commented,
    finding_comments,
    plan_text,
    read_edit,
    read_markdown,
)
from orchestrator.wiring.drafts import Draft
from orchestrator.wiring.gates import Asked, named, project, question

FileOption = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE|-", help="The plan: YAML, JSON, a task plan (.md); -: standard input."),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also with major findings, as approve would, if it can be carried out.")
]
Judge = Callable[[str], Edited]


@told
def edit_command(
    story: WaitingArgument,
    comment: CommentOption = "",
    file: FileOption = None,
    force: ForceOption = False,
    gate: GateOption = None,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the plan that is asked about in $VISUAL or $EDITOR, have it checked, and have it built.

    While something major is found, the editor opens again with the findings on top; a file that is saved empty or as it
    was answers nothing. Exit 1: nothing was answered, and a file that is named keeps what was written; 2: nothing is
    asked that can be answered so.

    Example: orchestrator edit US-003

    Example: orchestrator show US-003 --json | jq .plan > plan.json; orchestrator edit US-003 --file plan.json
    """
    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    if daemon is not None:
        asked = asked_there(daemon, sprint, story, gate)
        there = There(daemon, asked, comment_text(comment), environment.user, file=file, force=force)
        judge: Judge = there.judge
    else:
        asked, there = question(environment, story, Choice.EDIT, sprint=sprint, number=gate), None
        judge = _judge_here(environment, asked, file, settings.plan.min_chars)
    if file is not None:
        draft = Draft(environment, asked, text_of(file), path=None if file == "-" else Path(file))
    else:
        draft = Draft(environment, asked, plan_text(asked.gate.plan, _head(asked)))
        _edit(draft, asked, judge, force=force, as_json=as_json)
    if there is not None:
        _sent(there, asked, draft, as_json=as_json)
    _submit(environment, asked, draft, judge(draft.text), comment, force=force, as_json=as_json)


def _judge_here(environment: Environment, asked: Asked, file: str | None, min_chars: int) -> Judge:
    files, packages = asyncio.run(project(environment, asked))

    def judge(text: str) -> Edited:
        if file is not None and file.lower().endswith(MARKDOWN):
            given = BroughtPlan(path=file, text=text)
            return read_markdown(given, asked.story, files, packages, min_chars)
        return read_edit(text, asked.story, files, packages)

    return judge


def _edit(draft: Draft, asked: Asked, judge: Judge, *, force: bool, as_json: bool) -> None:
    """Until the text is a plan that can be built, or nobody is there who could mend it; a person may leave."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    written = False
    while True:
        before = draft.text
        code = draft.edit(terminal=terminal)
        same = _words(draft.text) == _words(before)
        written = written or not same
        if code != 0 or same or not _words(draft.text):
            _leave(draft, asked, code, written=written and _words(draft.text) != "", as_json=as_json)
        edited = _judged(judge, draft)
        if edited.accepted(force=force) or not terminal:
            return
        for finding in edited.findings:
            say(str(finding))
        draft.text = commented(_again(edited, force), draft.text)


def _judged(judge: Judge, draft: Draft) -> Edited:
    try:
        return judge(draft.text)
    except ConfigError as error:
        raise ConfigError(f"{error.message}; what you wrote is kept in {draft.keep()}") from error


def _words(text: str) -> str:
    return body_of(text.replace("\r\n", "\n")).strip()


def _leave(draft: Draft, asked: Asked, code: int, *, written: bool, as_json: bool) -> None:
    """Nothing is answered; what a person wrote stays in its file."""
    why = f"the editor ended with exit code {code}" if code else "the plan was left as it was"
    kept = str(draft.keep()) if written else None
    if not written:
        draft.drop()
    if as_json:
        print_json({**named(asked), "counts": False, "findings": [], "kept": kept})
    hint = f"; what you wrote is kept in {kept}" if kept else ""
    say(f"error: nothing was answered: {why}{hint}")
    raise typer.Exit(Exit.NOT_DONE)


def _sent(there: There, asked: Asked, draft: Draft, *, as_json: bool) -> NoReturn:
    """What became of a plan that a daemon was sent."""
    if there.given is None:
        edited = _judged(there.judge, draft)
    if there.given is None:
        _refuse(asked, draft, edited, edited.barred, as_json=as_json)
    code = tell_given(there.given, as_json=as_json)
    if code is Exit.GOOD:
        draft.drop()
    else:
        say(f"what you wrote is kept in {draft.keep()}")
    raise typer.Exit(code)


def _refuse(asked: Asked, draft: Draft, edited: Edited, why: str, *, as_json: bool) -> NoReturn:
    """Nothing is answered: the plan is not accepted."""
    for finding in edited.findings:
        say(f"{finding}; {finding.fix}")
    if as_json:
        found = [finding.model_dump(mode="json") for finding in edited.findings]
        print_json({**named(asked), "counts": False, "findings": found, "kept": str(draft.keep())})
    say(f"error: {why}; what you wrote is kept in {draft.keep()}")
    raise typer.Exit(Exit.NOT_DONE)


def _submit(
    environment: Environment,
    asked: Asked,
    draft: Draft,
    edited: Edited,
    comment: str,
    *,
    force: bool,
    as_json: bool,
) -> None:
    if not edited.accepted(force=force):
        _refuse(asked, draft, edited, f"nothing was answered: {_refusal(edited)}", as_json=as_json)
    for finding in edited.findings:
        say(f"{finding}; {finding.fix}")
    try:
        code = answer(environment, asked, Choice.EDIT, comment, plan=edited.plan, as_json=as_json)
    except ConfigError as error:
        raise ConfigError(f"{error.message}; what you wrote is kept in {draft.keep()}") from error
    if code is Exit.GOOD:
        draft.drop()
    else:
        say(f"what you wrote is kept in {draft.keep()}")
    raise typer.Exit(code)


def _refusal(edited: Edited) -> str:
    if edited.barred:
        return f"the plan cannot be carried out: {edited.barred}"
    return "something major was found (--force has it built in spite of that)"


def _head(asked: Asked) -> Iterator[str]:
    """What a person sees above the plan."""
    gate = asked.gate
    until = f", to be answered until {gate.deadline:%Y-%m-%d %H:%M:%S} UTC" if gate.deadline else ""
    yield f"{asked.story} {asked.title}".strip() + f": plan {gate.iteration}, question {gate.number}{until}"
    criteria = asked.record.criteria.get(asked.story, ())
    yield from ("", "It shall satisfy", *(f"- {criterion}" for criterion in criteria)) if criteria else ()
    yield from ("", f"Why you are asked: {gate.reason}")
    yield from finding_comments([*gate.issues, *gate.notes])
    yield from _howto()


def _again(edited: Edited, force: bool) -> Iterator[str]:
    yield from ("Nothing is answered yet. What you wrote stands below; this was found in it:", "")
    yield from finding_comments(edited.findings)
    if force and edited.barred:
        yield from ("", f"--force does not help: {edited.barred}")
    yield from _howto()


def _howto() -> Iterator[str]:
    yield ""
    yield "Change the plan and save it: it is checked, and built as it is then. An empty file, or this one unchanged,"
    yield "answers nothing. files_to_create names each file that a task creates or changes, at most three and no tests;"
    yield "command_to_run is run after it; dependencies name tasks of this story that come before."
