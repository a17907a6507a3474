"""One sprint at work: its workspace, the bodies of its stories, its orders, its supervisor."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from orchestrator.adapters.backlog_writer import BacklogWriter
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.domain.closing import told_of_closed
from orchestrator.domain.control import Order
from orchestrator.domain.events import Event
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.stages import GivenPlan
from orchestrator.domain.story import Story
from orchestrator.engine.durable import PLAN_WORKFLOW_NAME, WORKFLOW_NAME, Body
from orchestrator.ports import Backlog, SuiteRunner
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.board import Board
from orchestrator.sprint.history import FINISHED, StoryHistory
from orchestrator.sprint.older_tests import OlderTests
from orchestrator.sprint.spending import Spending
from orchestrator.sprint.supervisor import Supervisor
from orchestrator.wiring.base import SprintBase
from orchestrator.wiring.briefs import Briefs
from orchestrator.wiring.given_plans import is_current
from orchestrator.wiring.providers import policies_of
from orchestrator.wiring.renewal import Renewal
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
        runner: SuiteRunner,
        secrets: Sequence[str],
        provider: str | None,
    ) -> None:
        """`provider` is who answers everybody, if somebody does (`--provider`)."""
        self._works, self._chosen = works, chosen
        self._settings, self._environment, self._provider = settings, environment, provider
        masks = masks_of(works.folder, secrets)
        older = OlderTests()
        self.bodies: dict[str, Body] = {
            WORKFLOW_NAME: story_body(library, workspace, runner, masks, older),
            PLAN_WORKFLOW_NAME: plan_body(library, masks),
        }
        self._base = SprintBase(works, chosen.record.sprint, workspace, runner, older)
        self.plans: dict[str, GivenPlan] = {}
        self._spending = Spending()
        self.board = Board(chosen.record.sprint, lambda: works.hold or self._spending.over(self._settings.budget))
        self._following = works.switchboard.following(self.board)
        self._ended: set[str] = set()
        self._renewal = Renewal(chosen.record, workspace, works.folder, works.sink, works.clock)
        self._supervisor: Supervisor | None = None
        self._briefs = self._make_briefs()

    async def __aenter__(self) -> "Site":
        """Blocks no loop; reads the whole log of the sprint."""
        self._following.__enter__()
        events = await asyncio.to_thread(numbered_events, self._environment, self._works.folder, self._chosen.record)
        self._spending = Spending(event for _, event in events)
        self._ended = {event.id.removesuffix(f":{FINISHED}") for _, event in events if event.name == FINISHED}
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

        Why it rests, or None. Raises BaseUnusable before anything is paid for.
        """
        begun = any(history.started for history in histories.values())
        if begun:
            await self._base.recall(self._settings)
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
                ready=None if begun else self.require_base,
            )
            self._supervisor = supervisor
            await supervisor.run()
            return "the sprint was reset" if supervisor.cleared else supervisor.held

    async def require_base(self) -> None:
        """Try the base commit, unless that was done. Raises BaseUnusable."""
        await self._base.require(self._settings)

    async def _payload(self, story: Story) -> dict[str, object]:
        return await self._briefs.payload(story)

    def _make_briefs(self) -> Briefs:
        policies = policies_of(self._settings, self._provider)
        briefs = Briefs(self._chosen, self._settings, self._environment, policies)
        briefs.plans = self.plans
        return briefs

    async def is_current(self, workflow_id: str) -> bool:
        """See Place. A story that has its outcome, as one that was cancelled, is not gone on with."""
        return workflow_id not in self._ended and await is_current(self.record)(workflow_id)

    def saw(self, event: Event) -> None:
        """See Place."""
        if event.name == FINISHED:
            self._ended.add(event.id.removesuffix(f":{FINISHED}"))
        before = self.board.budget
        self._spending.add(event)
        if self.board.budget != before:
            self.board.look_again()

    async def renew(self, stories: Sequence[str], order: Order) -> SprintRecord:
        """See Renewer."""
        return self._renewed(await self._renewal.renew(stories, order))

    async def clear(self, order: Order) -> None:
        """See Renewer."""
        await self._renewal.clear(order)
        self._renewed(self._renewal.record)

    async def merged(self, story: str) -> str | None:
        """See Renewer."""
        return await self._renewal.merged(story)

    async def renewed_by(self, order: Order) -> bool:
        """See Renewer."""
        return await self._renewal.renewed_by(order)

    def _renewed(self, after: SprintRecord) -> SprintRecord:
        self._chosen = replace(self._chosen, record=after)
        # One that is planned anew is the architect's, whoever brought its plan before.
        self.plans = {story: plan for story, plan in self.plans.items() if story in after.plans}
        self._briefs = self._make_briefs()
        return after
