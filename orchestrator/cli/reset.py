"""`reset`: make a story or a sprint as if it had not been run."""

from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, JsonOption, SetOption, UrlOption, configured, told
from orchestrator.cli.control import WhyOption, ordered
from orchestrator.cli.through import daemon_for
from orchestrator.domain.control import Verb


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
    daemon = daemon_for(environment, url)
    raise typer.Exit(ordered(settings, environment, daemon, Verb.RESET, name, sprint, comment, as_json=as_json))
