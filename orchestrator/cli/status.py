"""`status`: where each story of a sprint is, once or for as long as the sprint is being run."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import AwareDatetime, Field, ValidationError
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.common import Context, Exit, SprintOption, command, command_group, cut, print_json, safe, say
from orchestrator.cli.console import STYLES, WAITING, EventPrinter, typed
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import AnswerValue

app = command_group()
TITLE = 40
"""Characters of a title that stands before what happened last."""
Look = Callable[[], "StatusPage"]
"""The sprint as it is now."""


class StatusRow(NamedTuple):
    """One story."""

    story: str
    title: str
    status: str
    calls: int
    last: str
    """What happened last, or what it waits for."""
    waits: bool


class StatusPage(NamedTuple):
    """One sprint."""

    head: str
    rows: tuple[StatusRow, ...]
    counts: str
    running: bool


class _Story(AnswerValue):
    id: str
    title: str = ""
    status: StoryStatus
    calls: int = 0


class _Waiting(AnswerValue):
    story: str
    reason: str
    deadline: AwareDatetime | None = None
    choices: tuple[str, ...]


class _Sprint(AnswerValue):
    sprint: str
    stories: tuple[_Story, ...]
    backlog: str = ""
    begun_by: str = "serve"
    running_pid: int | None = None
    waiting: tuple[_Waiting, ...] = ()
    paused: str = ""
    held: dict[str, str] = Field(default_factory=dict)
    last: dict[str, str] = Field(default_factory=dict)


@command(app, "status")
def status_command(
    context: Context,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on for as long as the sprint is being run.")
    ] = False,
    sprint: SprintOption = None,
) -> int:
    """Where each story of a sprint is: of the state folder, or of the daemon at --url (ORCHESTRATOR_URL).

    With -f the lines are renewed in place on a terminal; elsewhere a line is printed when it changes.

    Example: orchestrator status -f --sprint SP-001
    """
    if follow and context.as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    source = context.sprints
    shown = source.sprint(sprint)
    if context.as_json:
        print_json(shown)
        return Exit.GOOD
    # A daemon that was found in the state folder is no other place: only one that was named is told with its address.
    url = "" if source.found else source.url
    printer = EventPrinter(context.settings, form="lines", stream=sys.stdout)
    try:
        page = page_of(shown, url)
        name = str(shown["sprint"])
        _show(page, lambda: page_of(source.follow(name, say), url), printer, follow=follow, wait_s=source.poll_s)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return Exit.GOOD


def page_of(told: Mapping[str, Any], url: str = "") -> StatusPage:
    """The sprint as `status --json` prints it; `url`: of the daemon that was asked by name.

    Raises ConfigError for what is no sprint.
    """
    try:
        sprint = _Sprint.model_validate(told)
    except ValidationError as error:
        raise ConfigError(f"{url or 'the daemon'} does not answer as a daemon: this is no sprint") from error
    waiting = {one.story: one for one in sprint.waiting}
    rows = []
    for story in sprint.stories:
        gate = waiting.get(story.id)
        last = _asks(story.id, gate) if gate else cut(sprint.held.get(story.id) or sprint.last.get(story.id, ""))
        status = WAITING if gate else story.status.value
        rows.append(StatusRow(story.id, story.title, status, story.calls, last, gate is not None))
    ended = all(story.status.final for story in sprint.stories)
    counts = Counter(story.status.value for story in sprint.stories)
    alive = _alive(sprint.running_pid, ended=ended, begun_by=sprint.begun_by)
    places = filter(None, (f"backlog {sprint.backlog}" if sprint.backlog else "", f"at {url}" if url else ""))
    head = ", ".join((f"Sprint {sprint.sprint}", alive, *places)) + _paused(sprint.paused, ended=ended)
    return StatusPage(head, tuple(rows), _counts(counts), sprint.running_pid is not None)


def _asks(story: str, gate: _Waiting) -> str:
    over = gate.deadline is not None and datetime.now(UTC) >= gate.deadline
    return f"{cut(gate.reason)}; {typed(story, gate.choices, over=over)}"


def _counts(totals: Mapping[str, object]) -> str:
    return ", ".join(f"{totals[s.value]} {s.value}" for s in StoryStatus if totals.get(s.value))


def _alive(pid: int | None, *, ended: bool, begun_by: str) -> str:
    if pid is not None:
        return f"running as pid {pid}"
    if ended:
        return "not running"
    return f"not running ({'`orchestrator serve`' if begun_by == 'serve' else 'the command that began it'} goes on)"


def _paused(why: str, *, ended: bool) -> str:
    return f"; paused: {cut(why)}" if why and not ended else ""


def _show(page: StatusPage, look: Look, printer: EventPrinter, *, follow: bool, wait_s: float) -> None:
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
