"""The base every domain value shares."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value: built by keyword, compared by content, safe to log, store and replay."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AnswerValue(BaseModel):
    """A value that a persona writes: unknown extra keys are tolerated (they stay in the kept reply)."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)
