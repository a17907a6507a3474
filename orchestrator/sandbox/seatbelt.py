"""The tier `seatbelt` for macOS: written by its manual, tried by nobody. It says so wherever it is told of."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.sandbox.tier import Command, Confined, tools

PROGRAM = "sandbox-exec"
_READABLE = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt", "/private/etc", "/private/var/db", "/dev")
_SERVICES = (
    *("com.apple.system.opendirectoryd.libinfo", "com.apple.system.notification_center", "com.apple.system.logger"),
    *("com.apple.SystemConfiguration.configd", "com.apple.trustd.agent"),
)


def is_there() -> bool:
    """Whether this machine has the program."""
    return shutil.which(PROGRAM) is not None


class SeatbeltSandbox:
    """`path` is the PATH that commands get; `readable` what the user opens to them beside the usual."""

    own_loopback = False

    def __init__(self, path: str, readable: tuple[Path, ...] = ()) -> None:
        self._readable = (*map(Path, _READABLE), *tools(path), *readable)

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        return SandboxFacts(
            tier=Tier.SEATBELT,
            holds=("limits", "environment"),
            missing=("process tree (what detaches itself may stay)", "memory of the tree", "own user", "loopback"),
            untested=("files", "network", "other processes", ".git"),
            note="no machine of this kind was there to try it on",
        )

    @contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        """See the protocol."""
        argv = (PROGRAM, "-p", profile(command, self._readable), *command.argv)
        yield Confined(argv, command.env)


def profile(command: Command, readable: tuple[Path, ...]) -> str:
    """Everything is denied but what is named; the last rule that fits decides. Paths are the real ones."""
    own = [folder.resolve() for folder in dict.fromkeys((command.tree, command.scratch))]
    reads = [path.resolve() for path in (*readable, *command.access.readable, *own)]
    rules = [
        *("(version 1)", "(deny default)", "(allow process-exec process-fork)", "(allow signal (target same-sandbox))"),
        *("(allow process-info* (target same-sandbox))", "(allow sysctl-read)", "(allow file-read-metadata)"),
        f"(allow mach-lookup {' '.join(f'(global-name {_quoted(name)})' for name in _SERVICES)})",
        *(f"(allow file-read* {_subpaths(reads)})", f"(allow file-write* {_subpaths(own)})"),
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero"))',
    ]
    rules += ["(deny network*)", f"(deny file-write* {_subpaths([command.tree.resolve() / '.git'])})"]
    if command.door is not None:
        rules += [f'(allow network-outbound (remote ip "localhost:{port}"))' for port in command.door.ports]
        rules.append("(allow system-socket)")
    return "\n".join(rules)


def _subpaths(paths: list[Path]) -> str:
    return " ".join(f"(subpath {_quoted(str(path))})" for path in paths)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
