"""`reset`: make a story or a sprint as if it had not been run."""

import asyncio
from typing import Annotated

import typer

from orchestrator.cli.common import (
    ConfigOption,
    Exit,
    JsonOption,
    SetOption,
    UrlOption,
    configured,
    print_json,
    say,
    told,
)
from orchestrator.cli.control import WhyOption, ordered
from orchestrator.domain.control import Verb
from orchestrator.errors import SprintLocked
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.remote import remote
from orchestrator.wiring.reset import reset


@told
def reset_command(
    name: Annotated[str, typer.Argument(metavar="SPRINT|STORY", help="A sprint's or a story's id.")],
    sprint: Annotated[str | None, typer.Option(metavar="ID", help="The story's sprint; default: the latest.")] = None,
    comment: WhyOption = "",
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Clear a story's (or a whole sprint's) cells and branches, so that it is begun anew.

    What was merged already stays merged; stories that were blocked by a reset story are reset with it. Where nobody
    works on the sprint it is done here, and `run` begins it anew; a `run` or `serve` at work on it cuts off what it
    does and begins anew itself.

    Example: orchestrator reset US-003
    """
    settings, environment = configured(config, overrides)
    if remote(environment, url) is None:
        try:
            raise typer.Exit(_reset(settings, environment, name, sprint, as_json=as_json))
        except SprintLocked:
            pass  # whoever works on it does it
    raise typer.Exit(ordered(settings, environment, url, Verb.RESET, name, sprint, comment, as_json=as_json))


def _reset(settings: Settings, environment: Environment, name: str, sprint: str | None, *, as_json: bool) -> Exit:
    result = asyncio.run(reset(name, sprint, settings, environment))
    if result.warning:
        say(f"warning: {result.warning}")
    if as_json:
        print_json({"sprint": result.sprint, "stories": list(result.stories)})
    else:
        print(f"reset in sprint {result.sprint}: {', '.join(result.stories)}")
    return Exit.GOOD
