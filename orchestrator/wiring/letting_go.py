"""Removing one finished sprint or analysis, in steps that a kill may cut anywhere: given again, the rest is done."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.adapters.disk_use import disk_use
from orchestrator.adapters.event_pruning import EventPruner
from orchestrator.adapters.event_store import EventStore, sqlite_url, usable
from orchestrator.adapters.mirror_upkeep import drop_branches
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.adapters.sweep import discard
from orchestrator.adapters.sweep import prune as sweep_folder
from orchestrator.domain.analysis import AnalysisRecord
from orchestrator.domain.events import Event
from orchestrator.domain.retention import ANALYSIS_PRUNED, SPRINT_PRUNED, Pruning, Why
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.ports import Clock
from orchestrator.settings import Environment
from orchestrator.wiring.analysis_store import JOB, AnalysisStore
from orchestrator.wiring.sprints import ended_at, event_url, histories_of

KEPT = frozenset({"sprint.json", "analysis.json", JOB, "lock", ".trash"})
"""What stays in the folder of a pruned sprint or analysis; its trash is emptied."""
TREES = ("worktrees", "environments")


@dataclass(frozen=True)
class Past:
    """A sprint or an analysis of the state folder."""

    name: str
    place: Path
    record: SprintRecord | AnalysisRecord
    why: Why = Why.AGE
    ended: datetime | None = None

    @property
    def kind(self) -> str:
        """How people call it."""
        return "sprint" if isinstance(self.record, SprintRecord) else "analysis"

    @property
    def has_trees(self) -> bool:
        """Whether it has what nobody needs once it is finished, or a kill left some of that. Blocks."""
        trash = self.place / ".trash"
        return any((self.place / name).exists() for name in TREES) or (trash.is_dir() and any(trash.iterdir()))


class LettingGo:
    """Looks at what a state folder holds of the past, and removes it."""

    def __init__(self, environment: Environment, folder: StateFolder, clock: Clock) -> None:
        self._environment, self._folder, self._clock = environment, folder, clock
        self._url = event_url(environment, folder)

    def all(self) -> Iterator[Past]:
        """Every sprint that was not reset as a whole, and every analysis, oldest first. Blocks."""
        sprints = [one for one in self._folder.records() if not one.cleared]
        found = [Past(one.sprint, self._folder.sprint(one.sprint), one) for one in sprints]
        found += [Past(one.analysis, self._folder.analysis(one.analysis), one) for one in self._folder.analyses()]
        yield from sorted(found, key=lambda one: one.record.started_at)

    def ended(self, past: Past) -> datetime | None:
        """When it ended; None while it may go on, or when it was pruned. Blocks."""
        record = past.record
        if record.pruned is not None:
            return None
        if isinstance(record, SprintRecord):
            known = self._folder.report(past.name).exists()
            return ended_at(self._environment, self._folder, record) if known else None
        if not record.finished:
            return None
        return datetime.fromtimestamp((past.place / "analysis.json").stat().st_mtime, UTC)

    def weigh(self, past: Past) -> int:
        """About how many bytes would go with it. Blocks."""
        if past.why is Why.TREES:
            return disk_use(*(past.place / name for name in TREES))
        inside = [entry for entry in past.place.iterdir() if entry.name not in KEPT]
        files = disk_use(*inside, self._folder.replies / past.name, self._folder.edits(past.name))
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return files
        events = EventPruner(self._url)
        try:
            return files + events.weigh(past.name)
        finally:
            events.close()

    async def remove(self, past: Past, lock_fd: int) -> Past | None:
        """Do it; the caller holds its lock. What is left of it, or None when it was begun anew meanwhile."""
        same = await asyncio.to_thread(self._again, past)
        if same is None or (same.record.pruned is None and await asyncio.to_thread(self.ended, same) is None):
            return None
        if past.why is Why.TREES:
            await asyncio.to_thread(self._drop_trees, past)
            return past
        pruning = same.record.pruned
        if pruning is None:
            pruning = await asyncio.to_thread(self._mark, same)
        await self._drop_events(past, pruning)
        await asyncio.to_thread(self._drop_rows, past)
        await asyncio.to_thread(self._drop_files, past)
        if isinstance(past.record, SprintRecord):
            done = [story for story, status in pruning.statuses.items() if status is StoryStatus.DONE]
            await drop_branches(self._folder.mirror(Path(past.record.repo)), past.name, done, (lock_fd,))
        return replace(past, record=same.record.model_copy(update={"pruned": pruning}))

    def _again(self, past: Past) -> Past | None:
        """As it is now; None when it was reset as a whole or is gone."""
        record: SprintRecord | AnalysisRecord | None = self._folder.record(past.name)
        if isinstance(past.record, AnalysisRecord):
            record = next((one for one in self._folder.analyses() if one.analysis == past.name), None)
        cleared = isinstance(record, SprintRecord) and record.cleared
        return None if record is None or cleared else replace(past, record=record)

    def finish(self, past: Past) -> None:
        """Nothing of it is left to remove. Blocks."""
        if past.record.pruned is not None:
            self._save(past, past.record.pruned.model_copy(update={"done": True}))

    def _mark(self, past: Past) -> Pruning:
        """First of all: from now on nobody looks for what is about to go."""
        statuses = {}
        if isinstance(past.record, SprintRecord):
            histories = histories_of(self._environment, self._folder, past.record)
            statuses = {story: history.status for story, history in histories.items()}
        pruning = Pruning(at=self._clock.now(), statuses=statuses)
        self._save(past, pruning)
        return pruning

    def _save(self, past: Past, pruning: Pruning) -> None:
        after = past.record.model_copy(update={"pruned": pruning})
        if isinstance(after, SprintRecord):
            self._folder.save(after)
        else:
            self._folder.save_analysis(after)

    async def _drop_events(self, past: Past, pruning: Pruning) -> None:
        name = SPRINT_PRUNED if past.kind == "sprint" else ANALYSIS_PRUNED
        left = "its record, its report and its result branch are" if past.kind == "sprint" else "its record is"
        event = Event(
            id=f"{past.name}:{name}",
            time=pruning.at,
            name=name,
            message=f"{past.kind} {past.name} was pruned: {left} left",
            sprint=past.name,
            data={"statuses": {story: status.value for story, status in pruning.statuses.items()}},
        )
        async with EventStore(self._url) as sink:
            await sink.emit(event)
        await asyncio.to_thread(self._prune_events, past.name, event.id)

    def _prune_events(self, name: str, last_word: str) -> None:
        events = EventPruner(self._url)
        try:
            events.prune(name, last_word)
        finally:
            events.close()

    def _drop_rows(self, past: Past) -> None:
        if self._environment.database_url is None and not self._folder.engine_database.exists():
            return
        # Imported here: the engine takes a second to import, and most looks find nothing.
        from orchestrator.engine.pruning import forget_workflows

        with usable():
            forget_workflows(self._environment.database_url or sqlite_url(self._folder.engine_database), past.name)

    def _drop_files(self, past: Past) -> None:
        for place in (self._folder.replies / past.name, self._folder.edits(past.name)):
            discard(place, past.place / ".trash")
        if past.kind == "analysis":
            AnalysisStore(self._environment).strip(past.name)
        sweep_folder(past.place, KEPT)

    def _drop_trees(self, past: Past) -> None:
        sweep_folder(past.place, {entry.name for entry in past.place.iterdir()} - {*TREES})
