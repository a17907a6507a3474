"""`status`: where each story of a sprint is, once or for as long as the sprint is being run."""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import AwareDatetime, Field, ValidationError
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import Context, Exit, SprintOption, command, command_group, cut, print_json, safe, say
from orchestrator.cli.console import EventPrinter, status_word
from orchestrator.cli.live_table import STYLES, WAITING, SprintTable, StoryRow, describe_choices, make_live
from orchestrator.core.calls.spending import BudgetState, told_spent
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import AnswerValue, counted, listed
from orchestrator.reports.path import span

app = command_group()
TITLE = 40
"""Characters of a title that stands before what happened last."""


class _Story(AnswerValue):
    id: str
    title: str = ""
    status: StoryStatus
    calls: int = 0
    looks: int = 0


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
    running_on: str = ""
    waiting: tuple[_Waiting, ...] = ()
    paused: str = ""
    budgets: tuple[BudgetState, ...] = ()
    held: dict[str, str] = Field(default_factory=dict)
    last: dict[str, str] = Field(default_factory=dict)
    last_at: dict[str, AwareDatetime | None] = Field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    running_since: AwareDatetime | None = None

    @property
    def is_running(self) -> bool:
        return self.running_pid is not None or bool(self.running_on)


@command(app, "status")
def status_command(
    context: Context,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Continue while the sprint is running.")] = False,
    sprint: SprintOption = None,
) -> int:
    """Show where each story of a sprint is, in the state folder or at the daemon of --url (ORCHESTRATOR_URL).

    With -f a terminal shows a table that fits its window, stories at work first, and all lines at the end; elsewhere a
    line is printed when it changes.

    Example: orchestrator status -f --sprint SP-001
    """
    if follow and context.as_json:
        raise ConfigError("--follow prints lines for people; give --json without it, or `logs -f --json`")
    source = context.sprints
    if context.as_json:
        print_json(source.sprint(sprint))
        return Exit.GOOD
    shown = source.status(sprint)
    url = source.url
    printer = EventPrinter(context.settings, form="lines", stream=sys.stdout)
    console = Console(highlight=False)
    in_place = follow and console.is_interactive and sys.stdout.isatty()
    sprint_now, known, code = _parse(shown, url), dict[str, Text](), Exit.GOOD
    try:
        with make_live(console, lambda: _table(sprint_now, datetime.now(UTC))) if in_place else nullcontext():
            while follow and sprint_now.is_running and not printer.closed:
                if not in_place:
                    known = _print_new(_lines(sprint_now, url), known, printer)
                time.sleep(source.poll_s)
                sprint_now = _parse(source.follow(sprint_now.sprint, say), url)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    _print_new(_lines(sprint_now, url, datetime.now(UTC) if sys.stdout.isatty() else None), known, printer)
    return code


def _parse(shown: Mapping[str, Any], url: str) -> _Sprint:
    try:
        return _Sprint.model_validate(shown)
    except ValidationError as error:
        raise ConfigError(f"{url or 'the daemon'} does not answer as a daemon: this is no sprint") from error


def _table(sprint: _Sprint, now: datetime) -> SprintTable:
    """Returns what `-f` shows on a terminal."""
    waiting = {one.story: one for one in sprint.waiting}
    rows = []
    for story in sprint.stories:
        gate, at = waiting.get(story.id), sprint.last_at.get(story.id)
        status = WAITING if gate else status_word(story.status, at_work=sprint.is_running)
        doing = sprint.held.get(story.id) or sprint.last.get(story.id, "")
        lasts = now - at if at and story.status is StoryStatus.EXECUTING else None
        if gate:
            doing = _choices(gate)
        elif story.status is StoryStatus.PENDING and not doing:
            needs = sprint.needs.get(story.id, ())
            doing = f"waits for {listed(needs, 3)}" if needs else "" if sprint.paused else "waits for a slot"
        rows.append(StoryRow(story=story.id, status=status, doing=doing, lasts=lasts))
    return SprintTable(
        title=f"{sprint.sprint}, {_alive(sprint, ended=False)}",
        clock=now - sprint.running_since if sprint.running_since else None,
        counts=Counter(row.status for row in rows),
        rows=rows,
        notes=(told_spent(sprint.budgets), f"paused: {sprint.paused}" if sprint.paused else ""),
    )


def _lines(sprint: _Sprint, url: str, now: datetime | None = None) -> dict[str, Text]:
    """Returns what a line is about → the line; `url`: of the daemon that was asked by name.

    `now` is for terminals alone: how long a story has been at what it does would change each line that is followed.
    """
    waiting, at_work = {one.story: one for one in sprint.waiting}, sprint.is_running
    ended = all(story.status.final for story in sprint.stories)
    places = filter(None, (f"backlog {sprint.backlog}" if sprint.backlog else "", f"at {url}" if url else ""))
    paused = f"; paused: {cut(sprint.paused)}" if sprint.paused and not ended else ""
    lines = {"": Text(safe(", ".join((f"Sprint {sprint.sprint}", _alive(sprint, ended), *places)) + paused))}
    for story in sprint.stories:
        gate = waiting.get(story.id)
        last = _asks(gate) if gate else cut(sprint.held.get(story.id) or sprint.last.get(story.id, ""))
        at = sprint.last_at.get(story.id)
        if now and at and story.status is StoryStatus.EXECUTING and not gate and at_work:
            last = f"{last} (for {span(now - at)})"
        status = WAITING if gate else status_word(story.status, at_work=at_work)
        words = ": ".join(filter(None, (cut(story.title, TITLE), last)))
        state = (f"{status:<16}", STYLES.get(status, "dim"))
        looks = f" ({counted(story.looks, 'look')})" if story.looks else ""
        told = f" {story.calls:>4} calls{looks}  "
        lines[story.id] = Text.assemble(f"  {story.id:<12} ", state, told, safe(words))
    counts = Counter(story.status for story in sprint.stories)
    totals = ", ".join(
        f"{counts[status]} {status_word(status, at_work=at_work)}" for status in StoryStatus if counts[status]
    )
    totals = "; ".join(filter(None, (totals, told_spent(sprint.budgets))))
    # In the order of the sprint, as the lines above.
    asking = [story.id for story in sprint.stories if story.id in waiting]
    lines[" totals"] = Text(f"{totals}; waiting for a person: {', '.join(asking)}" if asking else totals)
    return lines


def _asks(gate: _Waiting) -> str:
    return f"{cut(gate.reason)}; {_choices(gate)}"


def _choices(gate: _Waiting) -> str:
    over = gate.deadline is not None and datetime.now(UTC) >= gate.deadline
    return describe_choices(gate.story, gate.choices, over=over)


def _alive(sprint: _Sprint, ended: bool) -> str:
    if sprint.running_pid is not None:
        return f"running as pid {sprint.running_pid}"
    if sprint.running_on:
        return f"running as {sprint.running_on}"
    if ended:
        return "not running"
    resumer = "`orchestrator serve`" if sprint.begun_by == "serve" else "the command that began it"
    return f"not running ({resumer} goes on)"


def _print_new(lines: dict[str, Text], known: Mapping[str, Text], printer: EventPrinter) -> dict[str, Text]:
    """Prints what is not known yet; returns what is known then."""
    for place, line in lines.items():
        if known.get(place) != line:
            printer.say(line)
    return lines
