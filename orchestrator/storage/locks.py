"""One process per sprint: a file lock that also outlives us in every child that inherited it (decisions.md#processes).

git processes and command launchers get the descriptor, so the lock stays held after a kill -9 until the last of them
has ended; a new run waits for that instead of meeting a half-finished git command.
"""

import asyncio
import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from orchestrator.core.errors import SprintLocked

SERVES = "serve-"
"""How the executor id of a daemon begins."""
ORPHAN_WAIT_S = 30.0
"""Seconds that children of a killed process may take to end."""


class SprintLock:
    """`async with SprintLock(path) as lock:` holds it; raises SprintLocked naming the pid of a living holder."""

    def __init__(self, path: Path, what: str = "this sprint") -> None:
        """`what` is what the lock stands for, in messages."""
        self._path, self._what = path, what
        self.fd = -1

    async def __aenter__(self) -> "SprintLock":
        await asyncio.to_thread(self._acquire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a disk that takes nothing any more: the pid is a dead one's soon
            os.ftruncate(self.fd, 0)
        self._close()

    def _acquire(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + ORPHAN_WAIT_S
        while not self._taken():
            pid = self._holder()
            if pid and is_alive(pid):
                self._close()
                raise SprintLocked(
                    f"another process (pid {pid}) is at work on {self._what}; wait for it or end it", pid=pid
                )
            if time.monotonic() > deadline:
                self._close()
                raise SprintLocked(f"commands left by a killed run still hold {self._what}; end them first", pid=pid)
            time.sleep(0.05)
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode(), 0)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process holds it
            return False
        return True

    def _holder(self) -> int:
        text = os.pread(self.fd, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdigit() else 0

    def _close(self) -> None:
        os.close(self.fd)
        self.fd = -1


def is_alive(pid: int) -> bool:
    """Returns whether a process of this id runs, or has ended and was not collected."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # OverflowError: no pid can be so large
        return False
    except PermissionError:  # another user's
        pass
    return True


def holder(path: Path) -> int | None:
    """Pid of the living process that holds the lock, else None."""
    try:
        with path.open("rb") as file:
            # The pid alone would not do: after a kill it may belong to any other process.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except BlockingIOError:
        text = path.read_text().strip()
    except OSError:  # no holder has written its pid
        return None
    return int(text) if text.isdigit() and is_alive(int(text)) else None
