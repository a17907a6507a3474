"""What a person sees while a sprint runs: live on a terminal, plain lines otherwise, JSON lines on request."""

import sys
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.cli.common import say, silence
from orchestrator.cli.gates import WAITING, to_type
from orchestrator.cli.logline import HEALINGS, cut, plain_line, safe
from orchestrator.domain.events import Event, Level
from orchestrator.domain.gate import GATE_OPENED, Gate
from orchestrator.domain.log_line import json_line
from orchestrator.domain.words import printable
from orchestrator.errors import ConfigError
from orchestrator.settings import Settings

STYLES = {
    "done": "green",
    "executing": "cyan",
    "failed": "red",
    "needs_attention": "yellow",
    "blocked": "magenta",
    "conflicted": "yellow",
    "cancelled": "magenta",
    WAITING: "bold yellow",
}
"""A story's status → its colour."""
_RUNNING = frozenset({"executing", WAITING})
"""Statuses of stories that have a line in the live table."""


class _Console(Console):
    """A console whose closed pipe is an error like any other, not the end of the process."""

    def on_broken_pipe(self) -> None:
        """Called by rich where it caught the error."""
        raise BrokenPipeError


class EventPrinter:
    """Prints events as they are recorded. `with` keeps a live table of the running stories on a terminal.

    When nobody reads the stream any more (`| head`), `closed` turns true and nothing is printed from then on.
    """

    def __init__(self, settings: Settings, *, form: str, stream: TextIO) -> None:
        self._level = Level(settings.log.level)
        self._cap = settings.log.text_cap
        self._form = form
        self._console = _Console(file=stream, highlight=False, soft_wrap=True)
        self._stream = stream
        self.closed = False
        self._stories: dict[str, tuple[str, str]] = {}
        live = form == "plain" and self._console.is_terminal
        self._live = Live(console=self._console, refresh_per_second=8, transient=True) if live else None

    def __enter__(self) -> "EventPrinter":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, event: Event, *, seq: int | None = None) -> None:
        """Print one event if its level is wanted; with its number in the log where that is known."""
        self._follow(event)
        if event.level.rank < self._level.rank:
            return
        if self._form == "json":
            self._print(json_line(event, self._cap, seq=seq))
            return
        self._print(Text(plain_line(event), style=_style(event)))

    def say(self, message: str | Text) -> None:
        """A sentence for people that is no event."""
        if self._form == "json":
            say(str(message))
        else:
            self._print(Text(message) if isinstance(message, str) else message)

    def waits(self, story: str, gate: Gate) -> None:
        """A story that waited for a person already when this process began: its question is no new event."""
        self._stories[story] = (WAITING, to_type(story, gate))
        self.say(f"{story} still waits for a person: {safe(cut(gate.reason))}; {to_type(story, gate)}")

    def _print(self, line: str | Text) -> None:
        if self.closed:
            return
        try:
            if isinstance(line, Text):
                line.plain = printable(line.plain)
                self._console.print(line)
            else:
                print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            self.closed = True
            silence(self._stream)

    def _follow(self, event: Event) -> None:
        if self._live is None or event.story is None:
            return
        if event.name == GATE_OPENED:
            self._stories[event.story] = (WAITING, to_type(event.story, Gate.model_validate(event.data["gate"])))
        else:
            status = str(event.data.get("status", "executing")) if event.name == "story_finished" else "executing"
            self._stories[event.story] = (status, cut(safe(event.message), 90))
        self._live.update(self._table())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name in (True, True, False):
            table.add_column(no_wrap=name)  # a narrow terminal takes from the message, and a story keeps its one line
        for story, (status, message) in self._stories.items():
            if status in _RUNNING:
                told = Text(message, style="dim", no_wrap=True, overflow="ellipsis")
                table.add_row(Text(story), Text(status, style=STYLES.get(status, "")), told)
        return table


def _style(event: Event) -> str:
    """A story's end in the colour of its status; what healed and what is not right in yellow; details faint."""
    if event.name == "story_finished":
        return STYLES.get(str(event.data.get("status")), "")
    if event.level is Level.ERROR:
        return "red"
    if event.level is Level.WARN or event.name in HEALINGS:
        return "yellow"
    return "dim" if event.level is Level.DEBUG else ""


def printer_for(settings: Settings, *, as_json: bool, log_format: str | None) -> EventPrinter:
    """The printer a command's options ask for: with --json the events go to stderr."""
    form = log_format or settings.log.format
    if form not in {"auto", "plain", "json"}:
        raise ConfigError(f"--log-format {form}: use plain or json")
    stream = sys.stderr if as_json else sys.stdout
    return EventPrinter(settings, form="json" if form == "json" else "plain", stream=stream)
