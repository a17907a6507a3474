"""A user of its own for every command that runs at a time, where the daemon is root; and the tree it works in."""

import collections
import contextlib
import fcntl
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FIRST, MOST = 20001, 512  # numbers that no distribution gives to accounts by itself
# Numbers of capabilities in <linux/capability.h>.
CHOWN, DAC_READ_SEARCH, SETGID, SETUID, SETPCAP, SYS_ADMIN = 0, 2, 6, 7, 8, 21
COMMANDS = FIRST + MOST
"""A group with only these users: it may pass a folder that `let_through` was called for."""
_PLACES = ("/run/lock", "/run")
_OPEN = 0o775
"""Of a tree that is lent: bubblewrap enters it as a root without rights."""


class Slot(NamedTuple):
    """A user that nothing else on this machine runs as."""

    uid: int
    lock_fd: int
    """Held as long as something may run as this user."""


def has(*capabilities: int) -> bool:
    """Returns whether this process has all of them."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except (OSError, ValueError):  # no /proc: other systems
        return False
    line = next((line for line in text.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    mask = int(line.split()[1], 16)
    return all(mask >> capability & 1 for capability in capabilities)


def can_change_user() -> bool:
    """Returns whether commands can be given to other users at all: in a container, not each number need be one."""
    return os.name == "posix" and os.geteuid() == 0 and has(CHOWN, SETUID, SETGID) and _are_users(FIRST, MOST + 1)


def _are_users(first: int, count: int) -> bool:
    rows = (tuple(map(int, row.split())) for row in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines())
    return any(start <= first and first + count <= start + length for start, _, length in rows)


class Owners:
    """Who works in which tree: commands that run in one tree at a time are one user."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trees: dict[Path, tuple[Slot, contextlib.ExitStack]] = {}
        self._commands: collections.Counter[Path] = collections.Counter()

    @contextlib.contextmanager
    def of(self, tree: Path, scratch: Path, *, guarded: bool = False) -> Iterator[Slot]:
        """Yields a user to whom both folders belong while the block runs. `guarded`: see `given`. Raises OSError."""
        with self._lock:
            if tree not in self._trees:
                with contextlib.ExitStack() as stack:
                    found = stack.enter_context(slot())
                    stack.enter_context(given(tree, found.uid, guarded=guarded))
                    self._trees[tree] = (found, stack.pop_all())
            self._commands[tree] += 1
            own = self._trees[tree][0]
        try:
            with contextlib.nullcontext() if scratch == tree else given(scratch, own.uid):
                yield own
        finally:
            with self._lock:
                self._commands[tree] -= 1
                if not self._commands[tree]:
                    self._trees.pop(tree)[1].close()


@contextlib.contextmanager
def slot() -> Iterator[Slot]:
    """Yields a free user, for as long as the block runs; also free of other daemons on this machine. Raises OSError."""
    place = next((place for place in _PLACES if os.access(place, os.W_OK)), tempfile.gettempdir())
    folder = Path(place) / "orchestrator-users"
    with contextlib.suppress(FileExistsError):  # made by another process
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not ours")
    for number in range(MOST):
        fd = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            continue
        try:
            yield Slot(FIRST + number, fd)
        finally:
            os.close(fd)
        return
    raise OSError(f"more than {MOST} commands at once")


def is_closed(path: Path) -> bool:
    """Returns whether other users cannot read what lies there; what is not there is open."""
    try:
        found = path.stat()
    except OSError:
        return False
    needed = 0o005 if stat.S_ISDIR(found.st_mode) else 0o004
    return found.st_mode & needed != needed


def is_shut_away(path: Path) -> bool:
    """Returns whether other users cannot even come to it."""
    return any(not _is_passed(parent.stat()) for parent in path.parents if parent.exists())


def _is_passed(found: os.stat_result) -> bool:
    return bool(found.st_mode & 0o001 or (found.st_gid == COMMANDS and found.st_mode & 0o010))


def is_private(found: os.stat_result) -> bool:
    """Returns whether a folder is its owner's alone; commands of ours may pass it, and not look into it."""
    others = found.st_mode & 0o077
    return not others or (others == 0o010 and found.st_gid == COMMANDS)


def let_through(folder: Path) -> None:
    """Lets only our commands' users pass a private folder on the way to their tree. Raises OSError."""
    found = folder.stat()
    if is_private(found) and not _is_passed(found):
        os.chown(folder, -1, COMMANDS)
        os.chmod(folder, stat.S_IMODE(found.st_mode) | 0o010)


@contextlib.contextmanager
def given(tree: Path, uid: int, *, guarded: bool = False) -> Iterator[None]:
    """Gives our files in `tree`, except the top `.git`, to `uid` inside the block. Raises OSError.

    The folder itself as well, where there is no `.git` or something else guards it (`guarded`); else it stays ours and
    gets the sticky bit: others can work in it and cannot take `.git` away. Files with further names elsewhere are left
    alone.
    """
    found = tree.stat()
    mode = stat.S_IMODE(found.st_mode)
    if is_slot(found.st_gid):  # left by a process that was killed
        mode &= ~(stat.S_ISVTX | 0o022)
    owner = os.geteuid()
    whole = (guarded or not os.path.lexists(tree / ".git")) and _is_handed_over(found, owner)
    _hand_over(tree, owner, uid)
    os.chown(tree, uid if whole else -1, uid)
    os.chmod(tree, mode | _OPEN | (0 if whole else stat.S_ISVTX))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the tree may be gone
            os.chown(tree, owner if is_slot(tree.stat().st_uid) else -1, os.getegid())
            os.chmod(tree, mode)
            _take_back(tree, owner)


def is_slot(uid: int) -> bool:
    """Returns whether it is one of the users that commands get."""
    return FIRST <= uid < FIRST + MOST


def _is_handed_over(found: os.stat_result, owner: int) -> bool:
    return found.st_uid == owner or is_slot(found.st_uid)


def _hand_over(tree: Path, owner: int, uid: int) -> None:
    linked: dict[tuple[int, int], list[str]] = collections.defaultdict(list)
    for path, found in _entries(tree):
        if not _is_handed_over(found, owner) or found.st_uid == uid:
            continue
        if found.st_uid != owner or stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            os.chown(path, uid, uid, follow_symlinks=False)
            continue
        names = linked[found.st_dev, found.st_ino]
        names.append(path)
        if len(names) == found.st_nlink:  # all of them lie in the tree: builds do that
            os.chown(path, uid, uid, follow_symlinks=False)


def _take_back(tree: Path, owner: int) -> None:
    for path, found in _entries(tree):
        if is_slot(found.st_uid):
            with contextlib.suppress(OSError):  # deleted during the walk
                os.chown(path, owner, os.getegid(), follow_symlinks=False)


def _entries(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below `tree` but for its `.git`; no link is followed. Nothing changes the tree meanwhile.

    What lies so deep that its path is too long for the system is left out.
    """
    waiting = [str(tree)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:  # deleted during the walk
            for entry in entries:
                if entry.name == ".git" and entry.path == f"{tree}/.git":
                    continue
                with contextlib.suppress(OSError):  # deleted during the walk
                    yield entry.path, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
