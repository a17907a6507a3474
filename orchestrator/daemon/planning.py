"""Plans the daemon's work: watched backlogs, its unfinished sprints, and rows for new ones."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from orchestrator.app.sprints import find_sprints_elsewhere, make_sprint_record
from orchestrator.core.daemon import BacklogState
from orchestrator.core.errors import ConfigError, SprintLocked, UserError
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.daemon.backlog_watcher import News, Watched, find_backlogs
from orchestrator.git.repositories import SharedRepository
from orchestrator.git.repository import Repository, expect_there, open_repository
from orchestrator.records.histories import is_sprint_finished
from orchestrator.settings import Environment, Settings
from orchestrator.settings.options import RunOptions, ServeOptions
from orchestrator.storage.leases import NEW, NEW_S, Lease
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import PRUNED, StateFolder


class Planner:
    """Knows what is to be done; does none of it."""

    def __init__(self, asked: ServeOptions, environment: Environment, folder: StateFolder, clock: Clock) -> None:
        self._asked, self._environment, self._folder, self._clock = asked, environment, folder, clock
        self._watched: dict[Path, Watched] = {}
        self._records: dict[Path, tuple[tuple[int, int, int], SprintRecord]] = {}
        self._finished: dict[str, SprintRecord] = {}
        self._waiting: dict[Path, tuple[str, ...]] = {}
        """Backlog → its rows that no sprint had taken at the last look: counted there, not for each who asks."""
        self.broken: dict[str, str] = {}
        """Sprint → why its record cannot be read."""
        self.lease: Lease
        self.masked: Callable[[BacklogContent], BacklogContent] = lambda read: read
        """Takes the secrets out of a backlog."""
        self.known: list[SprintRecord] = []
        """Every sprint of the state folder, pruned ones included, those that were reset as a whole left out."""
        self.own: list[SprintRecord] = []
        """Those of this daemon; what `run` began is left to it."""

    @property
    def watched(self) -> list[Watched]:
        """The backlogs as they were looked at last."""
        return [*self._watched.values()]

    def look(self, settings: Settings) -> list[tuple[Watched, News]]:
        """Looks at every backlog and every record. Returns what is new. Blocks."""
        self._find(settings)
        now = self._clock.now()
        news = [(watched, found) for watched in self.watched if (found := watched.look(settings, now)) is not None]
        self._look_at_records()
        return news

    def _look_at_records(self) -> None:
        self._folder.refresh()
        self.known = [record for record in self._read_records() if not record.cleared]
        pruned = {path.parent.name for path in self._records if path.name == PRUNED}
        self.own = [record for record in self.known if self._is_own(record) and record.sprint not in pruned]
        self._count()

    def _count(self) -> None:
        groups = {watched.path: watched.untaken(self.known).values() for watched in self.watched}
        self._waiting = {path: tuple(story for group in found for story in group) for path, found in groups.items()}

    def _is_own(self, record: SprintRecord) -> bool:
        """Returns whether a daemon began it: this one, or any of those that share a database."""
        if self._folder.shared is not None:
            return bool(record.executor)
        return record.executor == self.lease.executor_id

    def _read_records(self) -> list[SprintRecord]:
        """Returns every record, read again only where its file is another one."""
        known, self._records, self.broken = self._records, {}, {}
        sprints = self._folder.home / "sprints"
        for path in (*sprints.glob("*/sprint.json"), *sprints.glob(f"*/{PRUNED}")):
            before = known.get(path)
            try:
                told = path.stat()
                stamp = (told.st_mtime_ns, told.st_size, told.st_ino)
                record = before[1] if before is not None and before[0] == stamp else self._folder.read_record(path)
            except FileNotFoundError:  # it was just removed
                continue
            except (ConfigError, OSError) as error:
                self.broken[path.parent.name] = str(error)
                continue
            if record is not None:
                self._records[path] = (stamp, record)
        return sorted((record for _, record in self._records.values()), key=lambda record: record.started_at)

    def states(self, why_waiting: Callable[[str], str]) -> tuple[BacklogState, ...]:
        """Returns how each backlog is; `why_waiting` says of a path why no sprint can begin with it."""
        return tuple(
            BacklogState(
                name=watched.path.name,
                path=str(watched.path),
                read_at=watched.read_at,
                stories=len(watched.content.stories) if watched.content is not None else 0,
                waiting=self._waiting.get(watched.path, ()),
                refused=watched.refused or why_waiting(str(watched.path)),
                problems=watched.problems,
            )
            for watched in self.watched
        )

    def _find(self, settings: Settings) -> None:
        named = [*self._asked.backlogs, *(self._environment.base_dir / name for name in settings.serve.backlogs)]
        # A folder without backlogs is none, unless it stands where a backlog was.
        stays = {place for place in named if place.absolute() in self._watched}
        found = (find_backlogs(place) or stays & {place} for place in named)
        paths = [path.absolute() for places in found for path in places]
        if self._folder.submitted.is_dir():
            paths += find_backlogs(self._folder.submitted)
        self._watched = {path: self._watched.get(path) or self._watch(path) for path in dict.fromkeys(paths)}

    def _watch(self, path: Path) -> Watched:
        return Watched(path, self._folder, lambda read: self.masked(read))

    def unfinished(self, ended: Mapping[str, SprintRecord], at_work: Collection[str]) -> list[SprintRecord]:
        """Returns own sprints with work left that are not at work.

        `ended` are known to have none, as long as their records are these. Blocks.
        """
        return [
            record
            for record in self.own
            if record.sprint not in at_work and ended.get(record.sprint) != record and not self._is_finished(record)
        ]

    def _is_finished(self, record: SprintRecord) -> bool:
        """Remembers each answer: what reopens a finished sprint writes another record."""
        if self._finished.get(record.sprint) == record:
            return True
        try:
            done = is_sprint_finished(self._environment, self._folder, record)
        except ConfigError:  # beginning with it says why
            return False
        if done:
            self._finished[record.sprint] = record
        return done

    def content(self, record: SprintRecord) -> BacklogContent | None:
        """Returns what the sprint's backlog says, or said when it was good last."""
        path = Path(record.backlog)
        return (self._watched.get(path) or self._watch(path)).content

    async def new_sprint(self, watched: Watched, repository: SharedRepository) -> SprintRecord | None:
        """Returns a sprint over rows that none has taken, recorded; None when there are none.

        Raises BacklogError, ConfigError, RepositoryError when none can begin with them.
        """
        # In a thread: a backlog of many thousand rows is counted at each look.
        if not await asyncio.to_thread(lambda: watched.untaken(self.known) and watched.is_current):
            return None
        # Another machine that watches the same backlog must not take the same rows.
        async with self.lease.holding(NEW, wait_s=NEW_S):
            await asyncio.to_thread(self._look_at_records)
            return await self._begun(watched, repository)

    async def _begun(self, watched: Watched, repository: SharedRepository) -> SprintRecord | None:
        # What a sprint wrote into its backlog, or took out of it, is read first.
        if not await asyncio.to_thread(lambda: watched.untaken(self.known) and watched.is_current):
            return None
        groups, content = await asyncio.to_thread(watched.untaken, self.known), watched.content
        if content is None:
            return None
        source = await repository.now()
        await asyncio.to_thread(self._expect_there, source)
        found = await open_repository(source)
        trouble: UserError | None = None
        for name, stories in groups.items():
            options = RunOptions(backlog=watched.path, sprint=name or None, stories=stories)
            try:
                return await self._recorded(options, content, found)
            except UserError as error:  # other rows must not wait for these
                trouble = trouble or error
        assert trouble is not None
        raise trouble

    def _expect_there(self, source: Path) -> None:
        """Raises RepositoryError where the repository of earlier sprints is gone: it is not created again, empty."""
        if any(record.base and Path(record.repo) == source.resolve() for record in self.known):
            expect_there(source)

    async def _recorded(self, options: RunOptions, content: BacklogContent, found: Repository) -> SprintRecord:
        record = await asyncio.to_thread(self._record, options, content, found.path, found.base)
        async with SprintLock(self._folder.lock(record.sprint)), self.lease.holding(record.sprint):
            await asyncio.to_thread(self._folder.refresh)
            known = await asyncio.to_thread(self._folder.record, record.sprint)
            if known is not None and not known.cleared:
                raise SprintLocked(f"sprint {record.sprint} has just begun elsewhere", pid=0)
            await asyncio.to_thread(self._folder.save, record)
        self.known.append(record)
        self.own.append(record)
        await asyncio.to_thread(self._count)
        return record

    def _record(self, options: RunOptions, content: BacklogContent, repo: Path, base: str) -> SprintRecord:
        known = self._folder.record(options.sprint) if options.sprint is not None else None
        if known is not None and not known.cleared:
            raise ConfigError(
                f"the rows {', '.join(options.stories)} carry the Sprint_ID {options.sprint}, a sprint that has begun "
                f"without them; give them another one, or none"
            )
        elsewhere = find_sprints_elsewhere(self._environment, self._folder)
        record = make_sprint_record(
            options, content, self._folder, repo=repo, base=base, clock=self._clock, elsewhere=elsewhere
        )
        return record.model_copy(update={"executor": self.lease.executor_id})
