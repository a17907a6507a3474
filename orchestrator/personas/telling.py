"""What an extraction was like, as an event: what healed, what is missing, why nothing could be read. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answers import Extraction, Status
from orchestrator.domain.decisions import Verdict
from orchestrator.domain.events import Level
from orchestrator.domain.exchange import Reply

FIRST_REPAIRS = 5
"""Repairs whose offset is told; the others are counted."""
PREVIEW = 400
"""Characters of a broken answer that an event shows."""


@dataclass(frozen=True, kw_only=True)
class Telling:
    """One event about an answer."""

    name: str
    message: str
    verdict: Verdict
    level: Level = Level.INFO
    data: dict[str, Any] = field(default_factory=dict)


def account(reply: Reply, extraction: Extraction) -> dict[str, Any]:
    """Which answer it was, the layer that found the value, and its repairs: counted by kind, the first with offsets."""
    return {
        "purpose": reply.key.purpose,
        "turn": reply.turn,
        "layer": extraction.layer,
        "repairs": dict(Counter(repair.kind for repair in extraction.repairs)),
        "first_repairs": [
            {"kind": repair.kind, "offset": repair.offset} for repair in extraction.repairs[:FIRST_REPAIRS]
        ],
    }


def kinds(extraction: Extraction) -> str:
    """`trailing_comma x2, comment x1`; "" without repairs."""
    counted = sorted(Counter(repair.kind for repair in extraction.repairs).items())
    return ", ".join(f"{kind} x{count}" for kind, count in counted)


def telling(what: str, reply: Reply, extraction: Extraction) -> Telling | None:
    """The event for an answer called `what`; None for one that came whole and valid."""
    data, healed = account(reply, extraction), kinds(extraction)
    if extraction.status is Status.REPAIRED:
        message = f"{what} was not as asked for and healed (layer {extraction.layer}): {healed}"
        return Telling(name="answer_healed", message=message, verdict=Verdict.HEALED, data=data)
    if extraction.status is Status.OK:
        return None
    data |= {"stop_reason": reply.stop_reason, "problems": [str(problem) for problem in extraction.problems]}
    if extraction.status is Status.TRUNCATED:
        message = f"{what} was cut off; its whole items are kept{f'; healed: {healed}' if healed else ''}"
        return Telling(name="answer_truncated", message=message, verdict=Verdict.CUT_OFF, level=Level.WARN, data=data)
    why = str(extraction.problems[0].message) if extraction.problems else "no value found"
    message = f"{what} holds no trustworthy value: {why}"
    data["preview"] = reply.text[:PREVIEW]
    return Telling(name="answer_refused", message=message, verdict=Verdict.UNREADABLE, level=Level.WARN, data=data)
