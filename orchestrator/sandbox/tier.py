"""The interface of the tiers, and what of this machine commands may read.

That is its programs, the interpreters in use, and the little of /etc that they need.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from orchestrator.core.suite import Access, SandboxFacts


class Door(NamedTuple):
    """Allowed connections of a command: the fetch proxy, or services that people started."""

    ports: tuple[int, ...]
    """On loopback; in the tier `landlock` of any host."""
    fd: int | None
    """By which the listening sockets are sent to us, for a command with a loopback of its own."""


class Command(NamedTuple):
    """The command to run."""

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
    """Path of the tree as the command sees it, if different."""


class Sandbox(Protocol):
    """One tier on this machine."""

    own_loopback: bool
    """True when a command has its own loopback interface."""

    @property
    def facts(self) -> SandboxFacts:
        """What it holds."""
        ...

    def confined(self, command: Command) -> AbstractContextManager[Confined]:
        """Returns how to run `command`, for as long as the block runs; its methods block. Raises OSError."""
        ...


SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_ETC = (
    *("os-release", "debian_version", "lsb-release", "alpine-release", "redhat-release", "passwd", "group", "hosts"),
    *("nsswitch.conf", "resolv.conf", "host.conf", "gai.conf", "protocols", "services", "localtime", "timezone"),
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "locale.alias", "magic", "fonts"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "ca-certificates", "ca-certificates.conf"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_BESIDE = ("lib", "lib64", "libexec", "include")
"""What stands beside a folder of programs and belongs to them."""


def system(closed: Iterable[Path] = ()) -> tuple[str, ...]:
    """Returns the system's folders, without parents of `closed` ones: an application may be below /opt or /usr."""
    return tuple(path for folder in SYSTEM for path in _open_below(folder, tuple(closed)))


def _open_below(folder: str, closed: tuple[Path, ...]) -> Iterator[str]:
    if os.path.islink(folder) or not any(path.is_relative_to(folder) for path in closed):
        yield folder
    elif Path(folder) not in closed and os.path.isdir(folder):
        for name in sorted(os.listdir(folder)):
            yield from _open_below(f"{folder}/{name}", closed)


def etc() -> tuple[str, ...]:
    """Returns the files of /etc that programs need to find their libraries, certificates, names and times."""
    java = sorted(path.name for path in Path("/etc").glob("java*") if path.is_dir())
    return tuple(f"/etc/{name}" for name in (*_ETC, *java) if os.path.lexists(f"/etc/{name}"))


def tools(path: str) -> tuple[Path, ...]:
    """Returns the interpreter of this process and what PATH names, where that lies outside the system's folders."""
    wanted: list[Path] = []
    for prefix in (sys.prefix, sys.base_prefix, str(Path(os.path.realpath(sys.executable)).parent.parent)):
        wanted += _followed(Path(prefix))
    for entry in path.split(":"):
        if entry.startswith("/") and not is_system(Path(entry)):
            wanted += [one for folder in _with_libraries(Path(entry)) for one in _followed(folder)]
    return outermost(folder for folder in wanted if not _is_everything(folder))


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Returns the folders that are not below another one."""
    found = dict.fromkeys(paths)
    return tuple(path for path in found if not any(path != other and path.is_relative_to(other) for other in found))


def is_system(path: Path) -> bool:
    """Returns whether it lies in a folder that every command may read."""
    return any(path.is_relative_to(folder) for folder in SYSTEM)


def private_repository(tree: Path) -> tuple[Path, ...]:
    """Returns what a checkout's `.git` file leads to, so that a command may look around in it.

    By the checkout's own layout and by the files beside it, which no command can write; never by what stands in the
    tree.
    """
    place = tree.parent / ".state" / tree.name / "git"
    try:
        borrowed = (place / "objects" / "info" / "alternates").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # it borrows no objects
        return ()
    return (place, Path(borrowed))


def _with_libraries(folder: Path) -> Iterator[Path]:
    yield folder
    if folder.name in {"bin", "sbin"}:
        yield from (folder.parent / name for name in _BESIDE)


def _followed(folder: Path) -> Iterator[Path]:
    """Yields a folder, under the name it was given and the one it really has."""
    if os.path.isdir(folder):  # `Path.is_dir` raises where we may not look, as in another user's folders on PATH
        yield folder
        real = folder.resolve()
        if real != folder and not is_system(real):
            yield real


def _is_everything(folder: Path) -> bool:
    """Returns whether a prefix would open the whole machine or a home folder, and so must open nothing."""
    home = Path(os.path.expanduser("~"))
    return folder == Path("/") or home == folder or home.is_relative_to(folder) or is_system(folder)
