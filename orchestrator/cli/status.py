"""`status`: where each story of a sprint is, once or for as long as somebody works on it."""

import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer
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
from orchestrator.domain.redaction import redact
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError
from orchestrator.wiring.read import Reader, SprintView

LINE, TITLE = 100, 40
"""Characters of a foreign text, and of a title that stands before one, in a line."""
POLL_S = 0.5


@told
def status_command(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print what changes for as long as the sprint is being run.")
    ] = False,
    sprint: SprintOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Where each story of a sprint is.

    Example: orchestrator status --sprint SP-001
    """
    settings, environment = configured(config, overrides)
    if follow and as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    reader = Reader(environment)
    view = reader.sprint(sprint)
    if as_json:
        print_json({**view.report.model_dump(mode="json"), "running_pid": view.running_pid})
        return
    printer = EventPrinter(settings, form="lines", stream=sys.stdout)
    shown = _print(view, printer, {})
    try:
        while follow and view.running_pid is not None and not printer.closed:
            time.sleep(POLL_S)
            view = reader.sprint(view.record.sprint)
            shown = _print(view, printer, shown)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def cut(text: str, most: int = LINE) -> str:
    """The first line of a foreign text, at most so long."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= most else f"{line[:most]}…"


def _print(view: SprintView, printer: EventPrinter, shown: dict[str, Text]) -> dict[str, Text]:
    """Print the lines that are not `shown` yet; all that are there now."""
    lines = dict(_lines(view))
    for place, line in lines.items():
        if shown.get(place) != line:
            printer.say(line)
    return lines


def _lines(view: SprintView) -> Iterator[tuple[str, Text]]:
    """(what the line is about, the line)."""
    alive = f"running as pid {view.running_pid}" if view.running_pid else "not running"
    yield "", Text(f"Sprint {view.record.sprint}, {alive}, backlog {view.record.backlog}")
    for story in view.report.stories:
        status = story.status.value
        title = f"{cut(story.title, TITLE)}: " if story.title else ""
        latest = redact(title + cut(view.histories[story.id].last_message))
        state = (f"{status:<16}", STYLES.get(status, ""))
        yield story.id, Text.assemble(f"  {story.id:<12} ", state, f" {story.calls:>4} calls  ", latest)
    totals = view.report.totals
    yield " totals", Text(", ".join(f"{totals[s.value]} {s.value}" for s in StoryStatus if totals[s.value]))
