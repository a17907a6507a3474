"""`status`: where each story of a sprint is, once or for as long as somebody works on it."""

import sys
import time
from collections.abc import Iterator
from typing import Annotated

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
    configured,
    print_json,
    told,
)
from orchestrator.cli.console import STYLES, EventPrinter
from orchestrator.cli.gates import WAITING, to_type
from orchestrator.cli.logline import cut, safe
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError
from orchestrator.wiring.read import Reader, SprintView
from orchestrator.wiring.shown import sprint_json, waiting_of

TITLE = 40
"""Characters of a title that stands before what happened last."""
POLL_S = 0.5


@told
def status_command(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on for as long as the sprint is being run.")
    ] = False,
    sprint: SprintOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Where each story of a sprint is.

    With -f the lines are renewed in place on a terminal; elsewhere a line is printed when it changes.

    Example: orchestrator status -f --sprint SP-001
    """
    settings, environment = configured(config, overrides)
    if follow and as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    reader = Reader(environment)
    view = reader.sprint(sprint)
    if as_json:
        print_json(sprint_json(view))
        return
    printer = EventPrinter(settings, form="lines", stream=sys.stdout)
    try:
        if follow and sys.stdout.isatty():
            _renew(reader, view)
            return
        shown = _print(view, printer, {})
        while follow and view.running_pid is not None and not printer.closed:
            time.sleep(POLL_S)
            view = reader.sprint(view.record.sprint)
            shown = _print(view, printer, shown)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _renew(reader: Reader, view: SprintView) -> None:
    """The lines in place; they stay when the last process has ended."""
    with Live(_page(view), console=Console(highlight=False), auto_refresh=False) as live:
        while view.running_pid is not None:
            time.sleep(POLL_S)
            view = reader.sprint(view.record.sprint)
            live.update(_page(view), refresh=True)


def _page(view: SprintView) -> Group:
    """One line of the terminal per line: what is too long for it ends in an ellipsis."""
    lines = [line for _, line in _lines(view)]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _print(view: SprintView, printer: EventPrinter, shown: dict[str, Text]) -> dict[str, Text]:
    """Print the lines that are not `shown` yet; all that are there now."""
    lines = dict(_lines(view))
    for place, line in lines.items():
        if shown.get(place) != line:
            printer.say(line)
    return lines


def _lines(view: SprintView) -> Iterator[tuple[str, Text]]:
    """(what the line is about, the line)."""
    waiting = waiting_of(view)
    yield "", Text(f"Sprint {view.record.sprint}, {_alive(view)}, backlog {view.record.backlog}")
    for story in view.report.stories:
        gate = waiting.get(story.id)
        status = WAITING if gate else story.status.value
        last = f"{cut(gate.reason)}; {to_type(story.id, gate)}" if gate else cut(view.histories[story.id].last_message)
        title = f"{cut(story.title, TITLE)}: " if story.title else ""
        state = (f"{status:<16}", STYLES.get(status, "dim"))
        yield story.id, Text.assemble(f"  {story.id:<12} ", state, f" {story.calls:>4} calls  ", safe(title + last))
    totals = view.report.totals
    counts = ", ".join(f"{totals[s.value]} {s.value}" for s in StoryStatus if totals[s.value])
    yield " totals", Text(f"{counts}; waiting for a person: {', '.join(waiting)}" if waiting else counts)


def _alive(view: SprintView) -> str:
    if view.running_pid is not None:
        return f"running as pid {view.running_pid}"
    ended = all(story.status.final for story in view.report.stories)
    return "not running" if ended else "not running (the command that began it goes on)"
