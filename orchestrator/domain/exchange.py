"""What goes to a model and what comes back, before any meaning is read into it."""

import hashlib
from enum import StrEnum

from orchestrator.domain.base import Value


class Purpose(StrEnum):
    """Why a persona is asked."""

    BREAKDOWN = "breakdown"
    BREAKDOWN_MISSING = "breakdown_missing"
    DELIVERY = "delivery"
    CONTINUATION = "continuation"
    REVIEW = "review"
    SUITE = "suite"
    ANALYSIS = "analysis"
    REPAIR = "repair"
    AMENDMENT = "amendment"
    PLAN_EXTRACT = "plan_extract"
    MERGE = "merge"
    STAGE = "stage"
    TRIAGE = "triage"


OPTIONAL_PURPOSES = frozenset({Purpose.REPAIR, Purpose.BREAKDOWN_MISSING, Purpose.CONTINUATION})
"""Purposes whose missing script entry is an unusable reply instead of a permanent error."""


class TurnKey(Value):
    """What a call is counted and looked up by; together with the turn it names one paid call."""

    persona: str
    story: str
    task: str | None = None
    purpose: Purpose

    def __str__(self) -> str:
        return f"persona={self.persona} story={self.story} task={self.task} purpose={self.purpose}"


class Segment(Value):
    """A stretch of prompt text that changes at one pace; a provider may put a cache breakpoint behind it."""

    name: str
    """role | rules | contract | project | sprint | story | task | feedback …"""
    text: str


class Prompt(Value):
    """One request to a persona: the first segment is the system text, the others follow stable-first."""

    key: TurnKey
    turn: int = 0
    """1-based once the engine has filled it in; 0 before."""
    segments: tuple[Segment, ...]
    name: str = ""
    """Name of the prompt's file; "" for one that comes from no file."""
    version: str = ""
    """Hash of the prompt's text as it was in the files, before anything was filled in."""
    schema_name: str | None = None
    """Stem of the answer's schema in contracts/: what it is held against, in whatever form it comes."""
    max_output_tokens: int | None = None
    stronger: bool = False
    """Whether the persona's stronger model is to answer, where one is configured."""

    @property
    def text(self) -> str:
        """The whole prompt as one text."""
        return "\n\n".join(segment.text for segment in self.segments)

    @property
    def hash(self) -> str:
        """sha256 of the whole text, the first 16 hexadecimal digits."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Usage(Value):
    """Tokens of one call. `input` includes cached tokens."""

    input: int = 0
    cached: int = 0
    output: int = 0


class StopReason(StrEnum):
    """Why the model stopped, in our words."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    REFUSAL = "refusal"
    UNKNOWN = "unknown"


class FailedCall(Value):
    """One call that ended in an error; a transient one is followed by another under the transport policy."""

    turn: int
    kind: str
    message: str
    code: str = ""
    """Code of the finding it becomes when it is final."""
    permanent: bool = False
    """Whether the same request can never succeed."""
    provider_name: str = ""
    original_message: str = ""
    """What the provider said, capped."""


class Reply(Value):
    """A provider's answer, raw and whole."""

    key: TurnKey
    turn: int
    text: str
    stop_reason: StopReason = StopReason.END_TURN
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """None when the price is unknown."""
    model: str = ""
    provider: str = ""
    duration_ms: int = 0
    paid: bool = True
    """False for the stand-in of an optional script entry that does not exist."""
    failed_calls: tuple[FailedCall, ...] = ()
    """Calls of the same turn key that failed before this one succeeded, in order."""
