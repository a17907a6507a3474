"""The tier `landlock`: for machines that allow no namespaces, as most containers. Most of the machine is closed."""

import contextlib
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.files.atomic_file import replace_content
from orchestrator.files.users import (
    COMMANDS,
    DAC_READ_SEARCH,
    SETPCAP,
    Owners,
    Slot,
    can_change_user,
    has,
    is_closed,
    is_shut_away,
    let_through,
)
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


class OwnUser:
    """What the tiers without namespaces have in common: the user of a command, and what its process gives up.

    `readable` is what commands must come to. `places` are folders in which trees lie, and what is ours. `as_user` None:
    commands get a user of their own where the machine allows it, and where that user can come to all this.
    """

    own_loopback = False

    def __init__(self, readable: tuple[Path, ...], places: tuple[Path, ...], as_user: bool | None) -> None:
        self._readable, self._places = readable, places
        self._may_look = has(DAC_READ_SEARCH, SETPCAP)
        reachable = self._may_look or not _out_of_reach((*places, Path(tempfile.gettempdir()) / "any"), readable)
        self._as_user = (can_change_user() and reachable) if as_user is None else as_user
        self._owners = Owners()

    @contextlib.contextmanager
    def _lent(self, command: Command) -> Iterator[Slot | None]:
        """Yields the command's own user, to whom its folders belong meanwhile. Raises OSError."""
        if self._as_user:
            with self._owners.of(command.tree, command.scratch) as own:
                yield own
        else:
            with _kept(command.tree / ".git"):
                yield None

    def _confined(self, command: Command, own: Slot | None, policy: Mapping[str, Any]) -> Confined:
        """Returns how to run it. Raises OSError."""
        user = {"uid": None if own is None else own.uid, "groups": [COMMANDS], "look": self._looks(command, own)}
        more = {"confine": {**policy, **user}, "own_user": own is not None}
        return Confined(command.argv, command.env, more, held=() if own is None else (own.lock_fd,))

    def _looks(self, command: Command, own: Slot | None) -> bool:
        """Returns whether the command's user needs the right to look into what is closed to it. Raises OSError."""
        if own is None:
            return False
        if not self._may_look:  # as in most containers; the state folder is closed to other users
            self._let_through((command.tree, *command.access.readable))
            if _out_of_reach((command.tree, command.scratch), command.access.readable):
                raise PermissionError(f"{command.tree} or what it needs is closed to other users than root")
            return False
        return _out_of_reach((command.tree, command.scratch), (*self._readable, *command.access.readable))

    def _let_through(self, wanted: Iterable[Path]) -> None:
        passed = {parent for path in wanted for parent in path.resolve().parents}
        for place in self._places:
            if place.resolve() in passed:
                let_through(place)


class LandlockSandbox(OwnUser):
    """`path` is the PATH that commands get; `readable` what the user opens to them; `shared` opens TCP to them.

    `places` are closed wherever they are.
    """

    def __init__(
        self,
        path: str,
        readable: tuple[Path, ...] = (),
        *,
        shared: bool = False,
        places: tuple[Path, ...] = (),
        as_user: bool | None = None,
    ) -> None:
        self._abi = abi_version()
        self._shared = shared
        own = map(Path, (*system(places), *etc(), *_MACHINE, _PROCESSORS))
        super().__init__((*own, *tools(path), *readable), places, as_user)
        self._closed = program(Sockets.TCP if shared else Sockets.NONE, shared_processes=True)
        self._fetching = program(Sockets.TCP, shared_processes=True)

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        own, scoped = self._as_user, self._abi >= 6
        missing = {
            "private loopback": True,
            "name of its user": True,
            "names of files elsewhere": True,
            "network (TCP is open: sandbox.loopback is shared)": self._shared,
            f"network of what fetches packages (Landlock's ABI is {self._abi}, and 4 is needed)": self._abi < _NET_ABI,
            "own user": not own,
            ".git": not own,
            "attributes of our user's files": not own,
            "locks of multiprocessing": True,
            "signals to our user's processes": not own and not scoped,
        }
        holds = {
            **dict.fromkeys(("limits", "environment", "process tree", "files"), True),
            "network": not self._shared,
            "other processes": own or scoped,
            "system calls": True,
            "own user": own,
            ".git": own,
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
        with self._lent(command) as own:
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
            yield self._confined(command, own, policy)


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


def _out_of_reach(own: Iterable[Path], readable: Iterable[Path]) -> bool:
    readable = tuple(readable)
    return any(map(is_shut_away, (*own, *readable))) or any(map(is_closed, readable))
