"""Reads sprints for `status`, `show`, `logs` and `contract`, and writes reports; never launches the engine."""

import asyncio
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from orchestrator.core.calls.spending import BudgetState
from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED
from orchestrator.core.errors import UnknownName, WorkspaceError
from orchestrator.core.event import Event, Level
from orchestrator.core.history import SprintFold, StoryHistory, event_of, why_it_rests
from orchestrator.core.secrets import redact, redacted, secrets_of
from orchestrator.core.sprint import SprintRecord, SprintReport
from orchestrator.core.suite import BASE_TRIED, SANDBOX_CHOSEN, BaseTrial, SandboxFacts
from orchestrator.core.value import Value, draw_controls, suggest
from orchestrator.records.histories import (
    event_url,
    find_last_end,
    name_end,
    open_log,
    read_histories,
    read_sprint_events,
)
from orchestrator.reports.markdown import Places, render_report
from orchestrator.reports.report import HEALINGS, budget_states, build_report, exit_code, with_facts
from orchestrator.settings import Environment
from orchestrator.sprint.state import Board
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.locks import holder
from orchestrator.storage.state_folder import StateFolder


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Result of a run."""

    report: SprintReport
    report_path: Path
    """report.json; report.md lies beside it."""
    fetch_command: str
    repo: Path
    """The user's repository."""
    pushed: str | None = None
    """The branch of the user's repository that holds the result now."""
    unpushed: str | None = None
    """Why the final push of `--push-to` failed."""
    paused: str | None = None


def save_report(
    environment: Environment,
    record: SprintRecord,
    paused: str | None = None,
    secrets: Sequence[str] = (),
    patience_s: float = 0.0,
) -> tuple[SprintReport, Path, datetime]:
    """Writes both files of a sprint as the log has it. Returns the report, the path of report.json and when the last
    story ended. Blocks.

    `paused` is why no further story began. Neither file holds what looks like a secret, nor one of `secrets`. A
    database that is away is waited for so long.
    """
    folder = StateFolder.of(environment)
    histories = read_histories(environment, folder, record, patience_s=patience_s)
    events = read_sprint_events(environment, folder, record, patience_s=patience_s)
    told = build_report(record, histories, paused or "")
    told = with_facts(told, read_facts(events), budget_states(events, histories.values()))
    # With a thousand stories each form takes much memory, so each is released before the next but one.
    plain = redacted(told.model_dump(mode="json"), secrets)
    del told
    report = SprintReport.model_validate(plain)
    text = json.dumps(plain, indent=2)
    del plain
    markdown = redact(draw_controls(render_report(report, histories, find_places(folder, record))), secrets)
    return report, folder.save_report(record.sprint, text, markdown), find_last_end(record, histories)


def end_event(
    record: SprintRecord,
    report: SprintReport,
    path: Path,
    ended: datetime,
    *,
    push_to: str | None,
    unpushed: str | None,
) -> Event:
    """Returns the last word on a sprint of which every story has its outcome; `path` is report.json."""
    counts = {name: count for name, count in report.totals.items() if isinstance(count, int)}
    told = f"sprint {record.sprint} has ended: " + ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    good = exit_code(report) == 0
    return Event(
        id=name_end(record, ended),
        time=datetime.now(UTC),
        level=Level.INFO if good and not unpushed else Level.WARN,
        name="sprint_ended",
        message=told + (f"; not pushed: {unpushed}" if unpushed else ""),
        sprint=record.sprint,
        data={"report": str(path), "good": good, "push_to": push_to, "unpushed": unpushed},
    )


def read_facts(events: Iterable[Event]) -> dict[str, Value | None]:
    """Returns the facts for `with_facts` from the sprint's own events; None for missing ones."""
    data = {event.name: event.data for event in events if event.name in {BASE_TRIED, SANDBOX_CHOSEN}}  # the last counts
    return {
        "sandbox": SandboxFacts.model_validate(data[SANDBOX_CHOSEN]["sandbox"]) if SANDBOX_CHOSEN in data else None,
        "base": BaseTrial.model_validate(data[BASE_TRIED]["base"]) if BASE_TRIED in data else None,
    }


def find_places(folder: StateFolder, record: SprintRecord) -> Places:
    """Returns the places of the files and branches in the report."""
    here = folder.report(record.sprint).parent
    replies = {story: folder.replies / record.workflow_id(story) for story in record.story_ids}
    return Places(
        backlog=record.backlog,
        repo=record.repo,
        mirror=str(folder.mirror(Path(record.repo)).absolute()),
        replies={story: os.path.relpath(kept, here) for story, kept in replies.items() if kept.is_dir()},
    )


@dataclass(frozen=True, kw_only=True)
class SprintView:
    """One sprint, from the log."""

    record: SprintRecord
    histories: dict[str, StoryHistory]
    events: list[Event]
    """Those of the sprint itself."""
    running_pid: int | None
    """Pid of the process that works on it, or None."""
    running_on: str = ""
    """The process of another machine that works on it, for people; "" when none does."""
    paused: str = ""
    """Why none of its stories may start; "" when they may."""
    held: dict[str, str] = field(default_factory=dict)
    """Story → the order that holds it."""
    place: int = 0
    """Of a sprint that is followed: up to this number of the log everything was seen."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """Of a sprint that is followed: story → the number of the event that last changed what is shown of it."""

    @cached_property
    def report(self) -> SprintReport:
        """Returns the report as it would be written now."""
        shown = self.record.model_copy(update={"story_ids": tuple(self.histories)})
        report = build_report(shown, self.histories, why_it_rests(self.events))
        return with_facts(report, read_facts(self.events), self.budgets)

    @cached_property
    def budgets(self) -> tuple[BudgetState, ...]:
        """Returns what is spent, and of which budget."""
        return budget_states(self.events, self.histories.values())

    @property
    def is_running(self) -> bool:
        """Returns whether a process works on it, here or on another machine."""
        return self.running_pid is not None or bool(self.running_on)


class Reader:
    """Reads sprints of one state folder."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._folder = StateFolder.of(environment, asked=True)

    def sprint(self, name: str | None, *, story: str | None = None) -> SprintView:
        """Returns the named sprint, or the latest (that has `story`). Raises ConfigError naming the nearest."""
        return self._view(self._record(name, story))

    def story(self, name: str | None, story: str) -> SprintView:
        """Returns the same of this story alone, with all that is recorded of it. Raises ConfigError naming the nearest
        when the sprint does not have it."""
        view = self._view(self._record(name, story), story)
        find_history(view, story)
        return view

    def _record(self, name: str | None, story: str | None) -> SprintRecord:
        records = self._records()
        if name is not None:
            return _named(records, name)
        return (records if story is None else _having(records, story))[-1]

    def is_running(self, name: str) -> bool:
        """Returns whether a process works on a sprint, here or on another machine."""
        return holder(self._folder.lock(name)) is not None or bool(self._folder.holder_elsewhere(name))

    def has(self, name: str) -> bool:
        """Returns whether there is a sprint of this name."""
        return any(record.sprint == name and not record.cleared for record in self._folder.records())

    def records(self) -> list[SprintRecord]:
        """Returns the record of every sprint, oldest first."""
        return [record for record in self._folder.records() if not record.cleared]

    def expect_run(self, name: str) -> None:
        """Raises ConfigError naming the nearest when there is neither a sprint nor an analysis of this name."""
        if name not in {record.analysis for record in self._folder.analyses()}:
            _named(self._records(), name)

    def expect_story(self, story: str, sprint: str | None) -> None:
        """Raises ConfigError naming the nearest when no sprint or analysis (or not the named one) ever had `story`."""
        records = [record for record in self._folder.records() if sprint in {None, record.sprint}]
        known = {name for record in records for name in record.story_ids}
        analyses = [record for record in self._folder.analyses() if sprint in {None, record.analysis}]
        known |= {prompt.id for record in analyses for prompt in record.prompts}
        if story not in known:
            raise UnknownName(f"unknown story {story}{suggest(story, known)}")

    def latest(self, most: int, *, story: str | None = None) -> list[SprintView]:
        """Returns the latest sprints (with `story`), oldest first. Raises UnknownName for a story that none has."""
        records = self.records()
        if story is not None and records:
            records = _having(records, story)
        return [self._view(record) for record in records[-most:]]

    def latest_name(self) -> str | None:
        """Returns the id of the latest sprint; None while there is none."""
        records = self.records()
        return records[-1].sprint if records else None

    def head(self) -> int:
        """Returns the number of the last event in the log, 0 without any."""
        with open_log(self._environment, self._folder) as log:
            return log.head() if log else 0

    def all(self) -> list[SprintView]:
        """Returns every sprint, oldest first."""
        return [self._view(record) for record in self.records()]

    def events(self, sprint: str | None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yields the events after a sequence number."""
        with open_log(self._environment, self._folder) as log:
            yield from log.read(sprint, after) if log else ()

    def log(self) -> EventReader | None:
        """Returns the event log, which the caller closes; None while there is none."""
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return None
        return EventReader(event_url(self._environment, self._folder))

    def markdown(self, view: SprintView) -> str:
        """Returns the sprint's report for people, without what looks like a secret."""
        places = find_places(self._folder, view.record)
        text = draw_controls(render_report(view.report, view.histories, places))
        return redact(text, secrets_of(self._environment.variables))

    @property
    def folder(self) -> StateFolder:
        """Where everything lies."""
        return self._folder

    async def why_no_branch(self, record: SprintRecord, story: str) -> str:
        """Returns why the story's branch cannot be read here; "" where nothing is known against it."""
        if not await asyncio.to_thread(self._folder.mirror(Path(record.repo)).exists):
            # Fetching it would take what a whole clone takes.
            return "no branch yet" if self._folder.shared is None else "its branch is not on this machine"
        return ""

    async def diff_stat(self, record: SprintRecord, story: str) -> str:
        """Returns `git diff --stat` of the story's branch, or why there is none."""
        if why := await self.why_no_branch(record, story):
            return why
        mirror = self._folder.mirror(Path(record.repo))
        # Imported here: most commands need no git.
        from orchestrator.git.workspace import GitWorkspace

        worktrees = self._folder.worktrees(record.sprint)
        workspace = GitWorkspace(mirror=mirror, folder=worktrees, sprint=record.sprint, base=record.base)
        try:
            return await workspace.diff_stat(story)
        except WorkspaceError as error:
            return f"no branch yet ({error.message})"

    def _records(self) -> list[SprintRecord]:
        records = self.records()
        if not records:
            raise UnknownName(f"there is no sprint in {self._folder.home}; start one with `orchestrator run BACKLOG`")
        return records

    def _view(self, record: SprintRecord, story: str = "") -> SprintView:
        histories = read_histories(self._environment, self._folder, record, story=story)
        return make_view(self._folder, record, histories, read_sprint_events(self._environment, self._folder, record))

    def follow(self, name: str | None) -> "FollowedSprint":
        """Returns the named sprint, or the latest, to be looked at again and again. Raises ConfigError as `sprint`."""
        return FollowedSprint(self._environment, self._record(name, None))


def make_view(
    folder: StateFolder, record: SprintRecord, histories: dict[str, StoryHistory], events: list[Event]
) -> SprintView:
    """Returns a sprint as it is now; `events` are those of the sprint itself. Blocks."""
    board = Board(record.sprint)
    board.read(enumerate(events))
    pid = holder(folder.lock(record.sprint))
    return SprintView(
        record=record,
        histories=histories,
        events=events,
        running_pid=pid,
        running_on=folder.holder_elsewhere(record.sprint) if pid is None else "",
        paused=board.reason or why_it_rests(events),
        held={story: why for story in record.story_ids if (why := board.held(story))},
    )


class FollowedSprint:
    """A sprint that is looked at again and again: each look reads only what was recorded since the one before.

    Of a story's events only the questions, the healings and the last one are kept. Blocks; one thread at a time, while
    others may read the views: histories in them go on, their `place` does not, so it never lies behind what was shown.
    """

    def __init__(self, environment: Environment, record: SprintRecord) -> None:
        self._environment, self._folder = environment, StateFolder.of(environment, asked=True)
        self._stamp: object = None
        self._begin(record)

    def _begin(self, record: SprintRecord) -> None:
        self._record, self._fold = record, SprintFold(record, keeps={GATE_OPENED, GATE_ANSWERED, *HEALINGS})
        self._events: list[Event] = []
        self._place = 0
        self._changed: dict[str, int] = dict.fromkeys(record.story_ids, 0)
        self._rests: tuple[str, dict[str, str]] = ("", {})
        """Why nothing, and which stories may not go on, at the last look."""

    def look(self) -> SprintView:
        """Returns the sprint as it is now."""
        self._folder.refresh()
        if (stamp := self._folder.record_stamp(self._record.sprint)) != self._stamp:
            self._stamp = stamp
            record = self._folder.record(self._record.sprint)
            if record is not None and record != self._record:  # a story begins anew by an order
                self._begin(record)
        with open_log(self._environment, self._folder) as log:
            for place, logged in log.stored(self._record.sprint, self._place) if log else ():
                self._place = place
                if logged.story is None:
                    self._events.append(event_of(logged.body))
                else:
                    self._fold.add(logged.in_short())
                    self._changed[logged.story] = place
        view = make_view(self._folder, self._record, self._fold.histories, [*self._events])
        if (rests := (view.paused, view.held)) != self._rests:  # the sprint's own events tell so
            self._rests, self._changed = rests, dict.fromkeys(self._changed, self._place)
        return replace(view, place=self._place, changed={**self._changed})


def find_history(view: SprintView, story: str) -> StoryHistory:
    """Returns one story of a sprint. Raises ConfigError naming the nearest."""
    if story not in view.histories:
        raise UnknownName(f"sprint {view.record.sprint} has no story {story}{suggest(story, view.record.story_ids)}")
    return view.histories[story]


def _named(records: list[SprintRecord], name: str) -> SprintRecord:
    for record in records:
        if record.sprint == name:
            return record
    raise UnknownName(f"unknown sprint {name}{suggest(name, [record.sprint for record in records])}")


def _having(records: list[SprintRecord], story: str) -> list[SprintRecord]:
    fitting = [record for record in records if story in record.story_ids]
    if not fitting:
        closer = next((closer for record in records for closer, rows in record.closes.items() if story in rows), None)
        if closer is not None:
            raise UnknownName(f"{story} was not run itself, it is done with {closer}: name that one")
        known = sorted({known for record in records for known in record.story_ids})
        raise UnknownName(f"unknown story {story}{suggest(story, known)}")
    return fitting
