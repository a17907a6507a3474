"""`replan`: a person's word on a story that did not end well; the same `run` then plans it anew."""

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
from orchestrator.wiring.reset import reset


@told
def replan_command(
    story: Annotated[str, typer.Argument(metavar="STORY", help="A story that ended without being done.")],
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="What the architect is told.")],
    sprint: SprintOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a story planned anew with a comment; a conflict it ended in is overridden.

    Clears what a reset of the story clears. The same `run` command then goes on with it: the architect is given the
    comment, and a conflict that is reported again goes back as a finding.

    Example: orchestrator replan US-003 --comment "keep the file format, add a second file beside it"
    """
    settings, environment = configured(config, overrides)
    result = asyncio.run(reset(story, sprint, settings, environment, comment=comment))
    if result.warning:
        say(f"warning: {result.warning}")
    if as_json:
        print_json({"sprint": result.sprint, "stories": list(result.stories)})
    else:
        print(f"to be planned anew in sprint {result.sprint}: {story}; give the same run command again")
        if len(result.stories) > 1:
            print(f"reset with it: {', '.join(other for other in result.stories if other != story)}")
