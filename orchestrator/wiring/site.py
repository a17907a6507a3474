"""One sprint at work: its workspace, the bodies of its stories, its orders, its supervisor."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from orchestrator.adapters.backlog_writer import BacklogWriter
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.domain.closing import told_of_closed
from orchestrator.domain.control import Order
from orchestrator.domain.events import Event
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.stages import GivenPlan
from orchestrator.domain.story import Story
from orchestrator.ports import Backlog
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.board import Board
from orchestrator.sprint.history import StoryHistory
from orchestrator.sprint.spending import Spending
from orchestrator.sprint.supervisor import Supervisor
from orchestrator.wiring.briefs import Briefs
from orchestrator.wiring.given_plans import is_current
from orchestrator.wiring.providers import policies_of
from orchestrator.wiring.renewal import cleared_record, reset_events
from orchestrator.wiring.runners import project_runner
from orchestrator.wiring.secrecy import masks_of
from orchestrator.wiring.sprints import Chosen, numbered_events
from orchestrator.wiring.team import plan_body, story_body
from orchestrator.wiring.works import Works


class Site:
    """The place of one sprint among the works; the caller holds its lock. Use as an async context manager."""

    def __init__(
        self,
        works: Works,
        chosen: Chosen,
        workspace: GitWorkspace,
        *,
        settings: Settings,
        environment: Environment,
        library: PromptLibrary,
        sandbox: Sandbox,
        secrets: Sequence[str],
        lock_fd: int,
        provider: str | None,
    ) -> None:
        """`provider` is who answers everybody, if somebody does (`--provider`)."""
        self._works, self._chosen, self._workspace = works, chosen, workspace
        self._settings, self._environment, self._provider = settings, environment, provider
        masks = masks_of(works.folder, secrets)
        environments = works.folder.environments(chosen.record.sprint)
        runner = project_runner(settings, environment, environments, sandbox, lock_fds=(lock_fd,))
        self.story_body, self.plan_body = story_body(library, workspace, runner, masks), plan_body(library, masks)
        self.plans: dict[str, GivenPlan] = {}
        self._spending = Spending()
        self.board = Board(chosen.record.sprint, lambda: self._spending.over(self._settings.budget))
        self._following = works.switchboard.following(self.board)
        self._supervisor: Supervisor | None = None
        self._briefs = self._make_briefs()

    async def __aenter__(self) -> "Site":
        """Blocks no loop; reads the whole log of the sprint."""
        self._following.__enter__()
        events = await asyncio.to_thread(numbered_events, self._environment, self._works.folder, self._chosen.record)
        self._spending = Spending(event for _, event in events)
        self.board.read(events)
        self._works.admit(self._chosen.record.sprint, self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._works.dismiss(self._chosen.record.sprint)
        self._following.__exit__(kind, error, trace)

    @property
    def record(self) -> SprintRecord:
        """As it is now."""
        return self._chosen.record

    @property
    def held(self) -> str:
        """Why no further story begins; "" when they do."""
        return (self._supervisor.held or "") if self._supervisor is not None else ""

    @property
    def queued(self) -> int:
        """Stories that have not begun."""
        return self._supervisor.queued if self._supervisor is not None else 0

    def change(self, settings: Settings) -> None:
        """Stories that begin from now on, and budgets, go by these."""
        self._settings = settings
        self._briefs = self._make_briefs()
        self.board.look_again()

    async def drive(
        self,
        histories: Mapping[str, StoryHistory],
        backlog: Backlog,
        warn: Callable[[str], object],
        *,
        failed: Sequence[str] = (),
        stays: bool = False,
    ) -> str | None:
        """Until every story has its outcome, or the sprint rests (with `stays`: until it goes on and ends).

        Why it rests, or None.
        """
        async with BacklogWriter(backlog, warn) as cells:
            supervisor = Supervisor(
                record=self.record,
                stories=told_of_closed(self._chosen.content.stories, self.record.closes),
                histories=histories,
                runner=self._works.engine,
                sink=self._works.sink,
                clock=self._works.clock,
                cells=cells,
                payload=self._payload,
                slots=self._works.slots,
                board=self.board,
                renewer=self,
                stop_after_failures=self._settings.sprint.stop_after_failures,
                failed=failed,
                stays=stays,
            )
            self._supervisor = supervisor
            await supervisor.run()
            return "the sprint was reset" if supervisor.cleared else supervisor.held

    async def _payload(self, story: Story) -> dict[str, object]:
        return await self._briefs.payload(story)

    def _make_briefs(self) -> Briefs:
        policies = policies_of(self._settings, self._provider)
        briefs = Briefs(self._chosen, self._settings, self._environment, policies)
        briefs.plans = self.plans
        return briefs

    async def is_current(self, workflow_id: str) -> bool:
        """See Place."""
        return await is_current(self.record)(workflow_id)

    def saw(self, event: Event) -> None:
        """See Place."""
        before = self.board.budget
        self._spending.add(event)
        if self.board.budget != before:
            self.board.look_again()

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """See Renewer. The record goes last: what was cut short is done again."""
        for story in stories:
            await self._workspace.remove(story)
        return await self._renewed(self.record.reset(tuple(stories)), stories, order)

    async def clear(self, order: Order) -> None:
        """See Renewer."""
        stories = self.record.story_ids
        for story in stories:
            await self._workspace.remove(story)
        await self._workspace.remove_result()
        await self._renewed(cleared_record(self.record), stories, order)

    async def renewed_by(self, order: Order) -> bool:
        """See Renewer."""
        return order.id in self.record.orders

    async def _renewed(self, after: SprintRecord, stories: Sequence[str], order: Order) -> SprintRecord:
        for event in reset_events(self.record, after, stories, self._works.clock, order=order.id):
            await self._works.sink.emit(event)
        after = after.model_copy(update={"orders": (*after.orders, order.id)})
        await asyncio.to_thread(self._works.folder.save, after)
        self._chosen = replace(self._chosen, record=after)
        self._briefs = self._make_briefs()
        return after
