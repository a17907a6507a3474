"""The one moment that a backup shows: databases, branches and records as they were together."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapters.mirror_copy import refs_text
from orchestrator.adapters.postgres_moment import PostgresMoment
from orchestrator.adapters.sqlite_moment import SqliteMoment
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment

ENGINE, EVENTS = "engine.sqlite", "events.sqlite"
_LAST_STEPS = "SELECT workflow_uuid, max(function_id) FROM operation_outputs GROUP BY workflow_uuid"
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Moment:
    """What must be of one moment. `end` lets go of the databases."""

    databases: SqliteMoment | PostgresMoment
    at: float
    """Seconds since the epoch: what was written before is part of it."""
    records: Mapping[str, bytes]
    """Records of sprints and analyses by their path in the state folder."""
    refs: Mapping[str, str]
    """Name of a mirror → its refs."""
    last_steps: dict[str, int] = field(default_factory=dict)
    """Workflow → its last step that is recorded as done."""

    def holds(self, workflow: str, step: int, written: float) -> bool:
        """Whether an entry of the reply journal belongs to it: it was written by then, or is of the step that was under
        way. Later replies would be given to steps that may not come to be the same once more."""
        return written <= self.at or step <= self.last_steps.get(workflow, 0) + 1


async def moment(environment: Environment, folder: StateFolder, mirrors: list[Path]) -> Moment:
    """The present moment, with the databases held as they are until `databases.end`.

    A step first changes a branch and is then recorded as done. So the databases are looked at between two looks at
    branches and records that saw the same: as a kill at that moment would have left them. Raises ConfigError when they
    change all the time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        before = await _look(folder, mirrors)
        databases = _databases(environment, folder)
        try:
            await asyncio.to_thread(databases.begin)
            at = time.time()
            if await _look(folder, mirrors) == before:
                steps = await asyncio.to_thread(databases.pairs, ENGINE, _LAST_STEPS)
                return Moment(databases=databases, at=at, records=before[0], refs=before[1], last_steps=steps)
        except BaseException:
            await asyncio.to_thread(databases.end)
            raise
        await asyncio.to_thread(databases.end)
    raise ConfigError("branches or records change all the time; back up at a quieter moment")


def _databases(environment: Environment, folder: StateFolder) -> SqliteMoment | PostgresMoment:
    if environment.database_url is not None:
        return PostgresMoment(environment.database_url)
    # The engine's first: an answer or an outcome that it knows must not be missing in the log.
    return SqliteMoment({ENGINE: folder.engine_database, EVENTS: folder.event_database})


async def _look(folder: StateFolder, mirrors: list[Path]) -> tuple[dict[str, bytes], dict[str, str]]:
    refs = await asyncio.gather(*(refs_text(path) for path in mirrors))
    records = await asyncio.to_thread(_records, folder)
    return records, {path.name: text for path, text in zip(mirrors, refs, strict=True)}


def _records(folder: StateFolder) -> dict[str, bytes]:
    found = [*folder.home.glob("sprints/*/sprint.json"), *folder.home.glob("analyses/*/analysis.json")]
    return {str(path.relative_to(folder.home)): path.read_bytes() for path in sorted(found)}
