"""Plans that people brought, read and judged before any story begins."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from orchestrator.app.plan_files import project_of
from orchestrator.app.team import plan_payload
from orchestrator.core.errors import ConfigError
from orchestrator.core.exchange import GivenPlan, StoryBrief
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.history import StoryHistory
from orchestrator.core.ports import Workspace
from orchestrator.core.sprint import PLAN_READING, SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.engine.durable import DurableEngine
from orchestrator.personas.mike import READ_BY_RULES
from orchestrator.settings import Policies
from orchestrator.story.planning import judge_given


def is_current(record: SprintRecord) -> Callable[[str], Awaitable[bool]]:
    """Whether a workflow is a story's of this sprint as it stands, or reads the plan it has now."""
    stories = {record.workflow_id(story) for story in record.story_ids}
    readings = {record.plan_workflow_id(story) for story in record.plans}

    async def current(workflow_id: str) -> bool:
        return workflow_id in (readings if PLAN_READING in workflow_id else stories)

    return current


async def read_plans(
    record: SprintRecord,
    histories: Mapping[str, StoryHistory],
    content: BacklogContent,
    engine: DurableEngine,
    policies: Policies,
) -> dict[str, GivenPlan]:
    """Every plan of a story without an outcome, read durably: what was read once is not asked for again."""
    rows = {story: content.story(story) for story in record.plans if histories[story].outcome is None}
    payloads = {
        story: plan_payload(StoryBrief(story=row, sprint=record.sprint), policies, record.plans[story])
        for story, row in rows.items()
        if row is not None
    }
    read = await asyncio.gather(
        *(engine.run_plan(record.plan_workflow_id(story), payload) for story, payload in payloads.items())
    )
    return dict(zip(payloads, read, strict=True))


async def require_valid(
    plans: Mapping[str, GivenPlan],
    histories: Mapping[str, StoryHistory],
    workspace: Workspace,
    min_chars: int,
) -> None:
    """Raises ConfigError with all findings when a plan whose story has not begun cannot be built as it is."""
    fresh = {story: plan for story, plan in plans.items() if histories[story].started is None}
    if not fresh:
        return
    files, packages = await workspace.base_tree(project_of)
    judged = {story: judge_given(plan, story, files, packages, min_chars) for story, plan in fresh.items()}
    invalid = {story: said for story, said in judged.items() if blocking(said)}
    if invalid:
        raise refusal(
            {story: fresh[story].path for story in invalid}, [one for said in invalid.values() for one in said]
        )


def to_read_again(
    record: SprintRecord, plans: Mapping[str, GivenPlan], histories: Mapping[str, StoryHistory]
) -> SprintRecord:
    """The record under which a model is asked anew about plans that rules alone could read."""
    failed = [
        story
        for story, plan in plans.items()
        if histories[story].started is None and any(finding.code == READ_BY_RULES for finding in plan.findings)
    ]
    raised = {story: record.generations.get(story, 1) + 1 for story in failed}
    return record.model_copy(update={"generations": {**record.generations, **raised}})


def refusal(paths: Mapping[str, str], findings: Iterable[Finding]) -> ConfigError:
    """The error for plans that cannot be built: gate.mode auto asks nobody."""
    whose = ", ".join(f"{path} for {story}" for story, path in paths.items())
    message = f"a person's plan is not valid, and gate.mode is auto: {whose}; no story was begun by it"
    return ConfigError(message, findings=tuple(findings))
