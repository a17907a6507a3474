"""One sprint at work: its workspace, the bodies of its stories, its commands, its supervisor, its base commit."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from orchestrator import __version__
from orchestrator.app.briefs import Briefs
from orchestrator.app.commands import Renewal
from orchestrator.app.runners import project_runner
from orchestrator.app.runtime import Sharing, Works
from orchestrator.app.secrets import masks_of
from orchestrator.app.sprints import Chosen, require_rows
from orchestrator.app.team import story_body
from orchestrator.backlogs.files import open_backlog
from orchestrator.backlogs.writer import BacklogWriter
from orchestrator.core.calls.spending import BudgetState, sprint_budgets
from orchestrator.core.errors import BaseUnusable
from orchestrator.core.event import ACTIVITY_BEGUN, ACTIVITY_ENDED, Event, Level, listening
from orchestrator.core.history import FINISHED, StoryHistory
from orchestrator.core.ports import SuiteRunner
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent, Story, told_of_closed
from orchestrator.core.suite import BASE_TRIED, SANDBOX_CHOSEN, TRYING, BaseTrial, Tier, TriedBase
from orchestrator.core.value import counted
from orchestrator.engine.durable import WORKFLOW_NAME, Body
from orchestrator.engine.progress import Announcer, told_end
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.git.workspace import GitWorkspace
from orchestrator.prompts.render import PromptLibrary
from orchestrator.providers.seats import policies_of
from orchestrator.records.histories import find_failed_before, read_numbered_events
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.budgets import SPRINT, Spending, limits
from orchestrator.sprint.state import Board, StoryRunner
from orchestrator.sprint.supervisor import Supervisor
from orchestrator.story.older_tests import OlderTests, holds_something, try_base


class SprintBase:
    """The base commit of one sprint; stores its test results in `older`."""

    def __init__(
        self, works: Works, sprint: str, workspace: GitWorkspace, runner: SuiteRunner, older: OlderTests
    ) -> None:
        self._works, self._sprint, self._workspace = works, sprint, workspace
        self._runner, self._older = runner, older

    async def require(self, settings: Settings) -> None:
        """Tries it, unless that was done with the same files and settings. Raises BaseUnusable when nothing can be run
        and `environment.base` is `require`; what cannot be run is not kept, and tried again the next time."""
        if settings.environment.base == "skip":
            return
        base = self._workspace.base
        if settings.test.custom is None and not holds_something(await self._workspace.files_at(base)):
            return
        key = await self._key(settings)
        async with self._works.bases[key]:  # of two sprints on the same files, the second one waits for the first
            tried = await asyncio.to_thread(self._works.folder.base, key)
            if tried is None:
                tried = await self._try(settings)
                if tried.trial.usable:
                    await asyncio.to_thread(self._works.folder.save_base, key, tried)
        refused = not tried.trial.usable and settings.environment.base == "require"
        await self._record(tried.trial, key, tried.trial.told if refused else "")
        if tried.trial.usable:
            self._older.know_base(await self._workspace.content_of(base), tried.report)
        if refused:
            raise BaseUnusable(tried.trial.refusal)

    async def recall(self, settings: Settings) -> None:
        """Takes what was found when the sprint began, if it is still kept."""
        if settings.environment.base != "skip":
            tried = await asyncio.to_thread(self._works.folder.base, await self._key(settings))
            if tried is not None:
                self._older.know_base(await self._workspace.content_of(self._workspace.base), tried.report)

    async def _try(self, settings: Settings) -> TriedBase:
        await self._works.emit(self._sprint, "base_begun", TRYING)
        key, limit = f"{self._sprint}-base", settings.environment.base_timeout_s
        with listening(Announcer(self._tell_activity)):
            return await try_base(self._workspace, self._runner, key=key, timeout_s=limit)

    async def _tell_activity(self, what: str, seconds: float | None) -> None:
        if seconds is None:
            await self._works.emit(self._sprint, ACTIVITY_BEGUN, what)
        else:
            message, took = told_end(what, seconds), round(seconds * 1000)
            await self._works.emit(self._sprint, ACTIVITY_ENDED, message, duration_ms=took)

    async def _key(self, settings: Settings) -> str:
        """Returns a name that changes with the files of the base, and with what decides how they are run."""
        parts = [
            settings.commands.model_dump(mode="json"),
            settings.sandbox.model_dump(mode="json"),
            settings.environment.model_dump(mode="json", exclude={"base"}),
            settings.test.model_dump(mode="json", include={"command", "custom"}),
        ]
        tree = await self._workspace.content_of(self._workspace.base)
        content = json.dumps([tree, __version__, sys.version, *parts], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    async def _record(self, trial: BaseTrial, key: str, reason: str) -> None:
        fine = trial.usable and not trial.failed and trial.problem is None
        # What is kept is recorded once by a sprint; what is tried again is recorded again.
        which = key if trial.usable else ""
        level = Level.INFO if fine else Level.WARN if trial.usable else Level.ERROR
        base = trial.model_dump(mode="json")
        await self._works.emit(self._sprint, BASE_TRIED, trial.told, which, level=level, base=base, reason=reason)


@dataclass(frozen=True, kw_only=True)
class Equipment:
    """Resources that a process gives to each of its sprints."""

    works: Works
    environment: Environment
    library: PromptLibrary
    sandbox: Sandbox
    secrets: tuple[str, ...]
    provider: str | None
    """The provider that answers every persona (`--provider`), if one does."""
    provider_told: str


class Site:
    """The place of one sprint in this process; the caller holds its lock. Use as an async context manager."""

    def __init__(
        self,
        equipment: Equipment,
        record: SprintRecord,
        workspace: GitWorkspace,
        settings: Settings,
        *,
        secrets: Sequence[str],
        lock_fd: int,
        sharing: Sharing | None = None,
    ) -> None:
        """`secrets` is what is known of them now; with `sharing`, other daemons may run some of its stories. Blocks."""
        self.equipment, self._works, self._environment = equipment, equipment.works, equipment.environment
        self.record, self.settings, self.workspace, self.sharing = record, settings, workspace, sharing
        works, library = self._works, equipment.library
        works.sink.hide(secrets)
        self.masks = masks = masks_of(works.folder, secrets)
        # One for all stories: the base's older tests are run once.
        older = OlderTests()
        runner = self._runner(lock_fd)
        self.bodies: dict[str, Body] = {
            WORKFLOW_NAME: story_body(library, workspace, runner, masks, older),
        }
        self.base = SprintBase(works, record.sprint, workspace, runner, older)
        self.spending = Spending()
        self.board = Board(record.sprint, lambda: works.budgets.over(record.sprint))
        self._following = works.switchboard.following(self.board)
        self._ended: set[str] = set()
        self._admitted = False

    def _runner(self, lock_fd: int) -> SuiteRunner:
        record, folder = self.record, self._works.folder
        return project_runner(
            self.settings,
            self._environment,
            folder.environments(record.sprint),
            self.equipment.sandbox,
            slots=self._works.commands,
            lock_fds=(lock_fd,),
            base=BaseCommit(folder.mirror(Path(record.repo)), record.base, Path(record.repo)),
        )

    async def __aenter__(self) -> "Site":
        """Reads the sprint's whole log."""
        # Follow first, then read: an event in between is seen twice rather than never.
        self._following.__enter__()
        events = await asyncio.to_thread(read_numbered_events, self._environment, self._works.folder, self.record)
        self.spending = self._works.budgets.of_sprint(self.record.sprint)
        for _, event in events:
            self._works.budgets.add(event)
        self._ended = {event.id.removesuffix(f":{FINISHED}") for _, event in events if event.name == FINISHED}
        self.board.read(events)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._works.dismiss(self.record.sprint)
        self._following.__exit__(kind, error, trace)
        self._works.budgets.forget(self.record.sprint)

    async def admit(self) -> None:
        """Lets the sprint's workflows run here from now on."""
        if not self._admitted:
            self._admitted = True
            await self.base.recall(self.settings)
            self._works.admit(self.record.sprint, self)

    async def is_current(self, workflow_id: str) -> bool:
        """See Place. A story that has its outcome, as one that was cancelled, is not resumed; nor is an earlier
        generation of one that was reset."""
        if self.sharing is not None:
            await self.sharing.held(workflow_id)  # what is claimed is current
            return workflow_id not in self._ended
        current = {self.record.workflow_id(story) for story in self.record.story_ids}
        return workflow_id not in self._ended and workflow_id in current

    def saw(self, event: Event) -> None:
        """See Place."""
        if event.name == FINISHED:
            self._ended.add(event.id.removesuffix(f":{FINISHED}"))


class SprintDriver:
    """Drives the sprint of a site to its end; the caller holds the sprint."""

    def __init__(
        self,
        site: Site,
        content: BacklogContent,
        histories: Mapping[str, StoryHistory],
        *,
        continued: bool,
        runner: StoryRunner | None = None,
    ) -> None:
        """`histories` are its stories as the log has them; `runner` runs them, in place of this process's engine.

        Raises BacklogError when a story with work left has no row any more.
        """
        self.site, self.histories, self._works = site, histories, site.equipment.works
        self._content, self._continued = content, continued
        require_rows(self._chosen, histories)
        self._runner = runner or self._works.engine
        self._renewal = Renewal(
            site.record, site.workspace, self._works.sink, self._works.folder, self._works.clock,
            changed=self._take_record,
        )  # fmt: skip
        self._supervisor: Supervisor | None = None
        """What was told of it."""
        self._briefs = self._make_briefs()

    async def begin(self) -> None:
        """Reports that the sprint starts or resumes, and takes its workflows over from an engine that has ended."""
        await self._report_start()
        sharing, sprint = self.site.sharing, self.site.record.sprint
        await self._works.engine.adopt(sprint, await sharing.take_over(sprint) if sharing is not None else ())
        await self.site.admit()

    @property
    def held(self) -> str:
        """Why no further story may start; "" when they may."""
        return (self._supervisor.held or "") if self._supervisor is not None else ""

    @property
    def queued(self) -> int:
        """Stories that have not started."""
        return self._supervisor.queued if self._supervisor is not None else 0

    @property
    def budgets(self) -> tuple[BudgetState, ...]:
        """Its budgets that are set, with what is spent."""
        return tuple(one for one in self.spent if one.limit is not None)

    @property
    def spent(self) -> tuple[BudgetState, ...]:
        """Returns what is spent, and of which budget."""
        return sprint_budgets(self.site.spending.total, limits(self.site.settings.budget, SPRINT))

    async def drive(self, warn: Callable[[str], object], *, stays: bool = False, waits: bool = False) -> str | None:
        """Works until every story has its outcome, or the sprint rests (with `stays`: until it resumes and ends, with
        `waits` where people paused it).

        Returns why it rests, or None. Raises BaseUnusable before anything is paid for.
        """
        site, histories, folder = self.site, self.histories, self._works.folder
        record, settings = site.record, site.settings
        failed = await asyncio.to_thread(find_failed_before, site.equipment.environment, folder, record, histories)
        backlog = await asyncio.to_thread(open_backlog, Path(record.backlog), settings, folder)
        is_resumed = any(history.started for history in histories.values())
        async with BacklogWriter(backlog, warn) as cells:
            supervisor = Supervisor(
                record=record,
                stories=told_of_closed(self._content.stories, record.closes),
                histories=histories,
                runner=self._runner,
                sink=self._works.sink,
                clock=self._works.clock,
                cells=cells,
                payload=self._payload,
                slots=self._works.slots,
                board=site.board,
                renewer=self._renewal,
                stop_after_failures=settings.sprint.stop_after_failures,
                failed=failed,
                stays=stays,
                waits=waits,
                spent=lambda story: site.spending.of(story),
                ready=None if is_resumed else self.require_base,
            )
            self._supervisor = supervisor
            await supervisor.run()
            if supervisor.cleared:
                return "the sprint was reset"
            paused = supervisor.only_paused
            ends = f"; `orchestrator resume {paused}` ends the pause" if paused else ""
            return f"{supervisor.held}{ends}" if supervisor.held else None

    async def require_base(self) -> None:
        """Tries the base commit, unless that was done. Raises BaseUnusable."""
        await self.site.base.require(self.site.settings)

    async def _payload(self, story: Story) -> dict[str, object]:
        return await self._briefs.payload(story)

    @property
    def _chosen(self) -> Chosen:
        return Chosen(record=self.site.record, continued=self._continued, content=self._content)

    def _make_briefs(self) -> Briefs:
        equipment, settings = self.site.equipment, self.site.settings
        policies = policies_of(settings, equipment.provider)
        return Briefs(self._chosen, settings, equipment.environment, policies, self.site.masks)

    def _take_record(self, record: SprintRecord) -> None:
        self.site.record = record
        self._briefs = self._make_briefs()

    async def _report_start(self) -> None:
        record, equipment = self.site.record, self.site.equipment
        facts = equipment.sandbox.facts
        name = "sprint_continued" if self._continued else "sprint_started"
        begins = "goes on" if self._continued else "starts"
        count = counted(len(record.story_ids), "story", "stories")
        message = f"sprint {record.sprint} {begins}: {count}, provider {equipment.provider_told}"
        stories = list(record.story_ids)
        await self._works.emit(
            record.sprint, name, message,
            version=__version__, base=record.base, stories=stories, budget=limits(self.site.settings.budget, SPRINT),
        )  # fmt: skip
        level = Level.WARN if facts.tier is Tier.PLAIN else Level.INFO
        sandbox = facts.model_dump(mode="json")
        await self._works.emit(record.sprint, SANDBOX_CHOSEN, str(facts), level=level, sandbox=sandbox)
