"""Parts of the settings: sandbox, environment, daemon, retention, analysis."""

import datetime
import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    """Base of every part of the settings: frozen, unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


_ADDRESS = r"^(https?|file)://[^\s]+$"


class RegistrySettings(Section):
    """Where dependencies are fetched from; empty: as pip and npm are configured on this machine."""

    pip: str | None = Field(default=None, pattern=_ADDRESS)
    npm: str | None = Field(default=None, pattern=_ADDRESS)


class SandboxSettings(Section):
    """How commands and tests are kept from the rest of the machine."""

    mode: Literal["confined", "plain"] = "confined"
    """confined: the strongest tier that passes its self-test; plain: none."""
    loopback: Literal["private", "shared"] = "private"
    """shared: TCP is open to commands in the landlock tier, which cannot give them a loopback of their own."""
    readable: tuple[str, ...] = ()
    """Further files and folders of this machine that commands may read, as a compiler in somebody's home."""
    registries: RegistrySettings = RegistrySettings()
    packages: tuple[str, ...] = ()
    """Names of the only packages that may be asked for, `*` for any letters; empty: any."""


# Patterns of settings: a variable of a shell; a host with or without a port; a service always with its port.
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_HOST = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?$"
_SERVICE = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$"

# Package managers of Linux distributions and Homebrew, at the start of a command or behind `;`, `&`, `|`, `(`, `/`.
_SYSTEM_PACKAGES = re.compile(
    r"(?:^|[\s;&|(/])(?:apt-get|apt|aptitude|dnf|microdnf|yum|apk|pacman|zypper|brew)\s+(?:-\S+\s+)*"
    r"(?:install|add|update|upgrade|-S\w*)\b(?P<words>[^;&|\n]*)"
)


def system_packages(command: str) -> str | None:
    """Returns the system packages that a command installs, "" where it names none; None for any other command."""
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
    exclude_newer: datetime.date | None = None
    """The day after whose end nothing that was released counts, for uv and npm; empty: the newest releases do."""
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
    packages that have no wheel), confined and with the network of fetching. auto: those that the base commit requires
    or locks, and well-known native ones; a list: these alone, and with `auto` in it those as well."""

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


class ServeSettings(Section):
    """The daemon."""

    backlogs: tuple[str, ...] = ()
    """Backlogs that are watched beside those of `--backlog`: files, or folders; relative to the configuration file."""
    repo: str | None = None
    """The repository of all of them: a path relative to the configuration file, or the address of a remote one."""
    push_to: str | None = None
    """Branch that each sprint's result is pushed to when it ends, of the remote repository where there is one."""
    poll_s: float = Field(default=2.0, ge=0.1)
    """Seconds between two looks at the backlogs."""
    host: str | None = None
    """Address that is listened on. Empty: every one, IPv4 and IPv6, when PORT is set, else loopback alone."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port that is listened on; the variable PORT goes first; 0: a free one."""
    body_limit_kb: int = Field(default=8192, ge=1)
    """Largest request body."""
    heartbeat_s: float = Field(default=15.0, gt=0)
    """Seconds between two signs of life on a stream of events that has nothing to tell."""


class ShutdownSettings(Section):
    """How the daemon ends when it is told to."""

    grace_s: float = Field(default=20.0, ge=0)
    """Seconds that turns and commands at work get to end; what is cut then is done again at the next start."""


class RetentionSettings(Section):
    """How much of the past is kept; sprints that are not finished are never touched."""

    days: float | None = Field(default=90.0, gt=0)
    """Age of a finished sprint, or of an ended analysis, at which it is pruned; empty: never."""


PROFILES: dict[str, tuple[str, ...]] = {
    "quick_review": ("defects", "code_quality", "security", "testing", "plan_summary"),
    "full_review": (
        *("architecture", "module_boundaries", "product_gaps", "defects", "code_quality", "duplication", "dead_code"),
        *("error_handling", "concurrency", "security", "secrets", "privacy", "data_integrity", "performance"),
        *("testing", "test_reliability", "documentation", "dependencies", "operations", "plan_summary"),
    ),
    "before_release": (
        *("defects", "security", "secrets", "data_integrity", "compatibility", "licences", "operations"),
        *("build_pipeline", "documentation", "plan_summary"),
    ),
    "architecture": (
        *("architecture", "module_boundaries", "data_model", "data_integrity", "api_design", "scalability"),
        *("change_scenarios", "plan_summary"),
    ),
    "security": (
        *("threat_model", "security", "secrets", "privacy", "hardening", "dependencies", "error_handling"),
        "plan_summary",
    ),
    "tests": ("testing", "test_reliability", "testability", "test_properties", "error_handling"),
    "performance": ("performance", "concurrency", "resource_use", "scalability", "running_costs"),
    "evolution": (
        *("technical_debt", "complexity", "duplication", "dead_code", "change_scenarios", "modernisation"),
        *("dependencies", "compatibility", "plan_summary"),
    ),
    "product": (
        *("product_gaps", "user_experience", "accessibility", "localisation", "next_features", "stakeholder_brief"),
    ),
    "onboarding": ("onboarding", "glossary", "design_decisions", "documentation"),
}


class AnalysisSettings(Section):
    """The analysis of a repository that ends in an improvement plan."""

    profile: str = "full_review"
    """The profile when none is named."""
    profiles: dict[str, tuple[str, ...]] = PROFILES
    """Name → ids of prompts, in the order of the stages."""
    prompts: str | None = None
    """Folder with prompts of one's own, beside the packaged ones; the same id replaces one."""
    context_tokens: int = Field(default=60000, ge=1000)
    """Budget of PRD and repository in each prompt, in tokens of about four characters."""
    ignore: tuple[str, ...] = ()
    """What is left out of the prompts beside what .gitignore says, in its syntax."""
    stop_after_failures: int = Field(default=3, ge=0)
    """Stages that fail in a row until no further one is begun; 0 never."""
