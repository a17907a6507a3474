"""Shows a running sprint: live on a terminal, plain lines otherwise, JSON lines on request.

A story's question and its answers, as lines for people (`show`, `status`, the live table).
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.cli.common import HEALINGS, cut, plain_line, safe, say, silence
from orchestrator.core.command import GATE_OPENED, Choice, Gate, GateKind
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import ACTIVITY_BEGUN, ACTIVITY_ENDED, Event, Level, json_line
from orchestrator.core.finding import Finding
from orchestrator.core.progress import CALL_PROGRESS, CallProgress
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import printable
from orchestrator.reports.path import span
from orchestrator.settings import Settings
from orchestrator.sprint.gate_answers import time_over

WAITING = "waiting"
"""The word that stands for the status of a story that waits for a person."""
MEANS = {
    Choice.APPROVE: "build it as it is",
    Choice.REJECT: "one more revision by the architect, with your comment",
    Choice.EDIT: "change it in your editor; built once nothing major is found (--file FILE: without an editor)",
    Choice.REPLAN: "planned from the start, with --comment if you like",
    Choice.CANCEL: "give the story up",
}
OF_A_MERGE = {
    Choice.APPROVE: "merge it without the tests that ran before; they are named above",
    Choice.REJECT: "the developer is asked once more, with your comment",
    Choice.CANCEL: "leave it unmerged on its branch",
}
OVERRIDES = "override it: planned again with the conflict as settled"


def describe_answers(story: str, gate: Gate) -> str:
    """Returns how a waiting story is answered, short enough for a table; or that it is too late for that."""
    return describe_choices(
        story, [choice.value for choice in gate.choices], over=bool(time_over(gate, datetime.now(UTC)))
    )


def describe_choices(story: str, choices: Sequence[str], *, over: bool) -> str:
    """Returns the same where only the words are known."""
    return "the time to answer is over" if over else f"orchestrator show {story}, then {' | '.join(choices)}"


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
        yield f"        {_means(gate, Choice(choice))}"


def _means(gate: Gate, choice: Choice) -> str:
    if gate.kind is GateKind.MERGE:
        return OF_A_MERGE.get(choice, MEANS[choice])
    return OVERRIDES if gate.conflict.detected and choice is Choice.APPROVE else MEANS[choice]


def format_finding(finding: Finding) -> list[str]:
    """Returns a finding with what to do about it."""
    return [f"  {finding}", *([f"      to do: {finding.fix}"] if finding.fix else [])]


def _at(iso: str | None) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S} UTC" if iso else "?"


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


_OF_SPRINT = frozenset({"base_begun", ACTIVITY_BEGUN, ACTIVITY_ENDED})
"""Events of the sprint itself that have a line in the live table, until the next other one."""
_LASTS = timedelta(seconds=5)
"""What lasts longer is told with the time since it began."""


class _Console(Console):
    """A console whose closed pipe is an error like any other, not the end of the process."""

    def on_broken_pipe(self) -> None:
        """Called by rich where it caught the error."""
        raise BrokenPipeError


class EventPrinter:
    """Prints events as they are recorded. `with` keeps a live table of the running stories on a terminal.

    When the reader of the stream has gone (`| head`), `closed` becomes true and nothing is printed any more.
    """

    def __init__(self, settings: Settings, *, form: str, stream: TextIO) -> None:
        self._level = Level(settings.log.level)
        self._cap = settings.log.text_cap
        self._form = form
        self._console = _Console(file=stream, highlight=False, soft_wrap=True)
        self._stream = stream
        self.closed = False
        self._stories: dict[str, tuple[str, str, datetime]] = {}
        """Story → its status, what it does and since when; the sprint's own work is under the sprint's name."""
        live = form == "plain" and self._console.is_terminal
        self._calls: Iterable[CallProgress] = ()
        self._live: Live | None = None
        if live:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True, get_renderable=self._table)

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
        self._follow(event)
        if event.level.rank < self._level.rank or (event.name == CALL_PROGRESS and self._live is not None):
            return  # the table shows calls as they are
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
        self._stories[story] = (WAITING, describe_answers(story, gate), gate.opened_at or datetime.now(UTC))
        self.say(f"{story} still waits for a person: {safe(cut(gate.reason))}; {describe_answers(story, gate)}")

    def watch(self, calls: Iterable[CallProgress]) -> None:
        """Has the live table show how far each of the calls is."""
        self._calls = calls

    def _print(self, line: str | Text) -> None:
        if self.closed:
            return
        try:
            if isinstance(line, Text) and self._console.is_terminal:
                line.plain = printable(line.plain)
                self._console.print(line)
            elif isinstance(line, Text):
                # Nothing but the text is left of it there, which rich takes 100 µs to find out.
                print(printable(line.plain), file=self._stream, flush=True)
            else:
                print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            self.closed = True
            silence(self._stream)

    def _follow(self, event: Event) -> None:
        if self._live is None or event.name == CALL_PROGRESS:
            return
        name, status, message = event.story, "executing", cut(safe(event.message), 90)
        if name is None:
            if event.name not in _OF_SPRINT:
                self._stories.pop(event.sprint, None)
                return
            name = event.sprint
        elif event.name == GATE_OPENED:
            status, message = WAITING, describe_answers(name, Gate.model_validate(event.data["gate"]))
        elif event.name == "story_finished":
            status = str(event.data.get("status", "executing"))
        self._stories[name] = (status, message, event.time)

    def _table(self, now: datetime | None = None) -> Table:
        """Returns a line per story at work, with how long it has been at what it does."""
        now = now or datetime.now(UTC)
        table = Table.grid(padding=(0, 2))
        for name in (True, True, False):
            table.add_column(no_wrap=name)  # a narrow terminal takes from the message, and a story keeps its one line
        moment, calls = monotonic(), {call.key.story: call for call in self._calls}
        # A copy: the table is drawn in a thread of its own.
        for story, (status, message, since) in list(self._stories.items()):
            # Ended stories have their own line above the table.
            if status in _RUNNING:
                lasts, call = now - since, calls.get(story)
                if call is not None and status != WAITING:
                    message, lasts = call.told(moment), timedelta(seconds=moment - call.began)
                message = f"{message} ({span(lasts)})" if status != WAITING and lasts >= _LASTS else message
                told = Text(message, style="dim", no_wrap=True, overflow="ellipsis")
                table.add_row(Text(story), Text(status, style=STYLES.get(status, "")), told)
        return table


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


def status_word(status: StoryStatus, *, at_work: bool = False) -> str:
    """Returns a status for people: nothing executes where no process is `at_work`."""
    return "open" if status is StoryStatus.EXECUTING and not at_work else status.value
