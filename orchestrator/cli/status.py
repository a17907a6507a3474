"""`status`: where each story of a sprint is, once or for as long as somebody works on it; here or of a daemon."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

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
from orchestrator.cli.console import STYLES, EventPrinter
from orchestrator.cli.logline import cut, safe
from orchestrator.cli.status_page import StatusPage, page_of
from orchestrator.cli.through import daemon_for
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.wiring.read import Reader
from orchestrator.wiring.remote import Remote
from orchestrator.wiring.shown import sprint_json

TITLE = 40
"""Characters of a title that stands before what happened last."""
POLL_S = 0.5
ASK_S = 2.0
"""Between two questions to a daemon."""
Look = Callable[[], StatusPage]
"""The sprint as it is now."""


@told
def status_command(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on for as long as the sprint is being run.")
    ] = False,
    sprint: SprintOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Where each story of a sprint is: of the state folder, or of the daemon at --url (ORCHESTRATOR_URL).

    With -f the lines are renewed in place on a terminal; elsewhere a line is printed when it changes.

    Example: orchestrator status -f --sprint SP-001
    """
    settings, environment = configured(config, overrides)
    if follow and as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    daemon = daemon_for(environment, url)
    if as_json:
        print_json(daemon.sprint(sprint) if daemon else sprint_json(Reader(environment).sprint(sprint)))
        return
    look = _there(daemon, environment, sprint) if daemon else _here(environment, sprint)
    printer = EventPrinter(settings, form="lines", stream=sys.stdout)
    try:
        _show(look, printer, follow=follow, wait_s=ASK_S if daemon else POLL_S)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _here(environment: Environment, sprint: str | None) -> Look:
    reader = Reader(environment)
    name = reader.sprint(sprint).record.sprint
    return lambda: page_of(sprint_json(reader.sprint(name)))


def _there(daemon: Remote, environment: Environment, sprint: str | None) -> Look:
    """One that was named is waited for when it is away; where the state folder is, that tells the rest."""
    first: list[dict[str, Any]] = [daemon.sprint(sprint)]
    name = str(first[0]["sprint"])

    def look() -> StatusPage:
        told = first.pop() if first else daemon.sprint_again(name, say, time.sleep)
        return page_of(told, daemon.url)

    def look_while_it_lives() -> StatusPage:
        told = first.pop() if first else daemon.sprint_while_there(name)
        return page_of(told if told is not None else sprint_json(Reader(environment).sprint(name)))

    return look_while_it_lives if daemon.found else look


def _show(look: Look, printer: EventPrinter, *, follow: bool, wait_s: float) -> None:
    page = look()
    if follow and sys.stdout.isatty():
        _renew(look, page, wait_s)
        return
    shown = _print(page, printer, {})
    while follow and page.running and not printer.closed:
        time.sleep(wait_s)
        page = look()
        shown = _print(page, printer, shown)


def _renew(look: Look, page: StatusPage, wait_s: float) -> None:
    """The lines in place; they stay when the last process has ended."""
    with Live(_group(page), console=Console(highlight=False), auto_refresh=False) as live:
        while page.running:
            time.sleep(wait_s)
            page = look()
            live.update(_group(page), refresh=True)


def _group(page: StatusPage) -> Group:
    """One line of the terminal per line: what is too long for it ends in an ellipsis."""
    lines = [line for _, line in _lines(page)]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _print(page: StatusPage, printer: EventPrinter, shown: dict[str, Text]) -> dict[str, Text]:
    """Print the lines that are not `shown` yet; all that are there now."""
    lines = dict(_lines(page))
    for place, line in lines.items():
        if shown.get(place) != line:
            printer.say(line)
    return lines


def _lines(page: StatusPage) -> Iterator[tuple[str, Text]]:
    """(what the line is about, the line)."""
    yield "", Text(safe(page.head))
    for row in page.rows:
        words = ": ".join(filter(None, (cut(row.title, TITLE), row.last)))
        state = (f"{row.status:<16}", STYLES.get(row.status, "dim"))
        yield row.story, Text.assemble(f"  {row.story:<12} ", state, f" {row.calls:>4} calls  ", safe(words))
    waiting = [row.story for row in page.rows if row.waits]
    yield " totals", Text(f"{page.counts}; waiting for a person: {', '.join(waiting)}" if waiting else page.counts)
