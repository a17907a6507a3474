"""One line of a scripted team's file."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from orchestrator.domain.base import AnswerValue
from orchestrator.domain.exchange import Purpose, StopReason

TRANSIENT_KINDS = frozenset({"rate_limit", "overloaded", "timeout", "connection"})

ErrorKind = Literal["rate_limit", "overloaded", "timeout", "connection", "auth", "bad_request"]


def _known_stop(word: Any) -> Any:
    return word if isinstance(word, str) and word in set(StopReason) else StopReason.UNKNOWN


class ScriptEntry(AnswerValue):
    """A scripted reply or error, looked up by (persona, story, task, purpose, turn)."""

    persona: str
    story: str
    task: str | None = None
    purpose: Purpose
    turn: int = Field(default=1, ge=1)
    text: str = ""
    stop_reason: Annotated[StopReason, BeforeValidator(_known_stop)] = StopReason.END_TURN
    """A word we do not know becomes `unknown`."""
    input_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    latency_ms: int = Field(default=0, ge=0)
    """Really waited before the reply is handed over."""
    error: ErrorKind | None = None
    retry_after_s: float | None = Field(default=None, ge=0)

    @property
    def lookup(self) -> tuple[str, str, str | None, Purpose, int]:
        """The key this entry answers."""
        return (self.persona, self.story, self.task, self.purpose, self.turn)
