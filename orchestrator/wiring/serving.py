"""One sprint of the daemon, from its lock to its report."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.repository import expect_there, open_repository
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.adapters.sprint_lock import SprintLock
from orchestrator.domain.events import Event, Level
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.story import BacklogContent
from orchestrator.errors import BaseUnusable
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.report import exit_code
from orchestrator.wiring.backlogs import open_backlog
from orchestrator.wiring.reports import facts_told, save_report
from orchestrator.wiring.repositories import SharedRepository
from orchestrator.wiring.runners import project_runner
from orchestrator.wiring.sandboxes import begun_events
from orchestrator.wiring.secrecy import known_secrets
from orchestrator.wiring.site import Site
from orchestrator.wiring.sprints import (
    Chosen,
    ending_id,
    failed_before,
    histories_of,
    last_end,
    require_rows,
    sprint_events,
)
from orchestrator.wiring.works import Works


@dataclass(frozen=True, kw_only=True)
class Equipment:
    """What the daemon gives to each of its sprints."""

    works: Works
    environment: Environment
    library: PromptLibrary
    sandbox: Sandbox
    secrets: tuple[str, ...]
    provider: str | None
    """Who answers everybody, if somebody does."""
    provider_told: str


class ServedSprint:
    """Drives one sprint until it has ended; `site` is there while it is at work."""

    def __init__(self, record: SprintRecord, content: BacklogContent, equipment: Equipment, settings: Settings) -> None:
        self.record, self._content = record, content
        self._equipment, self.settings = equipment, settings
        self._works, self._environment = equipment.works, equipment.environment
        self.site: Site | None = None

    def change(self, settings: Settings) -> None:
        """What begins from now on goes by these."""
        self.settings = settings
        if self.site is not None:
            self.site.change(settings)

    async def drive(self, repository: SharedRepository) -> None:
        """Until every story has its outcome or the sprint was reset. Raises SprintLocked, RepositoryError,
        WorkspaceError, ConfigError before anything is done when it cannot be worked on now; BaseUnusable also when
        nothing has changed since its base could not be run."""
        folder, record = self._works.folder, self.record
        async with SprintLock(folder.lock(record.sprint)) as lock:
            source = Path(record.repo)
            if record.sprint in self._works.refused or not await asyncio.to_thread(source.exists):
                await repository.now()  # it may hold something better now; and the copy of a remote one is in no backup
            if record.base:
                await asyncio.to_thread(expect_there, source)
            found = await open_repository(source)
            workspace = GitWorkspace(
                mirror=folder.mirror(source),
                folder=folder.worktrees(record.sprint),
                sprint=record.sprint,
                base=record.base,
                lock_fds=(lock.fd,),
                object_format=found.object_format,
            )
            try:
                await workspace.prepare(source)
                if await self._moved(workspace, found.base):
                    return
                await repository.check_push(workspace, record)
                secrets = await known_secrets(workspace, self._equipment.secrets, lambda _text: None)
                self._works.sink.hide(secrets)
                try:
                    await self._work(workspace, secrets, lock.fd)
                except BaseUnusable as error:
                    self._works.refused[record.sprint] = (self._looked_at(found.base), error.message)
                    raise
                if not self.record.cleared:
                    await self._conclude(workspace, secrets, repository)
            finally:
                self.site = None
                workspace.close()

    def _looked_at(self, head: str) -> object:
        """What a sprint whose base cannot be run waits for another one of."""
        return head, self._content, self.settings

    async def _moved(self, workspace: GitWorkspace, head: str) -> bool:
        """Whether the sprint starts from another commit, as its base could not be run and the repository has gone on.

        The record is another one then, and the daemon begins with that. Raises BaseUnusable when nothing has changed.
        """
        record, refused = self.record, self._works.refused.get(self.record.sprint)
        if refused is None:
            return False
        if head != record.base:
            await workspace.remove_result()
            moved = record.model_copy(update={"base": head})
            await asyncio.to_thread(self._works.folder.save, moved)
            del self._works.refused[record.sprint]
            return True
        looked_at, why = refused
        if looked_at == self._looked_at(head):
            raise BaseUnusable(why)
        return False

    async def _work(self, workspace: GitWorkspace, secrets: tuple[str, ...], lock_fd: int) -> None:
        folder, environment, record = self._works.folder, self._environment, self.record
        histories = await asyncio.to_thread(histories_of, environment, folder, record)
        chosen = Chosen(
            record=record, continued=any(history.started for history in histories.values()), content=self._content
        )
        require_rows(chosen, histories)
        failed = await asyncio.to_thread(failed_before, environment, folder, record, histories)
        now, equipment = self._works.clock.now(), self._equipment
        for event in begun_events(chosen, equipment.provider_told, equipment.sandbox.facts, now):
            await self._works.sink.emit(event)
        for warning in () if chosen.continued else record.warnings:
            await self._warn(str(warning))
        site = await asyncio.to_thread(self._site, chosen, workspace, secrets, lock_fd)
        backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), self.settings, folder)
        async with site:
            self.site = site
            await site.drive(histories, backlog, self._warn, failed=failed, stays=True)
            self.record = site.record

    def _site(self, chosen: Chosen, workspace: GitWorkspace, secrets: tuple[str, ...], lock_fd: int) -> Site:
        folder, record = self._works.folder, chosen.record
        base = BaseCommit(folder.mirror(Path(record.repo)), record.base, Path(record.repo))
        place = (folder.environments(record.sprint), self._equipment.sandbox)
        slots = self._works.commands
        runner = project_runner(self.settings, self._environment, *place, slots=slots, lock_fds=(lock_fd,), base=base)
        return Site(
            self._works,
            chosen,
            workspace,
            settings=self.settings,
            environment=self._environment,
            library=self._equipment.library,
            runner=runner,
            secrets=secrets,
            provider=self._equipment.provider,
        )

    async def _warn(self, text: str) -> None:
        await self._emit("backlog_warning", text, level=Level.WARN)

    async def _conclude(self, workspace: GitWorkspace, secrets: tuple[str, ...], repository: SharedRepository) -> None:
        folder, record, environment = self._works.folder, self.record, self._environment
        histories = await asyncio.to_thread(histories_of, environment, folder, record)
        facts = facts_told(await asyncio.to_thread(sprint_events, environment, folder, record))
        # In this order: a sprint with a report and this event is not looked at again.
        unpushed = await repository.push(workspace, record)
        report, path = await asyncio.to_thread(
            save_report, folder, record, histories, self._content.stories, None, secrets, facts
        )
        counts = {name: count for name, count in report.totals.items() if isinstance(count, int)}
        done = f"sprint {record.sprint} has ended: " + ", ".join(f"{n} {name}" for name, n in counts.items() if n)
        good = exit_code(report) == 0
        level = Level.INFO if good and not unpushed else Level.WARN
        told = done + (f"; not pushed: {unpushed}" if unpushed else "")
        await self._emit(
            "sprint_ended",
            told,
            which=ending_id(record.sprint, last_end(record, histories)),
            level=level,
            report=str(path),
            good=good,
            push_to=repository.branch(record.sprint),
            unpushed=unpushed,
        )

    async def _emit(self, name: str, message: str, *, level: Level, which: str = "", **data: object) -> None:
        """`which` is the event's id, of one that is told once; others are told each time."""
        now = self._works.clock.now()
        sprint = self.record.sprint
        await self._works.sink.emit(
            Event(
                id=which or f"{sprint}:{name}:{now.isoformat()}",
                time=now,
                level=level,
                name=name,
                message=message,
                sprint=sprint,
                data=data,
            )
        )
