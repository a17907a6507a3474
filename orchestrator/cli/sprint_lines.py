"""A sprint as lines: what `status` prints, and what `run` and `status -f` keep at the bottom of a terminal."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime, Field, ValidationError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.cli.common import cut, safe
from orchestrator.core.calls.spending import BudgetState, told_spent
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.value import AnswerValue, counted, listed
from orchestrator.reports.path import span

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
TITLE = 40
"""Characters of a title that stands before what happened last."""
_TOTALS = " totals"


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


class ShownSprint(AnswerValue):
    """What the lines need of the object that `status --json` prints."""

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

    @property
    def is_running(self) -> bool:
        """Returns whether a process works on it, here or on another machine."""
        return self.running_pid is not None or bool(self.running_on)

    @property
    def _alive(self) -> str:
        if self.is_running:
            return f"running as {f'pid {self.running_pid}' if self.running_pid is not None else self.running_on}"
        if all(story.status.final for story in self.stories):
            return "not running"
        resumer = "`orchestrator serve`" if self.begun_by == "serve" else "the command that began it"
        return f"not running ({resumer} goes on)"


def read_shown(shown: Mapping[str, Any], url: str) -> ShownSprint:
    """Returns what a state folder or the daemon at `url` says. Raises ConfigError for something else."""
    try:
        return ShownSprint.model_validate(shown)
    except ValidationError as error:
        raise ConfigError(f"{url or 'the daemon'} does not answer as a daemon: this is no sprint") from error


def list_lines(sprint: ShownSprint, url: str = "", now: datetime | None = None) -> dict[str, Text]:
    """Returns what a line is about → the line; `url`: of the daemon that was asked by name.

    `now` is for terminals alone: how long a story has been at what it does would change each line that is followed.
    """
    waiting = {one.story: one for one in sprint.waiting}
    ended = all(story.status.final for story in sprint.stories)
    places = filter(None, (f"backlog {sprint.backlog}" if sprint.backlog else "", f"at {url}" if url else ""))
    paused = f"; paused: {cut(sprint.paused)}" if sprint.paused and not ended else ""
    lines = {"": Text(safe(", ".join((f"Sprint {sprint.sprint}", sprint._alive, *places)) + paused))}
    for story in sprint.stories:
        lines[story.id] = _story_line(sprint, story, waiting.get(story.id), now)
    counts = Counter(story.status for story in sprint.stories)
    totals = ", ".join(
        f"{counts[status]} {status_word(status, at_work=sprint.is_running)}" for status in StoryStatus if counts[status]
    )
    totals = "; ".join(filter(None, (totals, told_spent(sprint.budgets))))
    # In the order of the sprint, as the lines above.
    asking = [story.id for story in sprint.stories if story.id in waiting]
    lines[_TOTALS] = Text(f"{totals}; waiting for a person: {', '.join(asking)}" if asking else totals)
    return lines


def _story_line(sprint: ShownSprint, story: _Story, gate: _Waiting | None, now: datetime | None) -> Text:
    status = WAITING if gate else status_word(story.status, at_work=sprint.is_running)
    last, at = sprint.held.get(story.id) or sprint.last.get(story.id, ""), sprint.last_at.get(story.id)
    if gate:
        over = gate.deadline is not None and datetime.now(UTC) >= gate.deadline
        last = f"{cut(gate.reason)}; {describe_choices(story.id, gate.choices, over=over)}"
    elif story.status is StoryStatus.PENDING and not last and (needs := sprint.needs.get(story.id)):
        last = f"waits for {listed(needs, 3)}"
    elif now and at and story.status is StoryStatus.EXECUTING and sprint.is_running:
        last = f"{cut(last)} (for {span(now - at)})"
    words = ": ".join(filter(None, (cut(story.title, TITLE), last if gate else cut(last))))
    looks = f" ({counted(story.looks, 'look')})" if story.looks else ""
    state = (f"{status:<16}", STYLES.get(status, "dim"))
    return Text.assemble(f"  {story.id:<12} ", state, f" {story.calls:>4} calls{looks}  ", safe(words))


def make_live(console: Console, look: Callable[[], ShownSprint | None]) -> Live:
    """Returns what keeps the sprint, its totals and its stories at work at the bottom of a terminal, drawn again each
    second, and removes them at the end."""

    def draw() -> RenderableType:
        sprint = look()
        if sprint is None:
            return Group()
        lines = list_lines(sprint, now=datetime.now(UTC))
        at_work = [story.id for story in sprint.stories if story.status is StoryStatus.EXECUTING]
        shown = [lines[name] for name in ("", _TOTALS, *at_work)]
        for line in shown:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*shown)

    return Live(console=console, refresh_per_second=1, transient=True, get_renderable=draw)


def describe_choices(story: str, choices: Sequence[str], *, over: bool) -> str:
    """Returns how a waiting story is answered, or that it is too late for that."""
    return "the time to answer is over" if over else f"orchestrator show {story}, then {' | '.join(choices)}"


def status_word(status: StoryStatus, *, at_work: bool = False) -> str:
    """Returns a status for people: nothing executes where no process is `at_work`."""
    return "open" if status is StoryStatus.EXECUTING and not at_work else status.value
