"""The settings of a project's environment, in which its commands and tests run."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from orchestrator.settings.section import Section

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_HOST = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?$"
_SERVICE = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$"

_SYSTEM_PACKAGES = re.compile(
    r"(?:^|[\s;&|(/])(?:apt-get|apt|aptitude|dnf|microdnf|yum|apk|pacman|zypper|brew)\s+(?:-\S+\s+)*"
    r"(?:install|add|update|upgrade|-S\w*)\b(?P<words>[^;&|\n]*)"
)


def system_packages(command: str) -> str | None:
    """Names of the system's packages that the command installs, "" where it names none; None for any other command."""
    found = _SYSTEM_PACKAGES.search(command)
    return None if found is None else " ".join(word for word in found["words"].split() if not word.startswith("-"))


class EnvironmentSettings(Section):
    """How the project is set up, and tried before a call is paid for. Written by people, never by a model."""

    setup: tuple[str, ...] = ()
    """Shell commands that get or make what tests need and no manifest brings, run on the base commit alone, with the
    network of fetching."""
    build: tuple[str, ...] = ()
    """Shell commands without a network that are run in a tree before its tests, whenever its files have changed."""
    python: str = ""
    """The Python of the project, one that is installed: `3.12`, or a program; empty: the one that runs the
    orchestrator, or another where the project's `requires-python` excludes it."""
    extras: tuple[str, ...] | None = None
    """Extras of the project that its tests need; empty: those that its manifests name for tests."""
    groups: tuple[str, ...] | None = None
    """The same of dependency groups (PEP 735, and those of poetry, pdm and uv)."""
    env: dict[Annotated[str, Field(pattern=_VARIABLE)], str] = Field(default_factory=dict)
    """Variables that every command, test and build of the project gets."""
    base: Literal["require", "warn", "skip"] = "require"
    """require: nothing is paid for before something of the base can be run; warn: only told; skip: not tried."""
    base_timeout_s: float = Field(default=600.0, gt=0)
    """How long the base's whole suite may take; after that it counts that its tests could be collected."""
    hosts: tuple[Annotated[str, Field(pattern=_HOST)], ...] = ()
    """What fetching dependencies may reach beside the registries: `host` (ports 80 and 443) or `host:port`."""

    services: tuple[Annotated[str, Field(pattern=_SERVICE)], ...] = ()
    """`host:port` of what people started and commands and tests may connect to. In the tier `namespaces` they find it
    on their own loopback, by its port; in `landlock` where it is, with that port open to every host."""
    install_scripts: Literal["auto", "never"] | tuple[str, ...] = "auto"
    """Which packages may run code of their own while they are installed (npm's install scripts, builds of Python
    packages that have no wheel), confined and with the network of fetching. auto: those that manifests and lock files
    of the base commit name, and well-known native ones; a list: these alone, and with `auto` in it those as well."""

    @field_validator("python", mode="before")
    @classmethod
    def _quoted(cls, python: object) -> object:
        if isinstance(python, int | float):  # YAML's 3.10 is 3.1
            raise ValueError('write the version in quotes, as "3.12"')
        return python

    @field_validator("services")
    @classmethod
    def _apart(cls, services: tuple[str, ...]) -> tuple[str, ...]:
        ports = [one.rpartition(":")[2] for one in services]
        if twice := sorted({port for port in ports if ports.count(port) > 1}):
            raise ValueError(f"port {', '.join(twice)} is named twice: tests find services by their ports alone")
        return services

    @field_validator("setup", "build")
    @classmethod
    def _unprivileged(cls, commands: tuple[str, ...]) -> tuple[str, ...]:
        for command in commands:
            if (named := system_packages(command)) is not None:
                what = f"install {named}" if named else "keep them up to date"
                raise ValueError(f"`{command}`: no system package is installed here; {what} on this machine instead")
        return commands

    @field_validator("env")
    @classmethod
    def _ours(cls, env: dict[str, str]) -> dict[str, str]:
        if ours := sorted({"PATH", "HOME", "TMPDIR"} & env.keys()):
            raise ValueError(f"{', '.join(ours)}: each command gets its own")
        return env
