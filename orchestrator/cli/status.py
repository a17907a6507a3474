"""`status`: where each story of a sprint is, once or for as long as the sprint is being run."""

import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import Context, Exit, SprintOption, command, command_group, print_json, say
from orchestrator.cli.console import EventPrinter
from orchestrator.cli.sprint_lines import list_lines, make_live, read_shown
from orchestrator.core.errors import ConfigError

app = command_group()


@command(app, "status")
def status_command(
    context: Context,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Continue while the sprint is running.")] = False,
    sprint: SprintOption = None,
) -> int:
    """Show where each story of a sprint is, in the state folder or at the daemon of --url (ORCHESTRATOR_URL).

    With -f a terminal shows the sprint and its stories at work, and all lines at the end; elsewhere a line is printed
    when it changes.

    Example: orchestrator status -f --sprint SP-001
    """
    if follow and context.as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    source = context.sprints
    if context.as_json:
        print_json(source.sprint(sprint))
        return Exit.GOOD
    now, known, code = read_shown(source.sprint(sprint), source.url), dict[str, Text](), Exit.GOOD
    printer = EventPrinter(context.settings, form="lines", stream=sys.stdout)
    console = Console(highlight=False)
    in_place = follow and console.is_interactive and sys.stdout.isatty()
    try:
        with make_live(console, lambda: now) if in_place else nullcontext():
            while follow and now.is_running and not printer.closed:
                if not in_place:
                    known = _print_new(list_lines(now, source.url), known, printer)
                time.sleep(source.poll_s)
                now = read_shown(source.follow(now.sprint, say), source.url)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    at = datetime.now(UTC) if sys.stdout.isatty() else None
    _print_new(list_lines(now, source.url, at), known, printer)
    return code


def _print_new(lines: dict[str, Text], known: Mapping[str, Text], printer: EventPrinter) -> dict[str, Text]:
    """Prints what is not known yet; returns what is known then."""
    for place, line in lines.items():
        if known.get(place) != line:
            printer.say(line)
    return lines
