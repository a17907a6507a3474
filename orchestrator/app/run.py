"""`run`: one sprint from a backlog to a report, in the foreground."""

import asyncio
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from orchestrator.app.given_plans import read_plans, require_valid, to_read_again
from orchestrator.app.plan_files import brought, with_plans
from orchestrator.app.runners import sandbox_for
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import known_secrets
from orchestrator.app.sprint_reader import RunResult, push, save_report
from orchestrator.app.sprint_runtime import Equipment, Site
from orchestrator.app.sprints import (
    Chosen,
    continued_sprint,
    finished,
    histories_of,
    new_sprint,
    sprints_elsewhere,
    workspace_of,
)
from orchestrator.app.team import prompt_library
from orchestrator.backlogs.files import open_backlog
from orchestrator.checks.backlog import all_problems, refusal
from orchestrator.core.command import Gate
from orchestrator.core.errors import BaseUnusable, ConfigError, RepositoryError
from orchestrator.core.event import Event
from orchestrator.core.exchange import GivenPlan
from orchestrator.core.finding import blocking
from orchestrator.core.history import StoryHistory, is_finished
from orchestrator.core.ports import Clock
from orchestrator.core.secrets import secrets_of
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.core.value import counted
from orchestrator.engine.durable import DurableEngine
from orchestrator.files.process import SystemClock
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.providers.routing import RoutedProvider, open_providers, policies_of
from orchestrator.sandbox.command_runner import remove_old_scratch
from orchestrator.settings import Environment, Policies, Settings, forget_secrets
from orchestrator.settings.options import RunOptions, default_repository
from orchestrator.sprint.slots import known_cells
from orchestrator.storage.event_store import PATIENCE_S
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import StateFolder

Histories = dict[str, StoryHistory]


class Run:
    """One `run`. `tell` gets sentences for people, `listen` new events, `waits` the stories that wait for people."""

    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        environment: Environment,
        *,
        tell: Callable[[str], None],
        listen: Callable[[Event], None],
        waits: Callable[[str, Gate], None] = lambda _story, _gate: None,
    ) -> None:
        self._options, self._settings, self._environment = options, settings, environment
        self._tell, self._listen, self._waits = tell, listen, waits
        self._folder = StateFolder(environment.home)
        self._clock: Clock = SystemClock()

    async def go(self) -> RunResult:
        """The whole run. Raises UserError before anything is spent."""
        content = await asyncio.to_thread(self._read)
        asked = (self._options, self._settings, self._environment, self._clock)
        provider = await asyncio.to_thread(open_providers, *asked)
        try:
            forget_secrets()
            return await self._go(content, provider)
        finally:
            await provider.close()

    async def _go(self, content: BacklogContent, provider: RoutedProvider) -> RunResult:
        options, environment = self._options, self._environment
        library = await asyncio.to_thread(prompt_library, self._settings, environment)
        sandbox = await sandbox_for(self._settings, environment)
        if warning := await asyncio.to_thread(self._folder.make):
            self._warn(warning)
        default = await asyncio.to_thread(default_repository)
        repository = await open_repository(options.repo or default)
        chosen = await asyncio.to_thread(self._choose, content, repository.path, repository.base)
        for warning in (*repository.warnings, *map(str, chosen.record.warnings)):
            self._warn(warning)
        async with SprintLock(self._folder.lock(chosen.record.sprint)) as lock:
            chosen = await asyncio.to_thread(self._settled, chosen)
            record = chosen.record
            workspace = workspace_of(self._folder, record, (lock.fd,), repository.object_format)
            works = Works(
                self._settings, environment, provider, executor_id=f"run-{record.sprint}", listen=self._listen
            )
            try:
                await asyncio.to_thread(remove_old_scratch, Path(tempfile.gettempdir()))
                await workspace.prepare(repository.path)
                secrets = await known_secrets(workspace, secrets_of(environment.variables), self._tell)
                if options.push_to:
                    await self._check_push(chosen, workspace, repository.path, options.push_to)
                equipment = Equipment(
                    works=works, environment=environment, library=library, sandbox=sandbox, secrets=secrets,
                    provider=options.provider, provider_told=str(provider),
                )  # fmt: skip
                record, paused = await self._work(chosen, equipment, workspace, lock.fd)
                unpushed = await push(workspace, repository.path, options.push_to)
                report, path, _ = await asyncio.to_thread(
                    save_report, environment, record, content.stories, paused, secrets, PATIENCE_S
                )
                return RunResult(
                    report=report,
                    report_path=path,
                    fetch_command=workspace.fetch_command,
                    repo=repository.path,
                    pushed=None if unpushed else options.push_to,
                    unpushed=unpushed,
                    paused=paused,
                )
            finally:
                workspace.close()

    def _warn(self, text: str) -> None:
        self._tell(f"warning: {text}")

    def _read(self) -> BacklogContent:
        """The backlog; a broken one is told before anything else is looked at or made. Raises BacklogError."""
        content = open_backlog(self._options.backlog, self._settings, self._folder).read()
        problems = all_problems(content)
        if blocking(problems):
            raise refusal(content.source, problems)
        return content

    async def _check_push(self, chosen: Chosen, workspace: GitWorkspace, repo: Path, branch: str) -> None:
        """Raises RepositoryError; a sprint that this command was to begin has then not begun."""
        try:
            await workspace.check_push(repo, branch)
        except RepositoryError:
            if not chosen.continued:
                await self._not_begun(chosen.record, workspace)
            raise

    async def _not_begun(self, record: SprintRecord, workspace: GitWorkspace) -> None:
        """Nothing of the sprint has begun: its base and its selection are not fixed."""
        await workspace.remove_result()
        await asyncio.to_thread(self._folder.save, record.model_copy(update={"cleared": True}))

    def _settled(self, chosen: Chosen) -> Chosen:
        """What counts once the lock is held: another process may have begun this very sprint meanwhile.

        Raises ConfigError for `--plan`, and a sprint that this command was to begin has then not begun.
        """
        current = self._folder.record(chosen.record.sprint)
        goes_on = current is not None and not current.cleared
        record = current if current is not None and goes_on else chosen.record
        if self._options.plans:
            found = brought(self._options.plans, record.story_ids, chosen.content, record.plans)
            histories = histories_of(self._environment, self._folder, record)
            record = with_plans(record, found, histories, self._warn)
        if record != current:
            self._folder.save(record)
        return Chosen(record=record, continued=goes_on, content=chosen.content)

    def _choose(self, content: BacklogContent, repo: Path, base: str) -> Chosen:
        ended = partial(finished, self._environment, self._folder)
        known = continued_sprint(self._options, repo, self._folder, lambda record: not ended(record))
        if known is not None and not known.cleared:
            self._tell(f"sprint {known.sprint} of {known.started_at:%Y-%m-%d %H:%M} goes on")
            return Chosen(record=known, continued=True, content=content)
        others, place = sprints_elsewhere(self._environment, self._folder), self._folder
        clock = self._clock
        record = new_sprint(self._options, content, place, repo=repo, base=base, clock=clock, elsewhere=others)
        self._tell(f"sprint {record.sprint}: {counted(len(record.story_ids), 'story', 'stories')}")
        return Chosen(record=record, continued=False, content=content)

    async def _work(
        self, chosen: Chosen, equipment: Equipment, workspace: GitWorkspace, lock_fd: int
    ) -> tuple[SprintRecord, str | None]:
        """Drives the sprint. Returns its record as it is then, and why it paused, or None.

        Raises BaseUnusable; a sprint that was new has then not begun: the next one starts from a better base.
        """
        record = chosen.record
        histories = await asyncio.to_thread(histories_of, self._environment, self._folder, record)
        if is_finished(histories):
            self._tell(f"sprint {record.sprint} is finished; nothing is run again")
            # The run that finished it may have been killed before the backlog file was written.
            backlog = await asyncio.to_thread(open_backlog, self._options.backlog, self._settings, self._folder)
            if warning := await asyncio.to_thread(backlog.write, known_cells(record, histories)):
                self._warn(warning)
            return record, None
        for story, history in histories.items():
            if history.waits_for is not None:
                self._waits(story, history.waits_for)
        site = await asyncio.to_thread(
            Site, equipment, chosen, workspace, self._settings, histories, secrets=equipment.secrets, lock_fd=lock_fd
        )
        try:
            async with equipment.works, site:
                if record.plans and all(history.started is None for history in histories.values()):
                    await site.require_base()  # reading a person's plan is paid for
                policies = policies_of(self._settings, self._options.provider)
                site.plans.update(await self._plans(chosen, histories, equipment.works.engine, policies, workspace))
                paused = await site.drive(self._warn)
                return site.record, paused
        except BaseUnusable:
            histories = await asyncio.to_thread(histories_of, self._environment, self._folder, record)
            if all(history.outcome is None for history in histories.values()):  # none was cancelled meanwhile
                await self._not_begun(record, workspace)
            raise

    async def _plans(
        self, chosen: Chosen, histories: Histories, engine: DurableEngine, policies: Policies, workspace: GitWorkspace
    ) -> dict[str, GivenPlan]:
        """The plans that people brought. Where nobody is asked about them, raises ConfigError for one that cannot be
        built; where no story has begun, nothing of the sprint has then."""
        plans = await read_plans(chosen.record, histories, chosen.content, engine, policies)
        try:
            if policies.gate.mode == "auto":
                await require_valid(plans, histories, workspace, policies.plan.min_chars)
        except ConfigError:
            record = to_read_again(chosen.record, plans, histories)
            if all(history.started is None for history in histories.values()):
                await self._not_begun(record, workspace)
            else:
                await asyncio.to_thread(self._folder.save, record)
            raise
        return plans
