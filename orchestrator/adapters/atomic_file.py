"""Replace a file's content so that a crash leaves either the old file whole or the new one."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from orchestrator.adapters.leftovers import leftovers, named

_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def is_read_only(path: Path) -> bool:
    """Whether `path` must not be replaced: its mode or its folder's has no write bit, or we may not write there.

    The mode counts even where it would not hinder us (an administrator's process): who removed the bits meant it.
    """
    target = Path(os.path.realpath(path))
    for place in (target, target.parent):
        with contextlib.suppress(FileNotFoundError):
            if not place.stat().st_mode & _ANY_WRITE or not os.access(place, os.W_OK):
                return True
    return False


def stage(path: Path, data: bytes) -> Path:
    """Write `data` to a new file beside `path`, synced, with the mode and owner of `path` if it exists.

    What killed processes left there of the same is removed. Raises OSError; nothing is left behind then.
    """
    prefix = f".{path.name[:100]}."
    for left in leftovers(path.parent, prefix):
        with contextlib.suppress(OSError):
            left.unlink()
    handle, name = tempfile.mkstemp(prefix=named(prefix), suffix=".tmp", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            _copy_rights(path, file.fileno())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


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
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder; the content is synced
            os.fsync(folder)
    finally:
        os.close(folder)


def replace_content(path: Path, data: bytes) -> None:
    """Stage and commit in one go, following links. Raises OSError, and leaves the old content then."""
    target = Path(os.path.realpath(path))
    commit(stage(target, data), target)
