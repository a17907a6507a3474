"""The settings of the sandbox, and of what is fetched for it."""

from typing import Literal

from pydantic import Field

from orchestrator.settings.section import Section

_ADDRESS = r"^(https?|file)://[^\s]+$"


class RegistrySettings(Section):
    """Where dependencies are fetched from; empty: as pip and npm are configured on this machine."""

    pip: str | None = Field(default=None, pattern=_ADDRESS)
    npm: str | None = Field(default=None, pattern=_ADDRESS)


class SandboxSettings(Section):
    """How commands and tests are kept from the rest of the machine."""

    mode: Literal["auto", "namespaces", "landlock", "plain"] = "auto"
    """auto: the strongest tier that passes its self-test."""
    require: Literal["namespaces", "landlock", "none"] | None = None
    """The weakest tier a run may have. Empty: landlock for `auto`, the tier itself where `mode` names one."""
    loopback: Literal["private", "shared"] = "private"
    """shared: TCP is open to commands in the landlock tier, which cannot give them a loopback of their own."""
    readable: tuple[str, ...] = ()
    """Further files and folders of this machine that commands may read, as a compiler in somebody's home."""
    registries: RegistrySettings = RegistrySettings()
    packages: tuple[str, ...] = ()
    """Names of the only packages that may be asked for, `*` for any letters; empty: any."""
