"""What a command holds in memory without a process whose own it is: shared mappings, files in memory, segments.

Part of the launcher's program: standard library only.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator

FOLDER = "/dev/shm"
_IPC_RMID = 0
_SEGMENTS = "/proc/sysvipc/shm"
_ID, _ATTACHED, _UID, _CREATOR = 1, 6, 7, 9
"""Columns of a row."""


def mapped(pid: int) -> int:
    """Returns the bytes of shared memory that the process maps: its share of them, where the kernel tells us that."""
    whole = _bytes(f"/proc/{pid}/status", b"RssShmem:")
    share = _bytes(f"/proc/{pid}/smaps_rollup", b"Pss_Shmem:") if whole else None
    return whole or 0 if share is None else share


def _bytes(path: str, name: bytes) -> int | None:
    with contextlib.suppress(OSError), open(path, "rb") as file:  # the process has ended, or is another user's
        return next((int(row.split()[1]) * 1024 for row in file if row.startswith(name)), None)
    return None


class MemoryFiles:
    """The files in memory of one command.

    `own` are the folders that are a file system of the command's own; else `user` is whom its files in the machine's
    folder belong to, None where it cannot write there.
    """

    def __init__(self, own: Iterable[str], user: int | None) -> None:
        self._own, self._user = tuple(own), user
        self._outside = {folder: _device(folder) for folder in self._own}
        self._before = self._of_user() if user is not None else 0

    def held(self, pids: Iterable[int]) -> int:
        """Returns their bytes; `pids` are the command's processes."""
        if self._own:
            return next(filter(None, map(self._inside, pids)), 0)
        return 0 if self._user is None else self._of_user() - self._before

    def _inside(self, pid: int) -> int:
        """Zero where the process is not inside yet, or cannot be looked into."""
        return sum(_used_unless(f"/proc/{pid}/root{folder}", outside) for folder, outside in self._outside.items())

    def _of_user(self) -> int:
        """Files of the user, and those without a name: nobody can tell whose they are, and they are seldom large."""
        with contextlib.suppress(OSError):
            if not (used := _used(FOLDER)):
                return 0
            found = [(one.st_uid, one.st_blocks * 512) for one in _files(FOLDER)]
            return used - sum(size for user, size in found if user != self._user)
        return 0


def _files(folder: str) -> Iterator[os.stat_result]:
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:  # deleted meanwhile
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)


def _device(folder: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(folder).st_dev
    return 0


def _used(folder: str | int) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _used_unless(folder: str, device: int) -> int:
    """Returns the bytes in a folder's file system unless that is `device`; 0 where it cannot be looked into.

    Opened once: a process that starts another program is closed to us for a moment, and what its path leads to changes.
    """
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            return _used(opened) if os.fstat(opened).st_dev != device else 0
        finally:
            os.close(opened)
    return 0


def remove_segments(user: int) -> None:
    """Removes the System V segments that the user left behind and no process has attached."""
    with contextlib.suppress(OSError), open(_SEGMENTS, "rb") as file:
        rows = [list(map(int, row.split())) for row in list(file)[1:]]
        left = [row[_ID] for row in rows if row[_UID] == user and not row[_ATTACHED]]
        if not left:
            return
        if (child := os.fork()) == 0:  # only their owner may, if we are not all that root can be
            try:
                os.setresuid(user, user, user)
                for segment in left:
                    ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
