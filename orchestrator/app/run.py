"""`run`: one sprint from a backlog to a report, in the foreground."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from orchestrator.app.plan_files import add_plans, read_plans, read_project
from orchestrator.app.recordings import save_recording
from orchestrator.app.runners import sandbox_for
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import backlog_secrets, find_secrets, known_secrets, mask_backlog, masks_of
from orchestrator.app.sprint_runtime import Equipment, Site, SprintDriver
from orchestrator.app.sprints import (
    Chosen,
    find_resumable_sprint,
    find_sprints_elsewhere,
    make_sprint_record,
    read_checked,
    workspace_of,
)
from orchestrator.app.team import prompt_library
from orchestrator.backlogs.files import open_backlog
from orchestrator.core.calls.progress import CallProgress
from orchestrator.core.errors import BaseUnusable, ConfigError, RepositoryError, UserError, WorkspaceError
from orchestrator.core.event import Event
from orchestrator.core.finding import blocking
from orchestrator.core.history import StoryHistory, is_finished
from orchestrator.core.sprint import BroughtPlan, SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.core.value import counted
from orchestrator.files.process import SystemClock, end_at_once
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.providers.routing import RoutedProvider, open_providers
from orchestrator.records.histories import event_url, is_sprint_finished, read_histories
from orchestrator.records.sprint_reader import RunResult, end_event, save_report
from orchestrator.sandbox.command_runner import remove_old_scratch
from orchestrator.settings import Environment, Settings, forget_secrets
from orchestrator.settings.options import RunOptions, default_repository
from orchestrator.sprint.slots import known_cells
from orchestrator.storage.event_store import PATIENCE_S, EventStore
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.recordings import expect_place
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story.planning import judge_text

Histories = dict[str, StoryHistory]


Begins = Callable[[SprintRecord, Mapping[str, StoryHistory], Iterable[CallProgress]], None]
"""(sprint, its stories, the calls under way) → shown."""


class Run:
    """One `run`. `tell` gets sentences for people, `listen` new events, `begins` the sprint and the calls under way."""

    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        environment: Environment,
        *,
        tell: Callable[[str], None],
        listen: Callable[[Event], None],
        begins: Begins = lambda *_: None,
    ) -> None:
        self._options, self._environment = options, environment
        # `serve.push_to` is the daemon's; stories ask whether results are pushed.
        pushed = settings.serve.model_copy(update={"push_to": options.push_to})
        self._settings = settings.model_copy(update={"serve": pushed})
        self._tell, self._listen, self._begins = tell, listen, begins
        self._folder, self._clock = StateFolder.of(environment), SystemClock()

    async def go(self) -> RunResult:
        """Runs the whole sprint. Raises UserError before anything is spent."""
        self._tell(f"settings: {self._environment.config_file or 'the packaged ones'}")
        if self._options.record is not None:
            await asyncio.to_thread(expect_place, self._options.record)
        # Before anything else is looked at or made.
        content = await asyncio.to_thread(read_checked, self._options.backlog, self._settings, self._folder)
        provider = await asyncio.to_thread(
            open_providers, self._options, self._settings, self._environment, self._clock
        )
        try:
            # From here on no child process inherits a key.
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
        content, known = await asyncio.to_thread(self._masked, content, repository.path)
        chosen = await asyncio.to_thread(self._choose, content, repository.path, repository.base)
        for warning in (*repository.warnings, *map(str, chosen.record.warnings)):
            self._warn(warning)
        sprint = chosen.record.sprint
        lease = Lease(
            event_url(environment, self._folder), f"run-{sprint}", folder=str(self._folder.home), lost=end_at_once
        )
        async with SprintLock(self._folder.lock(sprint)) as lock, lease, lease.holding(sprint):
            chosen = await asyncio.to_thread(self._settled, chosen)
            workspace = workspace_of(self._folder, chosen.record, (lock.fd,), kept=True)
            works = Works(self._settings, environment, provider, lease=lease, listen=self._listen)
            try:
                # Killed runs leave scratch folders behind.
                await asyncio.to_thread(remove_old_scratch, Path(tempfile.gettempdir()))
                await workspace.prepare(repository.path)
                secrets = await find_secrets(workspace, known, self._tell)
                if options.push_to:
                    await self._check_push(chosen, workspace, repository.path, options.push_to)
                equipment = Equipment(
                    works=works, environment=environment, library=library, sandbox=sandbox, secrets=secrets,
                    provider=options.provider, provider_told=str(provider),
                )  # fmt: skip
                try:
                    record, paused = await self._work(chosen, equipment, workspace, lock.fd)
                finally:
                    await self._record(sprint)
                unpushed = await self._push(workspace, repository.path)
                report, path, ended = await asyncio.to_thread(
                    save_report, environment, record, paused, secrets, PATIENCE_S
                )
                if all(story.status.final for story in report.stories):
                    told = end_event(record, report, path, ended, push_to=options.push_to, unpushed=unpushed)
                    async with EventStore(event_url(environment, self._folder)) as sink:
                        await sink.emit(told)
                    self._listen(told)
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
                await workspace.release()

    def _masked(self, content: BacklogContent, repo: Path) -> tuple[BacklogContent, tuple[str, ...]]:
        """Returns the backlog without secrets, and the secrets known so far; the backlog's own are reported."""
        found = backlog_secrets(content)
        if found:
            self._warn(f"the backlog holds {counted(len(found), 'secret')}: masked from here on, revoke them")
        known = (*known_secrets(self._environment, repo), *found)
        return mask_backlog(content, masks_of(self._folder, known)), known

    async def _record(self, sprint: str) -> None:
        """Writes the recording that is asked for, also of a run that is interrupted: the journal has every exchange."""
        if (folder := self._options.record) is not None:
            try:
                await save_recording(
                    folder, sprint, self._settings, self._environment,
                    warn=self._warn, provider=self._options.provider,
                )  # fmt: skip
                self._tell(f"recorded in {folder}; `orchestrator replay {folder}` runs it again")
            except (UserError, WorkspaceError) as error:
                later = f"`orchestrator replay {sprint} --save DIR` writes one later"
                self._warn(f"no recording was written: {error.message}; {later}")

    def _warn(self, text: str) -> None:
        self._tell(f"warning: {text}")

    async def _check_push(self, chosen: Chosen, workspace: GitWorkspace, repo: Path, branch: str) -> None:
        """Raises RepositoryError; a sprint that this command was to begin has then not started."""
        try:
            await workspace.check_push(repo, branch)
        except RepositoryError:
            if not chosen.continued:
                await self._not_begun(chosen.record, workspace)
            raise

    async def _push(self, workspace: GitWorkspace, repo: Path) -> str | None:
        """Returns why the result could not be pushed, or None; the report is written either way."""
        if self._options.push_to is not None:
            try:
                await workspace.push(repo, self._options.push_to)
            except (RepositoryError, WorkspaceError) as error:
                return error.message
        return None

    async def _not_begun(self, record: SprintRecord, workspace: GitWorkspace) -> None:
        """Frees the sprint's base and its selection when no story has started."""
        await workspace.remove_result()
        await asyncio.to_thread(self._folder.save, record.model_copy(update={"cleared": True}))

    def _choose(self, content: BacklogContent, repo: Path, base: str) -> Chosen:
        ended = partial(is_sprint_finished, self._environment, self._folder)
        known = find_resumable_sprint(self._options, repo, self._folder, lambda record: not ended(record))
        if known is not None and not known.cleared:
            self._tell(f"sprint {known.sprint} of {known.started_at:%Y-%m-%d %H:%M} goes on")
            return Chosen(record=known, continued=True, content=content)
        others = find_sprints_elsewhere(self._environment, self._folder)
        record = make_sprint_record(
            self._options, content, self._folder, repo=repo, base=base, clock=self._clock, elsewhere=others
        )
        self._tell(f"sprint {record.sprint}: {counted(len(record.story_ids), 'story', 'stories')}")
        return Chosen(record=record, continued=False, content=content)

    def _settled(self, chosen: Chosen) -> Chosen:
        """Returns the valid record under the lock: another process may have started this sprint meanwhile.

        Raises ConfigError for `--plan`, and a sprint that this command was to begin has then not started.
        """
        current = self._folder.record(chosen.record.sprint)
        continued = current is not None and not current.cleared
        record = current if current is not None and continued else chosen.record
        if self._options.plans:
            found = read_plans(self._options.plans, record.story_ids, chosen.content, record.plans)
            record = add_plans(record, found, read_histories(self._environment, self._folder, record), self._warn)
        # Saved only under the lock, because another process may have started the same sprint before.
        if record != current:
            self._folder.save(record)
        return Chosen(record=record, continued=continued, content=chosen.content)

    async def _work(
        self, chosen: Chosen, equipment: Equipment, workspace: GitWorkspace, lock_fd: int
    ) -> tuple[SprintRecord, str | None]:
        """Drives the sprint. Returns its record as it is then, and why it paused, or None.

        Raises BaseUnusable; a sprint that was new has then not started: the next one starts from a better base.
        """
        record = chosen.record
        histories = await asyncio.to_thread(read_histories, self._environment, self._folder, record)
        if is_finished(histories):
            self._tell(f"sprint {record.sprint} is finished; nothing is run again")
            # The run that finished it may have been killed before the backlog file was written.
            backlog = await asyncio.to_thread(open_backlog, self._options.backlog, self._settings, self._folder)
            if warning := await asyncio.to_thread(backlog.write, known_cells(record, histories)):
                self._warn(warning)
            return record, None
        site = await asyncio.to_thread(
            Site, equipment, record, workspace, self._settings, secrets=equipment.secrets, lock_fd=lock_fd
        )
        driver = SprintDriver(site, chosen.content, histories, continued=chosen.continued)
        self._begins(record, histories, equipment.works.calls)
        try:
            async with equipment.works, site:
                await driver.begin()
                await self._expect_valid(record, histories, workspace)
                paused = await driver.drive(self._warn, waits=self._options.waits)
                return site.record, paused
        except BaseUnusable:
            histories = await asyncio.to_thread(read_histories, self._environment, self._folder, record)
            if all(history.outcome is None for history in histories.values()):  # none was cancelled meanwhile
                await self._not_begun(record, workspace)
            raise

    async def _expect_valid(self, record: SprintRecord, histories: Histories, workspace: GitWorkspace) -> None:
        """Raises ConfigError, with gate.mode auto, for a person's plan that cannot be built; if no story has started,
        the sprint has not started either then. The plan of a started story is not judged again."""
        fresh = {story: plan for story, plan in record.plans.items() if histories[story].started is None}
        if self._settings.gate.mode != "auto" or not fresh:
            return
        try:
            await _require_valid(fresh, workspace, self._settings.plan.min_chars)
        except ConfigError:
            if all(history.started is None for history in histories.values()):
                await self._not_begun(record, workspace)
            raise


async def _require_valid(plans: dict[str, BroughtPlan], workspace: GitWorkspace, min_chars: int) -> None:
    """Raises ConfigError with all findings when one of the plans cannot be built as it is."""
    files, packages = await workspace.base_tree(read_project)
    judged = {
        story: judge_text(plan.text, plan.path, story, files, packages, min_chars=min_chars).findings
        for story, plan in plans.items()
    }
    invalid = {story: findings for story, findings in judged.items() if blocking(findings)}
    if invalid:
        named = ", ".join(f"{plans[story].path} for {story}" for story in invalid)
        message = f"a person's plan is not valid, and gate.mode is auto: {named}; no story was begun by it"
        raise ConfigError(message, findings=tuple(one for findings in invalid.values() for one in findings))
