"""The tier `landlock`: for machines that allow no namespaces, as most containers. Most of the machine is closed."""

import contextlib
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.files.atomic_file import replace_content
from orchestrator.sandbox.confined import abi_version
from orchestrator.sandbox.seccomp import Sockets, program
from orchestrator.sandbox.tier import DEVICES, Command, Confined, etc, private_repository, system, tools

OLDEST_ABI = 3
"""Before it, a file that may not be written may still be emptied."""
_NET_ABI = 4
"""From which it knows ports: of any host, so the proxy's number can be connected to elsewhere as well."""
_MACHINE = tuple(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version"))
"""What this machine is and does as a whole: programs ask how many workers they may have. Nothing of a process."""
_PROCESSORS = "/sys/devices/system/cpu"


class LandlockSandbox:
    """`path` is the PATH that commands get; `readable` what the user opens to them; `shared` opens TCP to them.

    `places` are closed wherever they are.
    """

    own_loopback = False

    def __init__(
        self,
        path: str,
        readable: tuple[Path, ...] = (),
        *,
        shared: bool = False,
        places: tuple[Path, ...] = (),
    ) -> None:
        self._abi = abi_version()
        self._shared = shared
        own = map(Path, (*system(places), *etc(), *_MACHINE, _PROCESSORS))
        self._readable = (*own, *tools(path), *readable)
        self._closed = program(Sockets.TCP if shared else Sockets.NONE)
        self._fetching = program(Sockets.TCP)

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        scoped = self._abi >= 6
        missing = {
            "private loopback": True,
            "name of its user": True,
            "names of files elsewhere": True,
            "network (TCP is open: sandbox.loopback is shared)": self._shared,
            f"network of what fetches packages (Landlock's ABI is {self._abi}, and 4 is needed)": self._abi < _NET_ABI,
            ".git": True,
            "attributes of our user's files": True,
            "locks of multiprocessing": True,
            "limits of our user's processes": True,
            "signals to our user's processes": not scoped,
        }
        holds = {
            **dict.fromkeys(("limits", "environment", "process tree", "files"), True),
            "network": not self._shared,
            "other processes": scoped,
            "system calls": True,
        }
        return SandboxFacts(
            tier=Tier.LANDLOCK,
            holds=tuple(name for name, there in holds.items() if there),
            missing=tuple(name for name, there in missing.items() if there),
        )

    @contextlib.contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        """See the protocol."""
        # Without rules for ports a service would open everything.
        door = command.door if command.access.fetch or self._abi >= _NET_ABI else None
        with _kept(command.tree / ".git"):
            readable = (*self._readable, *command.access.readable, *private_repository(command.tree))
            policy = {
                "read": [str(path) for path in readable],
                "write": [str(command.tree), str(command.scratch)],
                "devices": list(DEVICES),
                "abi": self._abi,
                "tcp": self._shared and not command.access.fetch,
                "ports": [] if door is None else [*door.ports],
                "seccomp": (self._closed if door is None else self._fetching).hex(),
            }
            yield Confined(command.argv, command.env, {"confine": policy})


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Puts a small file back that was changed meanwhile, or has another thing in its place. Raises OSError."""
    before = _content(path)
    try:
        yield
    finally:
        if before is not None and path.parent.is_dir() and _content(path) != before:
            path.parent.chmod(stat.S_IMODE(path.parent.stat().st_mode) | stat.S_IRWXU)
            shutil.rmtree(path, ignore_errors=True)
            replace_content(path, before)


def _content(path: Path) -> bytes | None:
    """Returns None where there is no file."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            return path.read_bytes()
    return None
