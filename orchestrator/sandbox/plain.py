"""The tier `plain`: a command may read this machine and use its network; what else can be taken from it, is."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.files.users import can_change_user
from orchestrator.sandbox.confined import abi_version
from orchestrator.sandbox.landlock import OLDEST_ABI, OwnUser
from orchestrator.sandbox.seccomp import Sockets, program
from orchestrator.sandbox.tier import Command, Confined, tools

_EVERYTHING = "/"
_DEVICES = "/dev"
_TEMPORARY = ("/tmp", "/var/tmp")
"""Programs name these places outright. They stay closed only where the work itself lies there."""


class PlainSandbox(OwnUser):
    """`note` says why it is this tier, `path` is the PATH of commands, `places` are folders in which trees lie."""

    def __init__(self, note: str = "", path: str = "", places: tuple[Path, ...] = ()) -> None:
        super().__init__(tools(path), places, can_change_user())
        self._note = note
        self._linux = sys.platform == "linux"
        abi = abi_version() if self._linux else 0
        self._abi = abi if abi >= OLDEST_ABI else 0
        self._closed = b""
        if self._linux:
            with contextlib.suppress(ImportError, RuntimeError, OSError):  # no libseccomp
                self._closed = program(Sockets.USUAL, shared_processes=True)

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        own, unchanged = self._as_user, self._as_user or self._abi > 0
        what = {
            **dict.fromkeys(("limits", "environment", "process tree"), True),
            "changes of files elsewhere": unchanged,
            "other processes": own or self._abi >= 6,
            "system calls": self._closed != b"",
            "own user": own,
            ".git": own,
            "attributes of our user's files": own,
            "name of its user": not own,
            "reading of files elsewhere": False,
            "network": False,
        }
        return SandboxFacts(
            tier=Tier.PLAIN,
            holds=tuple(name for name, there in what.items() if there),
            missing=tuple(name for name, there in what.items() if not there),
            note=self._note,
        )

    @contextlib.contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        """See the protocol."""
        if not self._linux:
            yield Confined(command.argv, command.env)
            return
        with self._lent(command) as own:
            tree = command.tree.resolve()  # the state folder may be reached by a link
            beside = [one for one in _TEMPORARY if os.path.isdir(one) and not tree.is_relative_to(one)]
            policy = {
                "read": [_EVERYTHING],
                "write": [str(command.tree), str(command.scratch), _DEVICES, *beside],
                "devices": [],
                "abi": self._abi,
                "tcp": True,
                "ports": [],
                "seccomp": self._closed.hex(),
            }
            yield self._confined(command, own, policy)
