"""How the daemon is at this moment, for those who ask over HTTP."""

import os
from datetime import datetime
from typing import Literal

from orchestrator import __version__
from orchestrator.domain.daemon import DaemonState, SprintState
from orchestrator.errors import ConfigError
from orchestrator.wiring.fleet import Fleet
from orchestrator.wiring.planning import Planner
from orchestrator.wiring.works import Works

Phase = Literal["starting", "ready", "stopping"]


def state_of(works: Works, fleet: Fleet, planner: Planner, *, started: datetime, phase: Phase) -> DaemonState:
    """Blocks for nothing."""
    sites = [served.site for served in fleet.served if served.site is not None]
    return DaemonState(
        version=__version__,
        pid=os.getpid(),
        started_at=started,
        phase=phase,
        executor_id=planner.executor_id,
        backlogs=planner.states(fleet.why_waiting),
        sprints=(*fleet.states(), *_waiting(fleet, planner)),
        calls_in_flight=works.switchboard.at_work,
        stories_at_work=works.slots.at_work,
        stories_waiting=len(works.slots.waiting),
        stories_queued=sum(site.queued for site in sites),
    )


async def readiness_of(works: Works, phase: Phase, disk: str) -> dict[str, str]:
    """Component → what is wrong with it, "" when nothing is; `disk` is what was found about that."""
    try:
        await works.sink.find(["-"])
        database = works.sink.waits
    except ConfigError as error:
        database = error.message
    engine = "" if phase == "ready" else f"the daemon is {phase}"
    return {"database": database, "engine": engine, "disk": disk}


def _waiting(fleet: Fleet, planner: Planner) -> list[SprintState]:
    """Sprints with work left that cannot be worked on now."""
    return [
        SprintState(sprint=record.sprint, backlog=record.backlog, phase="paused", reason=reason)
        for record in planner.own
        if record.sprint not in fleet.at_work and (reason := fleet.why_waiting(record.sprint))
    ]
