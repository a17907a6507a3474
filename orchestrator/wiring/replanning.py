"""`replan` of a story that has ended: done here, or ordered of whoever works on its sprint."""

import asyncio

from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.control import Verb
from orchestrator.errors import ConfigError, SprintLocked
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.control import order
from orchestrator.wiring.reset import ResetResult, find, reset
from orchestrator.wiring.shown import begun_by


async def replan(
    story: str, sprint: str | None, settings: Settings, environment: Environment, *, comment: str, by: str
) -> ResetResult:
    """Have a story planned anew that ended without being done; `sprint` None: the latest that has it.

    Raises ConfigError for an unknown name, and with the reason why it cannot be done.
    """
    try:
        return await reset(story, sprint, settings, environment, comment=comment)
    except SprintLocked:
        record, _ = await asyncio.to_thread(find, StateFolder(environment.home), story, sprint)
    done = await order(environment, settings, Verb.REPLAN, sprint=record.sprint, story=story, by=by, comment=comment)
    if not done.done:
        raise ConfigError(done.message)
    stories = done.stories or (story,)
    return ResetResult(sprint=record.sprint, stories=stories, warning=None, begun_by=begun_by(record))
