"""`approve`, `reject`, `cancel`: a person's word on a story that waits for one, from any terminal and at any time."""

import asyncio
from typing import Annotated

import typer

from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    SprintOption,
    configured,
    fail,
    print_json,
    say,
    told,
)
from orchestrator.cli.logline import safe
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.gate import Choice, GateAnswer
from orchestrator.settings import Environment
from orchestrator.sprint.answering import answered_first, kept_comment, settled
from orchestrator.wiring.gates import Asked, Given, give, given_json, question

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
    asked = question(environment, story, Choice.APPROVE, sprint=sprint, number=gate)
    raise typer.Exit(answer(environment, asked, Choice.APPROVE, comment, as_json=as_json))


@told
def reject_command(
    story: WaitingArgument,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="What is to change.")],
    gate: GateOption = None,
    sprint: SprintOption = None,
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
    asked = question(environment, story, Choice.REJECT, sprint=sprint, number=gate)
    raise typer.Exit(answer(environment, asked, Choice.REJECT, comment, as_json=as_json))


@told
def cancel_command(
    story: WaitingArgument,
    comment: CommentOption = "",
    gate: GateOption = None,
    sprint: SprintOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give up a story that waits for a person: it ends as cancelled, and what waits for it as blocked.

    About a merge: the story stays on its branch, finished and unmerged (needs_attention).

    Exit 1: somebody had answered a moment before; 2: nothing is asked that can be answered so.

    Example: orchestrator cancel US-003 --comment "no longer wanted"
    """
    environment = configured(config, overrides)[1]
    asked = question(environment, story, Choice.CANCEL, sprint=sprint, number=gate)
    raise typer.Exit(answer(environment, asked, Choice.CANCEL, comment, as_json=as_json))


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
    if as_json:
        print_json(given_json(asked, given))
    elif given.first:
        print(safe(f"{asked.story}: {settled(asked.gate, given.answer)}; {_goes_on(given)}"))
    if not given.first:
        say(f"error: {answered_first(asked.story, asked.gate, given.answer, given.at)}")
    return Exit.GOOD if given.first else Exit.NOT_DONE


def comment_text(comment: str) -> str:
    """A person's comment as it is kept and told to the architect: without secrets, which is said.

    Raises ConfigError when it is no text, or one that no prompt should hold.
    """
    plain = kept_comment(comment)
    if plain != comment.strip():
        say("warning: what looks like a key or a password was left out of the comment")
    return plain


def _goes_on(given: Given) -> str:
    if given.running_pid is not None:
        return f"pid {given.running_pid} goes on with it"
    return "nobody runs the sprint now, the same run command goes on with it"
