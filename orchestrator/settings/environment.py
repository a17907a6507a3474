"""The settings of a project's environment, in which its commands and tests run."""

from typing import Annotated, Literal

from pydantic import Field

from orchestrator.settings.section import Section

_HOST = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?$"


class EnvironmentSettings(Section):
    """How the project is set up, and tried before a call is paid for. Written by people, never by a model."""

    base: Literal["require", "warn", "skip"] = "require"
    """require: nothing is paid for before something of the base can be run; warn: only told; skip: not tried."""
    base_timeout_s: float = Field(default=600.0, gt=0)
    """How long the base's whole suite may take; after that it counts that its tests could be collected."""
    hosts: tuple[Annotated[str, Field(pattern=_HOST)], ...] = ()
    """What fetching dependencies may reach beside the registries: `host` (ports 80 and 443) or `host:port`."""
