"""What `status`, `show`, `logs` and `contract` read; never launches the engine (decisions.md#processes)."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rapidfuzz import process

from orchestrator.adapters.event_store import EventReader
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.sprint_lock import holder
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.events import Event
from orchestrator.domain.outcome import SprintReport
from orchestrator.domain.redaction import redact, secrets_of
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import UnknownName, WorkspaceError
from orchestrator.settings import Environment
from orchestrator.sprint.board import Board
from orchestrator.sprint.history import StoryHistory
from orchestrator.sprint.pause import why_it_rests
from orchestrator.sprint.report import build_report, with_facts
from orchestrator.sprint.report_markdown import render_report
from orchestrator.wiring.reports import facts_told, places_of
from orchestrator.wiring.sprints import event_url, histories_of, saved_report, sprint_events


@dataclass(frozen=True, kw_only=True)
class SprintView:
    """One sprint as the log tells it."""

    record: SprintRecord
    histories: dict[str, StoryHistory]
    report: SprintReport
    running_pid: int | None
    """Pid of the process that works on it, or None."""
    paused: str = ""
    """Why no further story of it begins; "" when they do."""
    held: dict[str, str] = field(default_factory=dict)
    """Story → what people ordered of it that holds it."""


class Reader:
    """Reads sprints of one state folder."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._folder = StateFolder(environment.home)

    def sprint(self, name: str | None, *, story: str | None = None) -> SprintView:
        """The named sprint, or the latest (that has `story`), with all that is recorded of that story.

        Raises ConfigError naming the nearest.
        """
        records = self._records()
        if name is not None:
            return self._view(_named(records, name), story)
        return self._view((records if story is None else _having(records, story))[-1], story)

    def has(self, name: str) -> bool:
        """Returns whether there is a sprint of this name."""
        return any(record.sprint == name and not record.cleared for record in self._folder.records())

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
            raise UnknownName(f"unknown story {story}{_nearest(story, sorted(known))}")

    def expect(self, sprint: str, story: str | None = None) -> None:
        """Raises UnknownName naming the nearest when there is no such sprint, or none of its stories is this one."""
        record = _named(self._records(), sprint)
        if story is not None and story not in record.story_ids:
            raise UnknownName(f"sprint {sprint} has no story {story}{_nearest(story, list(record.story_ids))}")

    def latest(self, most: int, *, story: str | None = None) -> list[SprintView]:
        """The latest sprints (that have `story`), oldest first. Raises UnknownName for a story that none has."""
        records = [record for record in self._folder.records() if not record.cleared]
        if story is not None and records:
            records = _having(records, story)
        return [self._view(record) for record in records[-most:]]

    def all(self) -> list[SprintView]:
        """Every sprint, oldest first."""
        return [self._view(record) for record in self._folder.records() if not record.cleared]

    def events(self, sprint: str | None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events behind a sequence number."""
        reader = self.log()
        if reader is None:
            return
        try:
            yield from reader.read(sprint, after)
        finally:
            reader.close()

    def log(self) -> EventReader | None:
        """The event log, to be read again and again and closed in the end; None while there is none."""
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return None
        return EventReader(event_url(self._environment, self._folder))

    def markdown(self, view: SprintView) -> str:
        """The sprint's report for people as it is now, without what looks like a secret; a pruned one's as it was."""
        kept = self._folder.report(view.record.sprint).with_suffix(".md")
        if view.record.pruned is not None and kept.exists():
            return kept.read_text(encoding="utf-8", errors="replace")
        places = places_of(self._folder, view.record)
        return redact(render_report(view.report, view.histories, places), secrets_of(self._environment.variables))

    async def diff_stat(self, record: SprintRecord, story: str) -> str:
        """`git diff --stat` of the story's branch, or why there is none."""
        if record.pruned is not None and record.pruned.statuses.get(story) is StoryStatus.DONE:
            return "its branch was pruned; its commits are part of the result"
        mirror = self._folder.mirror(Path(record.repo))
        if not await asyncio.to_thread(mirror.exists):
            return "no branch yet"
        workspace = GitWorkspace(
            mirror=mirror, folder=self._folder.worktrees(record.sprint), sprint=record.sprint, base=record.base
        )
        try:
            return await workspace.diff_stat(story)
        except WorkspaceError as error:
            return f"no branch yet ({error.message})"

    def _records(self) -> list[SprintRecord]:
        records = [record for record in self._folder.records() if not record.cleared]
        if not records:
            raise UnknownName(f"there is no sprint in {self._folder.home}; start one with `orchestrator run BACKLOG`")
        return records

    def _view(self, record: SprintRecord, story: str | None = None) -> SprintView:
        histories = histories_of(self._environment, self._folder, record, whole=story or "")
        events = sprint_events(self._environment, self._folder, record)
        kept = saved_report(self._folder, record.sprint) if record.pruned is not None else None
        rests = why_it_rests(events)
        report = kept or build_report(record, histories, record.titles, rests)
        board = Board(record.sprint)
        board.read(enumerate(events))
        return SprintView(
            record=record,
            histories=histories,
            report=with_facts(report, facts_told(events)),
            running_pid=holder(self._folder.lock(record.sprint)),
            paused=board.reason or rests,
            held={story: why for story in record.story_ids if (why := board.held(story))},
        )


def history_of(view: SprintView, story: str) -> StoryHistory:
    """One story of a sprint. Raises ConfigError naming the nearest."""
    if story not in view.histories:
        raise UnknownName(
            f"sprint {view.record.sprint} has no story {story}{_nearest(story, list(view.record.story_ids))}"
        )
    return view.histories[story]


def _named(records: list[SprintRecord], name: str) -> SprintRecord:
    for record in records:
        if record.sprint == name:
            return record
    raise UnknownName(f"unknown sprint {name}{_nearest(name, [record.sprint for record in records])}")


def _having(records: list[SprintRecord], story: str) -> list[SprintRecord]:
    fitting = [record for record in records if story in record.story_ids]
    if not fitting:
        closer = next((closer for record in records for closer, rows in record.closes.items() if story in rows), None)
        if closer is not None:
            raise UnknownName(f"{story} was not run itself, it is done with {closer}: name that one")
        known = sorted({known for record in records for known in record.story_ids})
        raise UnknownName(f"unknown story {story}{_nearest(story, known)}")
    return fitting


def _nearest(name: str, known: list[str]) -> str:
    found = process.extractOne(name, known)
    return f"; did you mean {found[0]}?" if found else ""
