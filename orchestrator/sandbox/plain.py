"""The tier `plain`: limits, an environment built from nothing, and the process tree killed; nothing is confined."""

import contextlib
import sys
from collections.abc import Iterator

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.sandbox.tier import Command, Confined


class PlainSandbox:
    """`note` says why it is this tier. Root loses its capabilities; what any user may do here, a command may."""

    own_loopback = False

    def __init__(self, note: str = "") -> None:
        self._note = note

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        return SandboxFacts(
            tier=Tier.PLAIN,
            holds=("limits", "environment", "process tree"),
            missing=("files", "network", "other processes", "system calls", ".git", "name of its user"),
            note=self._note,
        )

    @contextlib.contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        """See the protocol."""
        policy = {"confine": {"abi": 0, "seccomp": ""}} if sys.platform == "linux" else {}
        yield Confined(command.argv, command.env, policy)
