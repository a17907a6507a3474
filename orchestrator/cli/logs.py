"""`logs`: the event log, filtered, followed; of the state folder or of a daemon."""

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, SprintOption, command, command_group, say
from orchestrator.cli.console import EventPrinter
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event, Level
from orchestrator.records.logs import LocalLog, LogQuery
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment

app = command_group()
AfterOption = Annotated[
    int,
    typer.Option("--after", metavar="SEQ", min=0, max=2**63 - 1, help="After this event (`seq` in --json lines)."),
]
ALL = 10**9
"""Characters of a text that has been cut already."""
# `90s`, `15m`, `2h`, `1d`
_AGO = re.compile(r"^(\d+)([smhd])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@command(app, "logs", "as_json")
def logs_command(
    context: Context,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Keep printing until interrupted.")] = False,
    sprint: SprintOption = None,
    story: Annotated[str | None, typer.Option(help="Only this story.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    persona: Annotated[str | None, typer.Option(help="Only this persona.")] = None,
    level: Annotated[str | None, typer.Option(help="This level and above: debug, info, warn, error.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME|15m", help="Since an ISO time, or a span ago.")] = None,
    after: AfterOption = 0,
    tail: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the last N of those before.")] = None,
    lines: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> int:
    """Print the event log of the state folder, or of the daemon at --url (ORCHESTRATOR_URL).

    With -f it waits for a database or a daemon that is away; no event is missed or printed twice.

    Example: orchestrator logs -f --tail 20 --story US-003 --level warn

    Example: orchestrator logs -f --url https://daemon.example.org
    """
    settings = context.settings
    query = LogQuery(
        sprint=sprint, story=story, task=task, persona=persona, since=_since(since), tail=tail,
        level=_level(level, settings.log.level),
    )  # fmt: skip
    from orchestrator.client.local import LocalFolder

    source = context.sprints
    # The query filters, and what a daemon says was cut by its own settings.
    cap = settings.log.text_cap if isinstance(source, LocalFolder) else ALL
    shown = settings.log.model_copy(update={"level": "debug", "text_cap": cap})
    form = "json" if lines or settings.log.format == "json" else "lines"
    printer = EventPrinter(settings.model_copy(update={"log": shown}), form=form, stream=sys.stdout)
    try:
        if isinstance(source, LocalFolder):
            _local(context.environment, query, after, printer, follow=follow)
        else:
            with closing(source.log(query, after)) as log:
                _print(log.followed(say) if follow else log.recorded(), printer)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return Exit.GOOD


def _local(environment: Environment, query: LogQuery, after: int, printer: EventPrinter, *, follow: bool) -> None:
    reader = Reader(environment)
    if query.sprint is not None:
        reader.expect_run(query.sprint)
    if query.story is not None and not follow:
        reader.expect_story(query.story, query.sprint)
    with closing(LocalLog(environment, query, after=after)) as log:
        _print(log.recorded(), printer)
        # A story may come later; a mistyped one never does.
        if follow and (query.story is not None or not log.seen):
            _warn_unknown(reader, query.story, query.sprint)
        if follow:
            _print(log.to_come(say), printer)
        if not log.seen:
            say(f"nothing is recorded in {environment.home} yet; `orchestrator run BACKLOG` starts a sprint")


def _print(events: Iterator[tuple[int, Event]], printer: EventPrinter) -> None:
    """Prints until the stream's reader has gone."""
    while not printer.closed and (one := next(events, None)) is not None:
        printer.event(one[1], seq=one[0])


def _warn_unknown(reader: Reader, story: str | None, sprint: str | None) -> None:
    """Says that what is followed is not there yet, perhaps for a mistyped name."""
    try:
        if story is None:
            reader.sprint(sprint)
        else:
            reader.expect_story(story, sprint)
    except ConfigError as error:
        say(f"waiting: {error.message}")


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
