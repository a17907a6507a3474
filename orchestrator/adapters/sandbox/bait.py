"""What lies around while hostile actions are tried: secrets, files, services and a process that nothing may touch."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.leftovers import named

SECRET = "bait-of-the-battery"
_FILES = {"file": "untouched\n", "secret": f"{SECRET}\n", "repository/config": "[core]\n\tbare = true\n"}


@dataclass(frozen=True, kw_only=True)
class Bait:
    """The folder that a command may work in, and what lies around it."""

    tree: Path
    outside: Path
    pid: int
    sockets: tuple[socket.socket, ...]
    facts: Mapping[str, Any]
    before: tuple[str, ...] = field(repr=False)

    def touched(self) -> tuple[str, ...]:
        """What is not as it was, by sight from outside. Blocks."""
        after = _look(self.outside, self.pid)
        changed = [f"{old} became {new}" for old, new in zip(self.before, after, strict=False) if old != new]
        changed += [] if len(self.before) == len(after) else ["files came or went"]
        return (*changed, *(f"something came to {one.getsockname()!r}" for one in self.sockets if _called(one)))


@contextlib.contextmanager
def bait() -> Iterator[Bait]:
    """Laid out while the block runs, and taken away after it."""
    with contextlib.ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix=named("orchestrator-"))).resolve()
        stack.callback(remove_tree, base)
        tree, outside = base / "tree", base / "outside"
        for folder in (tree, outside, outside / "repository", outside / "repository" / "hooks"):
            folder.mkdir()
        for name, text in _FILES.items():
            (outside / name).write_text(text)
        (tree / ".git").write_text("gitdir: nowhere\n")
        for path in (base, *base.rglob("*")):
            if path.is_relative_to(outside) or path == base:
                path.chmod(0o777 if path.is_dir() else 0o666)
        sockets = {name: stack.enter_context(one) for name, one in _services(outside).items()}
        process = _sleeper(stack)
        facts = {
            "outside": str(outside),
            "pid": process.pid,
            "daemon": os.getpid(),
            "prefix": sys.prefix,
            "port": sockets["tcp"].getsockname()[1],
            "udp": sockets["udp"].getsockname()[1],
            "abstract": sockets["abstract"].getsockname()[1:].decode() if "abstract" in sockets else "",
        }
        before = _look(outside, process.pid)
        yield Bait(
            tree=tree, outside=outside, pid=process.pid, sockets=(*sockets.values(),), facts=facts, before=before
        )


def _services(outside: Path) -> dict[str, socket.socket]:
    services = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "path": socket.socket(socket.AF_UNIX),
        "datagrams": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    }
    services["udp"].bind(("127.0.0.1", 0))
    services["path"].bind(str(outside / "service"))
    services["datagrams"].bind(str(outside / "datagrams"))
    for name in ("service", "datagrams"):
        (outside / name).chmod(0o666)
    if sys.platform == "linux":
        services["abstract"] = socket.socket(socket.AF_UNIX)
        services["abstract"].bind(f"\0{uuid.uuid4().hex}")
        services["abstract"].listen()
    services["path"].listen()
    for one in services.values():
        one.setblocking(False)
    return services


def _called(one: socket.socket) -> bool:
    try:
        if one.type == socket.SOCK_STREAM:
            one.accept()[0].close()
        else:
            one.recv(16)
    except BlockingIOError:
        return False
    return True


def _sleeper(stack: contextlib.ExitStack) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        ["/bin/cat"],  # ends with its input, so that it does not outlive us when we are killed
        env={"BAIT": SECRET}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def _look(outside: Path, pid: int) -> tuple[str, ...]:
    told = []
    for path in sorted(outside.rglob("*")):
        found = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        marks = os.listxattr(path, follow_symlinks=False) if hasattr(os, "listxattr") else []
        told.append(
            f"{path.name} {found.st_mode:o} {found.st_uid} {found.st_nlink} {found.st_mtime_ns} {text!r} {marks}"
        )
    if hasattr(resource, "prlimit"):
        limits, processors = resource.prlimit(pid, resource.RLIMIT_CORE), sorted(os.sched_getaffinity(pid))
        told.append(f"process {limits} {processors}")
    return (*told, f"process {os.getpriority(os.PRIO_PROCESS, pid)}")
