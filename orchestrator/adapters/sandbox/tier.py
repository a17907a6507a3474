"""The interface of the tiers, and the plain one that confines nothing."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from orchestrator.domain.sandbox import Access, SandboxFacts, Tier


class Door(NamedTuple):
    """What a command may connect to: the proxy of what fetches, or services that people started."""

    ports: tuple[int, ...]
    """On loopback; in the tier `landlock` of any host."""
    fd: int | None
    """By which the listening sockets are sent to us, for a command with a loopback of its own."""


class Command(NamedTuple):
    """What is to be run."""

    argv: tuple[str, ...]
    cwd: Path
    scratch: Path
    """A folder of the command's own, outside the tree."""
    env: Mapping[str, str]
    access: Access
    door: Door | None = None
    """None: no network."""

    @property
    def tree(self) -> Path:
        """The folder that it may change."""
        return self.access.tree or self.cwd


class Confined(NamedTuple):
    """How the launcher runs it."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """Of the program that `argv` begins with."""
    policy: Mapping[str, Any] = {}
    """Further words of the launcher's policy."""
    fds: tuple[int, ...] = ()
    """Descriptors that the program that `argv` begins with is given."""
    seen_at: Path | None = None
    """Where the command sees its tree, when that is another path."""
    held: tuple[int, ...] = ()
    """Descriptors that the launcher holds open, and nothing of the command."""


class Sandbox(Protocol):
    """One tier on this machine."""

    own_loopback: bool
    """Whether a command's loopback is its own."""

    @property
    def facts(self) -> SandboxFacts:
        """What it holds."""
        ...

    def confined(self, command: Command) -> AbstractContextManager[Confined]:
        """How to run `command`, for as long as the block runs; its methods block. Raises OSError."""
        ...


class PlainSandbox:
    """Limits and a clean environment only."""

    own_loopback = False

    def __init__(self, note: str = "") -> None:
        self._note = note

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        return SandboxFacts(
            tier=Tier.PLAIN,
            holds=("limits", "environment", "process tree"),
            missing=("files", "network", "other processes", "system calls", "own user"),
            note=self._note,
        )

    def confined(self, command: Command) -> AbstractContextManager[Confined]:
        """See the protocol."""
        return nullcontext(Confined(command.argv, command.env))
