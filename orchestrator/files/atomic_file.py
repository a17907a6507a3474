"""Files that a crash leaves whole, old or new, and temporary ones that are held while they are made."""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # just removed
        return False


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
