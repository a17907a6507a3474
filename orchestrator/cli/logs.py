"""`logs`: the event log, filtered, followed."""

import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, Exit, SetOption, SprintOption, configured, say, told
from orchestrator.cli.console import EventPrinter
from orchestrator.domain.events import Event, Level
from orchestrator.errors import ConfigError
from orchestrator.wiring.read import Reader

POLL_S = 0.3
_AGO = re.compile(r"^(\d+)([smhd])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

Wanted = Callable[[Event], bool]


@told
def logs_command(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on printing until interrupted.")] = False,
    sprint: SprintOption = None,
    story: Annotated[str | None, typer.Option(help="Only this story.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    persona: Annotated[str | None, typer.Option(help="Only this persona.")] = None,
    level: Annotated[str | None, typer.Option(help="This level and above: debug, info, warn, error.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME|15m", help="Since an ISO time, or so long ago.")] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """What happened, as it was recorded.

    Example: orchestrator logs -f --story US-003 --level warn
    """
    settings, environment = configured(config, overrides)
    reader = Reader(environment)
    if sprint is not None:
        reader.expect_run(sprint)
    if story is not None and not follow:
        reader.expect_story(story, sprint)
    wanted = _filter(story, task, persona, _level(level, settings.log.level), _since(since))
    shown = settings.model_copy(update={"log": settings.log.model_copy(update={"level": "debug"})})
    form = "json" if as_json or settings.log.format == "json" else "lines"
    printer = EventPrinter(shown, form=form, stream=sys.stdout)
    try:
        seen = _print(reader, sprint, wanted, printer, 0)
        if follow and (story is not None or not seen):
            _tell_waiting(reader, story, sprint)
        while follow and not printer.closed:
            time.sleep(POLL_S)
            seen = _print(reader, sprint, wanted, printer, seen)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    if not seen:
        say(f"nothing is recorded in {environment.home} yet; `orchestrator run BACKLOG` starts a sprint")


def _tell_waiting(reader: Reader, story: str | None, sprint: str | None) -> None:
    """Whoever follows what is not there yet, perhaps by a mistyped name, is told so and may wait for it."""
    try:
        if story is None:
            reader.sprint(sprint)
        else:
            reader.expect_story(story, sprint)
    except ConfigError as error:
        say(f"waiting: {error.message}")


def _print(reader: Reader, sprint: str | None, wanted: Wanted, printer: EventPrinter, after: int) -> int:
    """Print what is wanted behind `after`, while somebody reads; the number of the last event seen."""
    for seq, event in reader.events(sprint, after):
        after = seq
        if wanted(event):
            printer.event(event)
        if printer.closed:
            break
    return after


def _filter(story: str | None, task: str | None, persona: str | None, level: Level, since: datetime | None) -> Wanted:
    def wanted(event: Event) -> bool:
        return (
            story in {None, event.story}
            and task in {None, event.task}
            and persona in {None, event.persona}
            and event.level.rank >= level.rank
            and (since is None or event.time >= since)
        )

    return wanted


def _level(asked: str | None, configured_level: str) -> Level:
    name = asked or configured_level
    if name not in set(Level):
        raise ConfigError(f"--level {name}: use one of {', '.join(Level)}")
    return Level(name)


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    ago = _AGO.match(text)
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        time_given = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--since {text}: give an ISO time or a span such as 90s, 15m, 2h, 1d") from error
    return time_given if time_given.tzinfo else time_given.replace(tzinfo=UTC)
