"""`replan`: a person's word on a story that waits, or did not end well, which is then planned from the start."""

import asyncio
from typing import Annotated

import typer

from orchestrator.cli.common import (
    ConfigOption,
    JsonOption,
    SetOption,
    SprintOption,
    configured,
    print_json,
    say,
    told,
)
from orchestrator.cli.decide import GateOption, answer, comment_text
from orchestrator.domain.gate import Choice
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.gates import question, waits
from orchestrator.wiring.reset import reset

StoryArgument = Annotated[
    str, typer.Argument(metavar="STORY", help="A story that waits for a person, or that ended without being done.")
]
TellOption = Annotated[
    str,
    typer.Option("--comment", metavar="TEXT", help="What the architect is told; needed for a story that has ended."),
]


@told
def replan_command(
    story: StoryArgument,
    comment: TellOption = "",
    gate: GateOption = None,
    sprint: SprintOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a story planned from the start; a conflict that it waits for or ended in is overridden.

    A story that waits for a person is answered so, with or without a comment, also while `run` is alive. One that ended
    without being done needs the comment; what a reset of it clears is cleared, and the same `run` command then goes on.

    Example: orchestrator replan US-003 --comment "keep the file format, add a second file beside it"
    """
    settings, environment = configured(config, overrides)
    if gate is not None or waits(environment, story, sprint):
        asked = question(environment, story, Choice.REPLAN, sprint=sprint, number=gate)
        raise typer.Exit(answer(environment, asked, Choice.REPLAN, comment, as_json=as_json))
    _anew(story, comment_text(comment), sprint, settings, environment, as_json=as_json)


def _anew(
    story: str, comment: str, sprint: str | None, settings: Settings, environment: Environment, *, as_json: bool
) -> None:
    """Begin a story anew that has ended."""
    result = asyncio.run(reset(story, sprint, settings, environment, comment=comment))
    if result.warning:
        say(f"warning: {result.warning}")
    if as_json:
        print_json({"sprint": result.sprint, "stories": list(result.stories)})
    else:
        print(f"to be planned anew in sprint {result.sprint}: {story}; give the same run command again")
        if len(result.stories) > 1:
            print(f"reset with it: {', '.join(other for other in result.stories if other != story)}")
