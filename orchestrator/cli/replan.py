"""`replan`: a person's word on a story that waits, or did not end well, which is then planned from the start."""

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
    print_json,
    say,
    told,
)
from orchestrator.cli.decide import GateOption, answer, comment_text, goes_on, tell_given
from orchestrator.cli.logline import safe
from orchestrator.cli.through import daemon_for
from orchestrator.domain.gate import Choice
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.gates import question, waits
from orchestrator.wiring.remote import Remote
from orchestrator.wiring.replanning import replan
from orchestrator.wiring.reset import reset_json

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
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a story planned from the start; a conflict that it waits for or ended in is overridden.

    A story that waits for a person is answered so, with or without a comment, also while `run` is alive. One that ended
    without being done needs the comment; what a reset of it clears is cleared. A `run` or `serve` at work on the sprint
    begins it at once, else the same `run` command goes on with it.

    Example: orchestrator replan US-003 --comment "keep the file format, add a second file beside it"
    """
    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    if daemon is not None:
        raise typer.Exit(_there(daemon, environment, story, comment, sprint, gate, as_json=as_json))
    if gate is not None or waits(environment, story, sprint):
        asked = question(environment, story, Choice.REPLAN, sprint=sprint, number=gate)
        raise typer.Exit(answer(environment, asked, Choice.REPLAN, comment, as_json=as_json))
    _anew(story, comment_text(comment), sprint, settings, environment, as_json=as_json)


def _anew(
    story: str, comment: str, sprint: str | None, settings: Settings, environment: Environment, *, as_json: bool
) -> None:
    """Begin a story anew that has ended."""
    result = asyncio.run(replan(story, sprint, settings, environment, comment=comment, by=environment.user))
    _tell(story, reset_json(result), as_json=as_json)


def _there(
    daemon: Remote,
    environment: Environment,
    story: str,
    comment: str,
    sprint: str | None,
    number: int | None,
    *,
    as_json: bool,
) -> Exit:
    """The same through a daemon, which knows whether the story waits or has ended."""
    said = {"comment": comment_text(comment), "gate": number, "by": environment.user}
    done = daemon.replan(sprint, story, said)
    if "counts" in done:
        return tell_given(done, as_json=as_json)
    _tell(story, done, as_json=as_json)
    return Exit.GOOD


def _tell(story: str, done: Mapping[str, Any], *, as_json: bool) -> None:
    stories = [str(one) for one in done.get("stories", ())]
    if done.get("warning"):
        say(f"warning: {done['warning']}")
    if as_json:
        print_json({"sprint": done["sprint"], "stories": stories})
        return
    print(safe(f"to be planned anew in sprint {done['sprint']}: {story}; {goes_on(done)} with it"))
    if len(stories) > 1:
        print(safe(f"reset with it: {', '.join(other for other in stories if other != story)}"))
