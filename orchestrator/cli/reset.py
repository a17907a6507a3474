"""`reset`: make a story or a sprint as if it had not been run."""

import asyncio
from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, JsonOption, SetOption, configured, print_json, say, told
from orchestrator.wiring.reset import reset


@told
def reset_command(
    name: Annotated[str, typer.Argument(metavar="SPRINT|STORY", help="A sprint's or a story's id.")],
    sprint: Annotated[str | None, typer.Option(metavar="ID", help="The story's sprint; default: the latest.")] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Clear a story's (or a whole sprint's) cells and branches, so that `run` begins it anew.

    What was merged already stays merged; stories that were blocked by a reset story are reset with it.

    Example: orchestrator reset US-003
    """
    settings, environment = configured(config, overrides)
    result = asyncio.run(reset(name, sprint, settings, environment))
    if result.warning:
        say(f"warning: {result.warning}")
    if as_json:
        print_json({"sprint": result.sprint, "stories": list(result.stories)})
    else:
        print(f"reset in sprint {result.sprint}: {', '.join(result.stories)}")
