"""`approve`, `reject`: a person's word on a story that waits for one, from any terminal and at any time."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    SprintOption,
    UrlOption,
    configured,
    fail,
    print_json,
    say,
    told,
)
from orchestrator.cli.logline import safe
from orchestrator.cli.through import daemon_for
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.gate import Choice, GateAnswer
from orchestrator.settings import Environment
from orchestrator.sprint.answering import kept_comment
from orchestrator.wiring.gates import Asked, give, given_json, question
from orchestrator.wiring.remote import Remote

WaitingArgument = Annotated[str, typer.Argument(metavar="STORY", help="A story that waits for a person.")]
CommentOption = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why; kept with the answer.")]
GateOption = Annotated[
    int | None, typer.Option("--gate", metavar="N", help="Only if this question of the story still stands.")
]


@told
def approve_command(
    story: WaitingArgument,
    comment: CommentOption = "",
    gate: GateOption = None,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the plan that is asked about built as it is, or override the conflict that is asked about.

    About a merge: the tests that ran before and do not run with this story may go.

    It is one recorded answer: it works while `run` is alive and while nobody runs the sprint. Exit 1: somebody had
    answered a moment before; 2: nothing is asked that can be answered so.

    Example: orchestrator approve US-003 --gate 1
    """
    environment = configured(config, overrides)[1]
    daemon = daemon_for(environment, url)
    raise typer.Exit(decided(environment, daemon, story, Choice.APPROVE, comment, sprint, gate, as_json=as_json))


@told
def reject_command(
    story: WaitingArgument,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="What is to change.")],
    gate: GateOption = None,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the plan back to the architect with a comment: one more revision than plan.max_iterations allows.

    About a merge: the developer is asked once more to bring both sides together.

    Exit 1: somebody had answered a moment before; 2: nothing is asked that can be answered so.

    Example: orchestrator reject US-003 --comment "use the table that is there"
    """
    if not comment.strip():
        fail("the comment is empty: say what is to change")
    environment = configured(config, overrides)[1]
    daemon = daemon_for(environment, url)
    raise typer.Exit(decided(environment, daemon, story, Choice.REJECT, comment, sprint, gate, as_json=as_json))


def decided(
    environment: Environment,
    daemon: Remote | None,
    story: str,
    choice: Choice,
    comment: str,
    sprint: str | None,
    number: int | None,
    *,
    as_json: bool,
) -> Exit:
    """Give the answer, here or through a daemon."""
    if daemon is None:
        asked = question(environment, story, choice, sprint=sprint, number=number)
        return answer(environment, asked, choice, comment, as_json=as_json)
    said = {"choice": choice.value, "comment": comment_text(comment), "gate": number, "by": environment.user}
    return tell_given(daemon.answer(sprint, story, said), as_json=as_json)


def answer(
    environment: Environment,
    asked: Asked,
    choice: Choice,
    comment: str,
    *,
    plan: Breakdown | None = None,
    as_json: bool = False,
) -> Exit:
    """Give the answer and tell what became of it: GOOD when it counts, NOT_DONE when somebody was first.

    Raises ConfigError as `wiring.gates.give` does, and for a comment that is no text.
    """
    number, said = asked.gate.number, comment_text(comment)
    mine = GateAnswer(number=number, choice=choice, comment=said, plan=plan, by=environment.user)
    given = asyncio.run(give(environment, asked, mine))
    return tell_given(given_json(asked, given), as_json=as_json)


def tell_given(given: Mapping[str, Any], *, as_json: bool) -> Exit:
    """What became of an answer, from `given_json` here or of a daemon."""
    first = given.get("counts") is True
    if as_json:
        print_json(dict(given))
    elif first:
        pid = given.get("running_pid")
        alive = f"pid {pid} goes on" if pid is not None else f"nobody runs the sprint now, {goes_on(given)}"
        print(safe(f"{given['message']}; {alive} with it"))
    if not first:
        say(f"error: {given['message']}")
    return Exit.GOOD if first else Exit.NOT_DONE


def comment_text(comment: str) -> str:
    """A person's comment as it is kept and told to the architect: without secrets, which is said.

    Raises ConfigError when it is no text, or one that no prompt should hold.
    """
    plain = kept_comment(comment)
    if plain != comment.strip():
        say("warning: what looks like a key or a password was left out of the comment")
    return plain


def goes_on(told: Mapping[str, Any]) -> str:
    """Which command goes on with a sprint that nobody works on, from what is told of it."""
    return "`orchestrator serve` goes on" if told.get("begun_by") == "serve" else "the same run command goes on"
