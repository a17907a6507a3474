"""What keeps commands that a model wrote from the rest of the machine, and what one command may reach."""

from enum import StrEnum
from pathlib import Path

from orchestrator.domain.base import Value

SANDBOX_CHOSEN = "sandbox_chosen"
"""The event that tells in which tier a run's commands are."""


class Tier(StrEnum):
    """How commands are confined, the strongest first."""

    NAMESPACES = "namespaces"
    """bubblewrap and seccomp: a file system, a network and processes of its own."""
    LANDLOCK = "landlock"
    """Landlock and seccomp: the machine's file system with most of it closed, and no network."""
    SEATBELT = "seatbelt"
    """macOS's sandbox-exec; written by the book and tested by nobody."""
    PLAIN = "plain"
    """Limits and a clean environment: accidents are bounded, malice is not."""


class SandboxFacts(Value):
    """The tier of a run, as it is told in the log and in the reports."""

    tier: Tier
    holds: tuple[str, ...] = ()
    """What was shown to hold, a few words each."""
    missing: tuple[str, ...] = ()
    """What a stronger tier or machine would hold as well."""
    untested: tuple[str, ...] = ()
    """What should hold, and nobody has tried."""
    note: str = ""
    """Why it is not a stronger tier; empty for the strongest."""

    def __str__(self) -> str:
        parts = [f"sandbox={self.tier}"]
        for name in ("holds", "missing", "untested"):
            if words := getattr(self, name):
                parts.append(f"{name}=[{', '.join(words)}]")
        return " ".join(parts) + (f" ({self.note})" if self.note else "")


class Access(Value):
    """What a command may reach beyond the system's programs, the interpreter, its working folder and its scratch."""

    tree: Path | None = None
    """The folder it may change, `.git` on top of it excepted; None: the folder that it runs in."""
    readable: tuple[Path, ...] = ()
    """Files and folders that it may read."""
    plain_path: bool = False
    """It sees its tree at a path without hidden folders, where the tier can: servers such as Express send no file from
    below one, and trees lie below `.orchestrator`."""
    fetch: bool = False
    """It reaches the registries that its variables name and `environment.hosts`, by a proxy of ours and no other way.

    Of its variables it gets neither credentials nor the machine's proxies; certificates and folders of packages that
    they name it may read.
    """

    def also(self, *paths: Path) -> "Access":
        """With these to read as well."""
        return self.model_copy(update={"readable": (*self.readable, *paths)})
