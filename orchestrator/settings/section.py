"""What every part of the settings is made of."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of every part of the settings: frozen, unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
