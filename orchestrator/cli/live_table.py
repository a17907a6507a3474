"""The live table of `run` and `status -f`: as many stories as the window takes, those at work first, and the totals."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.cli.common import cut, safe
from orchestrator.core.calls.progress import CallProgress
from orchestrator.core.calls.spending import BudgetState, told_spent
from orchestrator.core.command import CONTROL_GIVEN, CONTROL_SETTLED, GATE_OPENED, Gate
from orchestrator.core.event import ACTIVITY_BEGUN, ACTIVITY_ENDED, Event
from orchestrator.core.history import FINISHED, STARTED, StoryHistory
from orchestrator.core.sprint import StoryStatus
from orchestrator.reports.path import span
from orchestrator.sprint.gate_answers import time_over

WAITING = "waiting"
"""The word that stands for the status of a story that waits for a person."""
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
AT_WORK = frozenset({WAITING, "executing"})
_OPEN = AT_WORK | {"open", "pending"}
_LAST = "done"
_SHORTEST_BAR = 8
_MOST_CHARS = 300
"""Of a line: no window is wider."""


@dataclass(frozen=True, kw_only=True)
class StoryRow:
    """One line of the table."""

    story: str
    status: str
    """A status, or WAITING."""
    doing: str
    lasts: timedelta | None = None
    """Since when; None for what does not last."""


@dataclass(frozen=True, kw_only=True)
class SprintTable:
    """What a window shows of a sprint. No line is longer than the window, and no more lines are drawn than it has."""

    title: str
    clock: timedelta | None
    """Since the sprint is run; None where nothing runs it."""
    counts: Mapping[str, int]
    """Status → stories."""
    rows: Sequence[StoryRow]
    notes: Sequence[str]
    """Further lines that are always shown: what is spent, why nothing begins; empty ones are left out."""
    part: int = 1
    """The table takes at most the window's height divided by this; the rest is for lines above it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yields the lines, as rich asks for them."""
        width = options.max_width
        totals = [_line(text) for text in (self._count(self.counts), *self.notes) if text]
        yield self._head(width)
        room = max(0, options.size.height // self.part - 1 - len(totals))
        rows = sorted(self.rows, key=lambda row: _rank(row.status))
        shown = rows if len(rows) <= room else rows[: max(0, room - 1)]
        yield from _story_lines(shown)
        if room and (left := rows[len(shown) :]):
            statuses = [row.status for row in left]
            more = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
            yield _line(f"… {len(left)} more: {self._count(more)}")
        yield from totals

    def _head(self, width: int) -> Text:
        """Returns title, clock and a bar of the stories that have ended."""
        total = sum(self.counts.values())
        ended = total - sum(self.counts.get(status, 0) for status in _OPEN)
        clock = f"  {timedelta(seconds=max(0, int(self.clock.total_seconds())))}" if self.clock is not None else ""
        head, tail = f"{_plain(self.title)}{clock}", f"{ended} of {total}"
        length = min(width, 100) - len(head) - len(tail) - 4
        if length < _SHORTEST_BAR:
            return _line(f"{tail}  {head}")
        filled = length * ended // total if total else 0
        # Two characters, not two colours: also without colours it is a bar.
        bar = Text("━" * filled, style="green"), Text("─" * (length - filled), style="dim")
        return Text.assemble((head, "bold"), "  ", *bar, f"  {tail}", no_wrap=True, overflow="ellipsis")

    def _count(self, counts: Mapping[str, int]) -> str:
        return ", ".join(f"{counts[status]} {status}" for status in sorted(counts, key=_rank) if counts[status])


def _rank(status: str) -> int:
    """Returns where a story stands: who waits for a person is first, what ended well is last."""
    if status == WAITING:
        return 0
    if status in AT_WORK:
        return 1
    return 3 if status in _OPEN else 4 if status == _LAST else 2


def _plain(text: str) -> str:
    """Returns the first line of a foreign text without tabs: both would break the table."""
    return " ".join(cut(safe(text), _MOST_CHARS).split())


def _line(text: str) -> Text:
    return Text(_plain(text), no_wrap=True, overflow="ellipsis")


def _story_lines(rows: Sequence[StoryRow]) -> Iterator[Text]:
    """Yields the lines of the stories, in columns; rich's tables take five times as long, for each line above them."""
    told = [(row, span(row.lasts) if row.lasts is not None else "") for row in rows]
    story, status, lasts = (
        max(map(len, column), default=0)
        for column in ([row.story for row in rows], [row.status for row in rows], [lasts for _, lasts in told])
    )
    for row, since in told:
        word = row.status.ljust(status), STYLES.get(row.status, "dim")
        line = Text.assemble(f"{row.story:<{story}}  ", word, f"  {since:>{lasts}}  ", _plain(row.doing))
        line.no_wrap, line.overflow = True, "ellipsis"
        yield line


def make_live(console: Console, draw: Callable[[], RenderableType]) -> Live:
    """Returns what keeps the table at the bottom of a terminal, drawn again each second, and removes it at the end."""
    return Live(console=console, refresh_per_second=1, transient=True, get_renderable=draw)


def describe_answers(story: str, gate: Gate) -> str:
    """Returns how a waiting story is answered, short enough for a table; or that it is too late for that."""
    return describe_choices(
        story, [choice.value for choice in gate.choices], over=bool(time_over(gate, datetime.now(UTC)))
    )


def describe_choices(story: str, choices: Sequence[str], *, over: bool) -> str:
    """Returns the same where only the words are known."""
    return "the time to answer is over" if over else f"orchestrator show {story}, then {' | '.join(choices)}"


_OF_SPRINT = frozenset({"base_begun", ACTIVITY_BEGUN, ACTIVITY_ENDED})
"""Events of the sprint itself that have a line in the live table, until the next other one."""
_OF_PEOPLE = frozenset({CONTROL_GIVEN, CONTROL_SETTLED})
"""Events that leave an open question open."""
_RESULTS = {
    STARTED: StoryStatus.EXECUTING,
    "story_reset": StoryStatus.PENDING,
    "stage_started": StoryStatus.EXECUTING,
    "stage_finished": StoryStatus.DONE,
}
"""Event → the status of its story, or its stage of an analysis, from then on."""


class LiveSprint:
    """The sprint that this process runs, as its events tell it."""

    def __init__(
        self,
        sprint: str,
        histories: Mapping[str, StoryHistory],
        *,
        calls: Iterable[CallProgress] = (),
        held: Callable[[], str] = str,
        spent: Callable[[], Iterable[BudgetState]] = tuple,
        began: datetime,
    ) -> None:
        """`calls` are those under way, `held` says why no further story begins, `spent` what was paid."""
        self._sprint, self._calls, self._held, self._spent, self.began = sprint, calls, held, spent, began
        self._status = {story: history.status.value for story, history in histories.items()}
        self._doing: dict[str, tuple[str, datetime]] = {}
        """Story, or the sprint for what is done for it as a whole → what is done, and since when."""
        for story, history in histories.items():
            if gate := history.waits_for:
                self.wait(story, gate)
            elif history.status is StoryStatus.EXECUTING and (last := history.last):
                self._doing[story] = last.message, last.time

    def wait(self, story: str, gate: Gate) -> None:
        """A story waits for a person."""
        self._status[story] = WAITING
        self._doing[story] = describe_answers(story, gate), gate.opened_at or self.began

    def add(self, event: Event) -> None:
        """Takes in an event of the sprint."""
        story = event.story
        if story is None:
            for name in event.data.get("stages", ()):  # of an analysis, which has no record of stories
                self._status.setdefault(name, StoryStatus.PENDING.value)
            if event.name in _OF_SPRINT:
                self._doing[self._sprint] = event.message, event.time
            else:
                self._doing.pop(self._sprint, None)
        elif event.name == GATE_OPENED:
            self.wait(story, Gate.model_validate(event.data["gate"]))
        elif not (self._status.get(story) == WAITING and event.name in _OF_PEOPLE):
            self._doing[story] = event.message, event.time
            if event.name == FINISHED:
                self._status[story] = str(event.data["status"])
            elif event.name in _RESULTS:
                self._status[story] = _RESULTS[event.name].value
            elif self._status.get(story) == WAITING:
                self._status[story] = StoryStatus.EXECUTING.value

    def table(self, now: datetime, moment: float) -> SprintTable:
        """Returns the stories at work, with a line per call; `moment` is now as `time.monotonic` has it."""
        rows = [*self._rows(self._sprint, StoryStatus.EXECUTING.value, (), now, moment)]
        # Copies: the table is drawn in a thread of its own.
        calls, statuses = [*self._calls], dict(self._status)
        for story, status in statuses.items():
            if status in AT_WORK:
                mine = [call for call in calls if call.key.story == story and status != WAITING]
                rows += self._rows(story, status, mine, now, moment)
        held = self._held()
        return SprintTable(
            title=self._sprint,
            clock=now - self.began,
            counts=Counter(statuses.values()),
            rows=rows,
            notes=(told_spent(self._spent()), f"paused: {held}" if held else ""),
            part=2,
        )

    def _rows(
        self, story: str, status: str, calls: Sequence[CallProgress], now: datetime, moment: float
    ) -> Iterator[StoryRow]:
        for call in calls:
            lasts = timedelta(seconds=moment - call.began)
            yield StoryRow(story=story, status=status, doing=call.told(moment), lasts=lasts)
        if not calls and (known := self._doing.get(story)):
            yield StoryRow(story=story, status=status, doing=known[0], lasts=now - known[1])
