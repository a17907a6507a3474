"""What `status` shows of a sprint, from what is told of it for programs (pure)."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import AwareDatetime, Field, ValidationError

from orchestrator.cli.gates import WAITING, typed
from orchestrator.cli.logline import cut
from orchestrator.domain.base import AnswerValue
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError


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
