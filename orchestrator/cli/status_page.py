"""What `status` shows of a sprint: from the record, or from what a daemon says of it (pure)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import AwareDatetime, Field, ValidationError

from orchestrator.cli.gates import WAITING, to_type, typed
from orchestrator.cli.logline import cut
from orchestrator.domain.base import AnswerValue
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError
from orchestrator.wiring.read import SprintView
from orchestrator.wiring.shown import waiting_of


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
    running_pid: int | None = None
    waiting: tuple[_Waiting, ...] = ()
    paused: str = ""
    held: dict[str, str] = Field(default_factory=dict)


def page_of_view(view: SprintView) -> StatusPage:
    """The sprint as the record tells it."""
    waiting = waiting_of(view)
    rows = []
    for story in view.report.stories:
        gate = waiting.get(story.id)
        happened = view.held.get(story.id) or view.histories[story.id].last_message
        last = f"{cut(gate.reason)}; {to_type(story.id, gate)}" if gate else cut(happened)
        status = WAITING if gate else story.status.value
        rows.append(StatusRow(story.id, story.title, status, story.calls, last, gate is not None))
    ended = all(story.status.final for story in view.report.stories)
    alive = _alive(view.running_pid, ended=ended, daemons=bool(view.record.executor))
    head = f"Sprint {view.record.sprint}, {alive}, backlog {view.record.backlog}{_paused(view.paused, ended=ended)}"
    return StatusPage(head, tuple(rows), _counts(view.report.totals), view.running_pid is not None)


def page_of_data(url: str, told: Mapping[str, Any]) -> StatusPage:
    """The sprint as the daemon at `url` tells it. Raises ConfigError for what is no sprint."""
    try:
        sprint = _Sprint.model_validate(told)
    except ValidationError as error:
        raise ConfigError(f"{url} does not answer as a daemon: this is no sprint") from error
    waiting = {one.story: one for one in sprint.waiting}
    rows = []
    for story in sprint.stories:
        gate = waiting.get(story.id)
        over = gate is not None and gate.deadline is not None and datetime.now(UTC) >= gate.deadline
        last = (
            f"{cut(gate.reason)}; {typed(story.id, gate.choices, over=over)}" if gate else sprint.held.get(story.id, "")
        )
        status = WAITING if gate else story.status.value
        rows.append(StatusRow(story.id, story.title, status, story.calls, last, gate is not None))
    ended = all(story.status.final for story in sprint.stories)
    counts: dict[str, int] = {}
    for story in sprint.stories:
        counts[story.status.value] = counts.get(story.status.value, 0) + 1
    alive = _alive(sprint.running_pid, ended=ended, daemons=True)
    head = f"Sprint {sprint.sprint}, {alive}, at {url}{_paused(sprint.paused, ended=ended)}"
    return StatusPage(head, tuple(rows), _counts(counts), sprint.running_pid is not None)


def _counts(totals: Mapping[str, object]) -> str:
    return ", ".join(f"{totals[s.value]} {s.value}" for s in StoryStatus if totals.get(s.value))


def _alive(pid: int | None, *, ended: bool, daemons: bool) -> str:
    if pid is not None:
        return f"running as pid {pid}"
    if ended:
        return "not running"
    return f"not running ({'`orchestrator serve`' if daemons else 'the command that began it'} goes on)"


def _paused(why: str, *, ended: bool) -> str:
    return f"; paused: {cut(why)}" if why and not ended else ""
