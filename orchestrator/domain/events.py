"""Events: facts that happened, each with a deterministic id, the only record of a run (decisions.md#event-log)."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from orchestrator.domain.base import Value


class Level(StrEnum):
    """Weight of an event for people, in rising order."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for debug up to 3 for error."""
        return list(Level).index(self)


class Event(Value):
    """One fact. The same id stored twice adds nothing; the first recorded time stays."""

    id: str
    """Deterministic: workflow id plus the number of the event in that workflow, or a name for once-only facts."""
    time: datetime
    """Aware, UTC."""
    level: Level = Level.INFO
    name: str
    """snake_case, from the table in docs/events.md."""
    message: str
    """One line for people."""
    sprint: str
    story: str | None = None
    task: str | None = None
    persona: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)
    """Further JSON-able facts: stage, attempt, turn, duration_ms, input_tokens, cost_usd, findings …"""
