"""Files that a crash leaves whole, old or new, temporary ones that are held while they are made, and private modes."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.core.errors import ConfigError

_held = dict[str, int]()
"""Descriptors of what this process has in the making, by path: each has a lock on it, which ends with the process."""


def make_folder(prefix: str, parent: Path | None = None) -> Path:
    """Makes a folder, by default among the temporary ones, that `leftovers` finds by `prefix` once nobody holds it.

    It is held until `let_go`, or until this process ends. A process id would not do for that: another container on
    the same volume has other processes.
    """
    parent = (parent or Path(tempfile.gettempdir())).resolve()
    # It gets its name when it is held: others remove what has the name and is not.
    made = tempfile.mkdtemp(prefix=".made-", dir=parent)
    return _hold(os.open(made, os.O_RDONLY | os.O_DIRECTORY), made, parent / named(prefix))


def make_file(prefix: str, folder: Path) -> tuple[int, Path]:
    """Makes a file, held as `make_folder`'s, that only its owner may read; returns its descriptor as well."""
    handle, made = tempfile.mkstemp(prefix=".made-", dir=folder)
    return handle, _hold(os.dup(handle), made, folder / f"{named(prefix)}.tmp")


def _hold(descriptor: int, made: str, place: Path) -> Path:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.rename(made, place)
    _held[str(place)] = descriptor
    return place


def let_go(path: Path) -> None:
    """Holds `path` no more; nothing happens where it is not held."""
    if (descriptor := _held.pop(str(path), None)) is not None:
        os.close(descriptor)


def named(prefix: str) -> str:
    """Returns a new temporary name; `leftovers` finds it by the same `prefix`."""
    return f"{prefix}{secrets.token_hex(8)}-"


def leftovers(folder: Path, prefix: str) -> Iterator[Path]:
    """Entries of `folder` with a name of `named(prefix)` that no process holds, as far as they are ours."""
    pattern = re.compile(re.escape(prefix) + r"[0-9a-f]{16}-")
    with suppress(OSError), os.scandir(folder) as entries:  # no folder, no leftovers
        for entry in entries:
            if pattern.match(entry.name) and _is_ours(entry) and not _is_held(entry.path):
                yield Path(entry.path)


def _is_held(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # just removed, or a command has closed it: whoever made it removes it
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_alive(pid: int) -> bool:
    """Returns whether a process of this id runs; one that has ended and was not collected does not."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # OverflowError: no pid can be so large
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # just removed
        return False


def _is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # the process has ended, or there is no /proc
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]


_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def is_read_only(path: Path) -> bool:
    """Returns whether `path` must not be replaced: it or its folder has no write bit, or we may not write there.

    The mode counts even where it would not hinder us (an administrator's process): who removed the bits meant it.
    """
    target = Path(os.path.realpath(path))
    for place in (target, target.parent):
        with contextlib.suppress(FileNotFoundError):  # a new file, or a new folder
            if not place.stat().st_mode & _ANY_WRITE or not os.access(place, os.W_OK):
                return True
    return False


def remove_leftovers(path: Path) -> str:
    """Removes what killed processes left of `path` beside it; returns how the names of such files begin."""
    prefix = f".{path.name[:100]}."
    for left in leftovers(path.parent, prefix):
        with contextlib.suppress(OSError):  # another process removes it as well
            left.unlink()
    return prefix


def stage(path: Path, data: bytes) -> Path:
    """Writes `data` to a new file beside `path`, synced, with the mode and owner of `path` if it exists.

    What killed processes left there of the same is removed. Raises OSError; nothing is left behind then.
    """
    prefix = remove_leftovers(path)
    handle, beside = make_file(prefix, path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            _copy_rights(path, file.fileno())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        unstage(beside)
        raise
    return beside


def unstage(beside: Path) -> None:
    """Removes a staged file."""
    beside.unlink(missing_ok=True)
    let_go(beside)


def _copy_rights(path: Path, descriptor: int) -> None:
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):  # another owner's file stays readable through its mode
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def commit(beside: Path, path: Path) -> None:
    """Put a staged file in the place of `path` and make the change durable. Raises OSError, the staged file is gone."""
    try:
        os.replace(beside, path)
    except BaseException:
        unstage(beside)
        raise
    let_go(beside)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder; the content is synced
            os.fsync(folder)
    finally:
        os.close(folder)


def replace_content(path: Path, data: bytes) -> None:
    """Stages and commit in one go, following links. Raises OSError, and leaves the old content then."""
    target = Path(os.path.realpath(path))
    commit(stage(target, data), target)


def replace_folder(place: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes files, by their paths in it, as the folder `place`, in place of what is there: whole or not at all.

    The folder around it exists. Raises OSError.
    """
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", dir=place.parent))
    try:
        new, old = beside / "new", beside / "old"
        for name, content in files:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            with (new / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # a new folder replaces nothing
            place.rename(old)
        try:
            new.rename(place)
        except OSError:
            with suppress(OSError):  # the earlier one, where there was one, comes back
                old.rename(place)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


_TREES = ("analyses", "backlogs", "daemon", "edits", "replies", "reports", "sidecars")
"""Where files of ours lie. The rest is guarded by the folder's own mode: suites see the modes of worktrees and
environments, and commands read mirrors."""


def private(path: str, flags: int) -> int:
    """Returns an `opener` for `open`: a file that it creates is its owner's alone."""
    return os.open(path, flags, 0o600)


def create_private(database: str | None) -> None:
    """Makes the file of an SQLite database, if there is none, before anything has it open. Blocks.

    SQLite would give it what the umask leaves; files beside it (`-wal`, `-shm`) get the modes of this one. A file that
    is there is not opened: closing it would take this process's locks on it away, and with them the log that others
    write to (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    if database:
        with suppress(OSError):  # it is there; or SQLite itself tells why it cannot be opened
            os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


_OURS = frozenset(
    {".gitignore", "engine.sqlite", "events.sqlite", "mask.key", "sprints", "daemon", "sidecars", "analyses", "replies"}
)
_NOBODYS = frozenset({"lost+found"})


def narrow(home: Path) -> str | None:
    """Closes the state folder and its files to others; the warning to show when something was open, else None.

    Raises ConfigError when the folder cannot be closed, or when it is open and holds what others put there.
    """
    if not home.stat().st_mode & 0o077:
        opened = [path.name for path in home.iterdir() if _is_narrowed(path)]
        return f"{', '.join(opened)} in {home} could be opened by other users; now only by you" if opened else None
    mode = stat.S_IMODE(home.stat().st_mode)
    names = {path.name for path in home.iterdir()} - _NOBODYS
    if names and not names & _OURS:
        raise ConfigError(
            f"{home} is no state folder, and not empty: other users may need what lies there, so it is not closed to "
            "them; name an empty or a new folder with ORCHESTRATOR_HOME"
        )
    with suppress(OSError):
        home.chmod(mode & ~0o077)
    if home.stat().st_mode & 0o077:
        raise ConfigError(
            f"the state folder {home} is open to other users (mode {mode:04o}), and its mode cannot be changed: "
            "name a folder of your own with ORCHESTRATOR_HOME"
        )
    # After the folder, so that no other process can replace a file.
    for path in _files(home):
        _is_narrowed(path)
    return f"the state folder {home} was open to other users (mode {mode:04o}); now only to you"


def _files(home: Path) -> Iterator[Path]:
    yield from home.iterdir()
    yield from (home / "sprints").glob("*/*")
    for tree in _TREES:
        for folder, _, names in os.walk(home / tree):
            yield from (Path(folder, name) for name in names)


def _is_narrowed(path: Path) -> bool:
    """Returns whether it was a file that others could open, and is no more."""
    with suppress(OSError):  # gone meanwhile, or another user's: the folder is closed
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
            path.chmod(stat.S_IMODE(found.st_mode) & ~0o077)
            return True
    return False
