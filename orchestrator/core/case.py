"""Answers of models that are kept as cases, to be read again by newer versions."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import field_validator

from orchestrator.core.value import AnswerValue, Value


class CaseSource(AnswerValue):
    """Where an answer came from."""

    sprint: str
    story: str
    """`<story>`, with `@N` behind it after a reset."""
    task: str | None = None
    persona: str
    purpose: str
    turn: int
    model: str = ""
    provider: str = ""
    stop_reason: str = ""
    prompt: str = ""
    """Name of the prompt's file."""
    prompt_version: str = ""
    contract: str | None = None
    """Name of the contract, as in contracts/."""
    redacted: bool = False
    """Whether secrets were taken out of the text."""
    redaction_changed: str | None = None
    """What the extraction of the text with its secrets was like, when that differs in more than the secrets."""


class Seen(AnswerValue):
    """What an extraction said, as far as versions are compared."""

    status: Literal["ok", "repaired", "truncated", "refused"]
    layer: str
    value: Any
    """An object, a list, or None when refused."""

    @field_validator("value")
    @classmethod
    def _is_answer(cls, value: Any) -> Any:
        if not isinstance(value, dict | list | None):
            raise ValueError("an object, a list or null is wanted")
        return value


class Case(Value):
    """One kept answer. Made by `model_construct`: its text may hold half a surrogate pair, which validation refuses."""

    name: str
    text: str
    contract: dict[str, Any] | None
    seen: Seen
    source: CaseSource


class CaseWritten(StrEnum):
    """What became of a case that was to be kept."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    """It was there already."""
    REPLACED = "replaced"
    KEPT = "kept"
    """Another case of this name is there and was left alone."""
