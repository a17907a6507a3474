"""`pause`, `resume`, `cancel`, `retry`: orders to a sprint or a story, obeyed by whoever works on it, else at once."""

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
from orchestrator.cli.decide import GateOption, comment_text, decided
from orchestrator.cli.logline import safe
from orchestrator.cli.through import daemon_for
from orchestrator.domain.control import Settled, Verb
from orchestrator.domain.gate import Choice
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.gates import at_question
from orchestrator.wiring.remote import Remote

WhomArgument = Annotated[
    str | None, typer.Argument(metavar="[STORY|SPRINT]", help="A story's or a sprint's id; default: the whole sprint.")
]
WhoseOption = Annotated[
    str | None, typer.Option("--sprint", metavar="ID", help="The sprint; default: the latest that has the story.")
]
WhyOption = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why; kept with the order.")]


@told
def pause_command(
    name: WhomArgument = None,
    sprint: WhoseOption = None,
    comment: WhyOption = "",
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin nothing new of a sprint or a story until `resume`; calls at work end, and nothing paid for is lost.

    The order is recorded, so it stands through restarts; whoever works on the sprint (`run`, `serve`) obeys it.
    Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator pause --comment "the budget is under review"
    """
    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    raise typer.Exit(ordered(settings, environment, daemon, Verb.PAUSE, name, sprint, comment, as_json=as_json))


@told
def resume_command(
    name: WhomArgument = None,
    sprint: WhoseOption = None,
    comment: WhyOption = "",
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a sprint or a story that was paused. Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator resume US-003
    """
    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    raise typer.Exit(ordered(settings, environment, daemon, Verb.RESUME, name, sprint, comment, as_json=as_json))


@told
def cancel_command(
    name: WhomArgument = None,
    sprint: WhoseOption = None,
    comment: WhyOption = "",
    gate: GateOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give up a story, or a whole sprint: it ends as cancelled, and what waits for it as blocked; branches are kept.

    A story that waits for a person is answered so. About a merge: the story stays on its branch, finished and unmerged
    (needs_attention). One that is at work is cut off at once, calls and commands too; `retry` runs it anew.

    Exit 1: it was refused, or somebody had answered a moment before; 2: there is nothing of this name to give up.

    Example: orchestrator cancel US-003 --comment "no longer wanted"
    """
    settings, environment = configured(config, overrides)
    if name is None and (sprint is None or gate is not None):
        raise ConfigError("name the story that is to be given up, or with --sprint the whole sprint")
    daemon = daemon_for(environment, url)
    if name is not None and (gate is not None or _at_question(environment, daemon, name, sprint)):
        code = decided(environment, daemon, name, Choice.CANCEL, comment, sprint, gate, as_json=as_json)
    else:
        code = ordered(settings, environment, daemon, Verb.CANCEL, name, sprint, comment, as_json=as_json)
    raise typer.Exit(code)


def _at_question(environment: Environment, daemon: Remote | None, name: str, sprint: str | None) -> bool:
    """Whether the story of this name has asked a person last: of two answers the first counts, and no order is one."""
    if daemon is None:
        return at_question(environment, name, sprint)
    in_sprint, story = daemon.whom(name, sprint)
    return story is not None and daemon.at_question(in_sprint, story)


@told
def retry_command(
    name: WhomArgument = None,
    sprint: WhoseOption = None,
    comment: WhyOption = "",
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a story anew that ended without being done, and what it had blocked; without a story, all such of the sprint.

    A daemon begins it at once; else the command that began the sprint does, when it is given again.
    Exit 1: it was refused; 2: there is no such sprint or story.

    Example: orchestrator retry US-003
    """
    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    raise typer.Exit(ordered(settings, environment, daemon, Verb.RETRY, name, sprint, comment, as_json=as_json))


def ordered(
    settings: Settings,
    environment: Environment,
    daemon: Remote | None,
    verb: Verb,
    name: str | None,
    sprint: str | None,
    comment: str,
    *,
    as_json: bool,
) -> Exit:
    """Give an order, here or through a daemon, and tell what became of it. Raises ConfigError for an unknown name."""
    said = comment_text(comment)
    if daemon is not None:
        place = daemon.whom(name, sprint)
        return tell_settled(daemon.order(verb, *place, by=environment.user, comment=said), as_json=as_json)
    # Imported here: it works on repositories, and most commands do not.
    from orchestrator.wiring.control import order, reset_or_order, whom

    by = environment.user
    if verb is Verb.RESET and name is not None:
        work = reset_or_order(environment, settings, name, sprint, by=by, comment=said)
    else:
        in_sprint, story = whom(environment, name, sprint)
        work = order(environment, settings, verb, sprint=in_sprint, story=story, by=by, comment=said)
    return tell_settled(asyncio.run(work), as_json=as_json)


def tell_settled(settled: Settled, *, as_json: bool) -> Exit:
    """What became of an order, and the exit code of that."""
    if as_json:
        print_json(settled.model_dump(mode="json"))
    elif settled.done:
        print(safe(settled.message))
    if not settled.done:
        say(f"error: {settled.message}")
    return Exit.GOOD if settled.done else Exit.NOT_DONE
