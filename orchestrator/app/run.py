"""`run`: one sprint from a backlog to a report, in the foreground."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestrator.app.given_plans import read_plans, require_valid, to_read_again
from orchestrator.app.plan_files import brought, with_plans
from orchestrator.app.runners import begun_events, project_runner, sandbox_for
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import known_secrets
from orchestrator.app.sprint_reader import RunResult, facts_told, push, save_report
from orchestrator.app.sprint_runtime import Site
from orchestrator.app.sprints import (
    Chosen,
    continued_sprint,
    failed_before,
    finished,
    histories_of,
    new_sprint,
    require_rows,
    sprint_events,
    sprints_elsewhere,
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
from orchestrator.core.ports import Backlog, Clock, SuiteRunner
from orchestrator.core.secrets import secrets_of
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.core.value import counted
from orchestrator.engine.durable import DurableEngine
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.files.process import SystemClock
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.prompts.render import PromptLibrary
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
        self._secrets = secrets_of(environment.variables)

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
        options = self._options
        library = await asyncio.to_thread(prompt_library, self._settings, self._environment)
        self._sandbox = await sandbox_for(self._settings, self._environment)
        if warning := await asyncio.to_thread(self._folder.make):
            self._tell(f"warning: {warning}")
        default = await asyncio.to_thread(default_repository)
        repository = await open_repository(options.repo or default)
        chosen = await asyncio.to_thread(self._choose, content, repository.path, repository.base)
        for warning in (*repository.warnings, *(str(finding) for finding in chosen.record.warnings)):
            self._tell(f"warning: {warning}")
        async with SprintLock(self._folder.lock(chosen.record.sprint)) as lock:
            chosen = await asyncio.to_thread(self._settled, chosen)
            workspace = GitWorkspace(
                mirror=self._folder.mirror(repository.path),
                folder=self._folder.worktrees(chosen.record.sprint),
                sprint=chosen.record.sprint,
                base=chosen.record.base,
                lock_fds=(lock.fd,),
                object_format=repository.object_format,
            )
            try:
                await asyncio.to_thread(remove_old_scratch, Path(tempfile.gettempdir()))
                await workspace.prepare(repository.path)
                self._secrets = await known_secrets(workspace, self._secrets, self._tell)
                if options.push_to:
                    await self._check_push(chosen, workspace, repository.path, options.push_to)
                record, paused = await self._begun(chosen, provider, library, workspace, lock.fd)
                chosen = replace(chosen, record=record)
                unpushed = await push(workspace, repository.path, options.push_to)
                return await asyncio.to_thread(self._result, chosen, workspace, paused, unpushed)
            finally:
                workspace.close()

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
            record = with_plans(record, found, histories, lambda text: self._tell(f"warning: {text}"))
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

    async def _begun(
        self, chosen: Chosen, provider: RoutedProvider, library: PromptLibrary, workspace: GitWorkspace, lock_fd: int
    ) -> tuple[SprintRecord, str | None]:
        """`_work`. Raises BaseUnusable, and the sprint has then not begun: the next one starts from a better base."""
        try:
            return await self._work(chosen, provider, library, workspace, lock_fd)
        except BaseUnusable:
            histories = await asyncio.to_thread(histories_of, self._environment, self._folder, chosen.record)
            if all(history.outcome is None for history in histories.values()):  # nobody cancelled one meanwhile
                await self._not_begun(chosen.record, workspace)
            raise

    async def _work(
        self, chosen: Chosen, provider: RoutedProvider, library: PromptLibrary, workspace: GitWorkspace, lock_fd: int
    ) -> tuple[SprintRecord, str | None]:
        """Drive the sprint; its record as it is then, and why it paused, or None."""
        record, settings = chosen.record, self._settings
        histories = await asyncio.to_thread(histories_of, self._environment, self._folder, record)
        if is_finished(histories):
            self._tell(f"sprint {record.sprint} is finished; nothing is run again")
            await self._write_cells(record, histories)
            return record, None
        require_rows(chosen, histories)
        failed = await self._recall(record, histories)
        works = Works(settings, self._environment, provider, executor_id=f"run-{record.sprint}", listen=self._listen)
        works.sink.hide(self._secrets)
        async with works:
            for event in begun_events(chosen, str(provider), self._sandbox.facts, self._clock.now()):
                await works.sink.emit(event)
            site = await asyncio.to_thread(self._site, works, chosen, workspace, library, lock_fd)
            async with site:
                if record.plans and all(history.started is None for history in histories.values()):
                    await site.require_base()  # reading a person's plan is paid for
                policies = policies_of(settings, self._options.provider)
                site.plans.update(await self._plans(chosen, histories, works.engine, policies, workspace))
                backlog = await self._backlog()

                def warn(text: str) -> None:
                    self._tell(f"warning: {text}")

                paused = await site.drive(histories, backlog, warn, failed=failed)
                return site.record, paused

    def _site(
        self, works: Works, chosen: Chosen, workspace: GitWorkspace, library: PromptLibrary, lock_fd: int
    ) -> Site:
        return Site(
            works,
            chosen,
            workspace,
            settings=self._settings,
            environment=self._environment,
            library=library,
            runner=self._runner(works, chosen.record, lock_fd),
            secrets=self._secrets,
            provider=self._options.provider,
        )

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

    async def _recall(self, record: SprintRecord, histories: Histories) -> Sequence[str]:
        """Tell who waits for a person; the stories that failed in a row before this process."""
        for story, gate in ((story, history.waits_for) for story, history in histories.items()):
            if gate is not None:
                self._waits(story, gate)
        return await asyncio.to_thread(failed_before, self._environment, self._folder, record, histories)

    async def _write_cells(self, record: SprintRecord, histories: Histories) -> None:
        """The run that finished the sprint may have been killed before the backlog file was written."""
        warning = await asyncio.to_thread((await self._backlog()).write, known_cells(record, histories))
        if warning is not None:
            self._tell(f"warning: {warning}")

    async def _backlog(self) -> Backlog:
        return await asyncio.to_thread(open_backlog, self._options.backlog, self._settings, self._folder)

    def _runner(self, works: Works, record: SprintRecord, lock_fd: int) -> SuiteRunner:
        place = (self._folder.environments(record.sprint), self._sandbox)
        base = BaseCommit(self._folder.mirror(Path(record.repo)), record.base, Path(record.repo))
        return project_runner(
            self._settings, self._environment, *place, slots=works.commands, lock_fds=(lock_fd,), base=base
        )

    def _result(self, chosen: Chosen, workspace: GitWorkspace, paused: str | None, unpushed: str | None) -> RunResult:
        place = (self._environment, self._folder, chosen.record)
        histories = histories_of(*place, patience_s=PATIENCE_S)
        facts = facts_told(sprint_events(*place, patience_s=PATIENCE_S))
        told = (chosen.content.stories, paused, self._secrets, facts)
        report, path = save_report(self._folder, chosen.record, histories, *told)
        return RunResult(
            report=report,
            report_path=path,
            fetch_command=workspace.fetch_command,
            repo=Path(chosen.record.repo),
            pushed=None if unpushed else self._options.push_to,
            unpushed=unpushed,
            paused=paused,
        )
