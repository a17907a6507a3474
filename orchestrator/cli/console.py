"""Shows a running sprint: live on a terminal, plain lines otherwise, JSON lines on request.

A story's question and its answers, as lines for people (`show`).
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import HEALINGS, cut, plain_line, safe, say, silence
from orchestrator.cli.sprint_lines import STYLES, ShownSprint, describe_choices, make_live, read_shown
from orchestrator.core.calls.progress import CallProgress
from orchestrator.core.command import Choice, Gate
from orchestrator.core.errors import ConfigError, OrchestratorError
from orchestrator.core.event import Event, Level, json_line
from orchestrator.core.finding import Finding
from orchestrator.core.history import StoryHistory
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.value import printable
from orchestrator.records.sprint_reader import FollowedSprint
from orchestrator.records.views import sprint_json
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.gate_answers import explain_choice, time_over

HOW = {
    Choice.EDIT: " (in your editor; --file FILE: without one)",
    Choice.REPLAN: " (--comment)",
}
"""What the command of an answer takes besides."""


def format_question(shown: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is asked and how to answer, then what was asked before; from `question_json`."""
    if shown["question"]:
        yield from _open_lines(shown["question"])
    if shown["answers"]:
        yield from ("", "Questions answered:")
    for one in shown["answers"]:
        yield f"  {one['number']}, {_at(one['answered_at'])}: {cut(one['said'], 300)} ({cut(one['reason'])})"


def _open_lines(raw: Mapping[str, Any]) -> Iterator[str]:
    gate = Gate.model_validate({name: value for name, value in raw.items() if name != "commands"})
    until = f", until {_at(raw['deadline'])}" if raw["deadline"] else ""
    yield from (
        "",
        f"Waits for a person since {_at(raw['opened_at'])}{until}: question {gate.number}, about the {gate.kind.value}",
    )
    yield f"  why: {cut(gate.reason, 300)}"
    if gate.branch:
        yield f"  its work is on {gate.branch}"
    if gate.plan_file:
        yield f"  the plan is a person's: {gate.plan_file}"
    for issue in (*gate.issues, *gate.notes):
        yield from format_finding(issue)
    if gate.conflict.detected:
        for name, text in gate.conflict.model_dump(exclude={"detected"}).items():
            yield f"  {name.replace('_', ' ')}: {text}"
    over = time_over(gate, datetime.now(UTC))
    if over:
        yield f"  {over}"
        return
    if gate.barred:
        yield f"  it cannot be approved: {cut(gate.barred, 300)}"
    yield "  answer with one of"
    for choice, command in raw["commands"].items():
        yield f"    {command}"
        yield f"        {explain_choice(gate, Choice(choice))}{HOW.get(Choice(choice), '')}"


def format_finding(finding: Finding) -> list[str]:
    """Returns a finding with what to do about it."""
    return [f"  {finding}", *([f"      to do: {finding.fix}"] if finding.fix else [])]


def _at(iso: str | None) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S} UTC" if iso else "?"


class _Console(Console):
    """A console whose closed pipe is an error like any other, not the end of the process."""

    def on_broken_pipe(self) -> None:
        """Called by rich where it caught the error."""
        raise BrokenPipeError


class EventPrinter:
    """Prints events as they are recorded. `with` keeps the stories at work at the bottom of a terminal.

    When the reader of the stream has gone (`| head`), `closed` becomes true and nothing is printed any more.
    """

    def __init__(self, settings: Settings, *, form: str, stream: TextIO) -> None:
        self._level = Level(settings.log.level)
        self._cap = settings.log.text_cap
        self._form = form
        self._console = _Console(file=stream, highlight=False, soft_wrap=True)
        self._stream = stream
        self.closed = False
        self._followed: FollowedSprint | None = None
        self._calls: Iterable[CallProgress] = ()
        self._shown: ShownSprint | None = None
        self._looked, self._looking = 0.0, Lock()
        # Some services colour their logs by FORCE_COLOR, which makes a terminal of a file.
        live = form == "plain" and self._console.is_interactive and stream.isatty()
        self._live = make_live(self._console, self._look) if live else None

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
        """Prints one event if its level is wanted; with its number in the log where that is known."""
        if event.level.rank < self._level.rank:
            return
        if self._form == "json":
            self._print(json_line(event, self._cap, seq=seq))
            return
        self._print(Text(plain_line(event), style=_style(event)), whole_words=True)

    def say(self, message: str | Text) -> None:
        """A sentence for people that is no event, or a styled line of `status`."""
        if self._form == "json":
            say(str(message))
        elif isinstance(message, Text):
            self._print(message, whole_words=True)
        else:
            self._print(Text(message))

    def begin(
        self,
        environment: Environment,
        record: SprintRecord,
        histories: Mapping[str, StoryHistory],
        calls: Iterable[CallProgress],
    ) -> None:
        """A sprint begins or goes on; `calls` are those under way. A question that is open already is no new event."""
        if self._live is not None:
            self._followed, self._calls = FollowedSprint(environment, record), calls
        for story, history in histories.items():
            if gate := history.waits_for:
                choices = [choice.value for choice in gate.choices]
                told = describe_choices(story, choices, over=bool(time_over(gate, datetime.now(UTC))))
                self.say(f"{story} still waits for a person: {safe(cut(gate.reason))}; {told}")

    def _look(self) -> ShownSprint | None:
        """Returns the sprint as it was a second ago at most: each line above the table asks for it as well."""
        if self._followed is not None and monotonic() - self._looked > 1 and self._looking.acquire(blocking=False):
            try:
                self._shown = read_shown(sprint_json(self._followed.look()), "")
            except OrchestratorError:  # the log is away: the sprint says so, and what was seen last stays
                pass
            finally:
                self._looked = monotonic()
                self._looking.release()
        if self._shown is not None:
            self._shown.last.update({call.key.story: call.told(monotonic()) for call in self._calls})
        return self._shown

    def _print(self, line: str | Text, *, whole_words: bool = False) -> None:
        """Prints a line. A long one is broken by the terminal, since commands in it are copied; with `whole_words`
        between words."""
        if self.closed:
            return
        try:
            if isinstance(line, Text) and self._console.is_terminal:
                line.plain = printable(line.plain)
                self._console.print(line, soft_wrap=not whole_words)
            elif isinstance(line, Text):
                # Nothing but the text is left of it there, which rich takes 100 µs to find out.
                print(printable(line.plain), file=self._stream, flush=True)
            else:
                print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            self.closed = True
            silence(self._stream)


def _style(event: Event) -> str:
    """Returns a story's end in the colour of its status; what healed and what is not right in yellow; details faint."""
    if event.name == "story_finished":
        return STYLES.get(str(event.data.get("status")), "")
    if event.level is Level.ERROR:
        return "red"
    if event.level is Level.WARN or event.name in HEALINGS:
        return "yellow"
    return "dim" if event.level is Level.DEBUG else ""


def make_printer(settings: Settings, *, as_json: bool, log_format: str | None) -> EventPrinter:
    """Returns the printer a command's options ask for: with --json the events go to stderr."""
    # With --json stdout is for the one object.
    form = log_format or settings.log.format
    if form not in {"auto", "plain", "json"}:
        raise ConfigError(f"--log-format {form}: use plain or json")
    stream = sys.stderr if as_json else sys.stdout
    return EventPrinter(settings, form="json" if form == "json" else "plain", stream=stream)
