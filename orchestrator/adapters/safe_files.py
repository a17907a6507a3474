"""Writing below a directory descriptor, never through a link: the tree may be full of traps.

Everything here blocks: call it from a thread. Paths are relative, with `/` between their parts.
"""

import errno
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.beneath import DIRECTORY, open_beneath, walk
from orchestrator.domain.paths import unsafe_reason
from orchestrator.errors import WorkspaceError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_root(folder: Path) -> int:
    """A descriptor of `folder`, which must be a directory and no link; the caller closes it. Raises WorkspaceError."""
    try:
        return os.open(folder, DIRECTORY)
    except OSError as error:
        raise WorkspaceError(f"opening the folder {folder.name}: {error.strerror}") from error


def open_folder(root_fd: int, folder: str, *, made: list[str] | None = None) -> int:
    """A descriptor of `folder` below the root, reached without following a link; "" is the root itself.

    With `made` missing folders are created and appended to it. Raises OSError; the caller closes the descriptor.
    """
    try:
        return open_beneath(root_fd, folder)
    except FileNotFoundError:
        if made is None:
            raise
    return walk(root_fd, folder, made=made)


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _refused(doing: str, path: str, error: OSError) -> WorkspaceError:
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EXDEV}:
        return WorkspaceError(f"{doing} {path}: a link or a file stands where a folder or a plain file belongs")
    return WorkspaceError(f"{doing} {path}: {error.strerror or error}")


def _checked(path: str) -> str:
    reason = unsafe_reason(path)
    if reason is not None:
        raise WorkspaceError(f"the path {path!r} is not safe: {reason}")
    return path


def _plain(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(f"{path} is no regular file")
    if found.st_nlink != 1:
        raise WorkspaceError(f"{path} has a second name somewhere (a hard link)")


@dataclass(slots=True)
class _Staged:
    """One file on its way: a temporary beside its target, and the old content under a second temporary name."""

    path: str
    content: bytes | None
    """None: the file is to go."""
    new: str
    old: str
    placed: bool = False
    kept: bool = False


def write_all(root_fd: int, changes: Sequence[tuple[str, bytes]], removed: Sequence[str] = ()) -> None:
    """Write all files and take those of `removed` away, or do nothing; missing folders are made, emptied ones stay, a
    later entry for the same path replaces an earlier one.

    What is removed must be there. An existing target must be a regular file with a single name; its permissions are
    kept, as far as they are no more than permissions and let us read and write it. Raises WorkspaceError for unsafe
    paths, links, folders and special files in the way, and any failure of the file system, after putting back what was
    there.
    """
    token = secrets.token_hex(6)
    wanted: dict[str, bytes | None] = {**dict(changes), **dict.fromkeys(removed)}
    staged = [
        _Staged(_checked(path), content, f".{token}-{number}.new", f".{token}-{number}.old")
        for number, (path, content) in enumerate(wanted.items())
    ]
    made: list[str] = []
    current = ""
    try:
        for item in staged:
            current = item.path
            _stage(root_fd, item, made)
        for item in staged:
            current = item.path
            _place(root_fd, item)
    except OSError as error:
        _roll_back(root_fd, staged, made)
        raise _refused("writing", current, error) from error
    except BaseException:
        _roll_back(root_fd, staged, made)
        raise
    for item in staged:
        if item.kept:
            _forget(root_fd, item, item.old)


def write_below(folder: Path, changes: Sequence[tuple[str, bytes]], removed: Sequence[str] = ()) -> None:
    """`write_all` below a folder that must be a directory and no link."""
    root = open_root(folder)
    try:
        write_all(root, changes, removed)
    finally:
        os.close(root)


def _existing(parent: int, item: _Staged) -> os.stat_result | None:
    try:
        found = os.stat(_split(item.path)[1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _plain(item.path, found)
    return found


def _stage(root_fd: int, item: _Staged, made: list[str]) -> None:
    parent = open_folder(root_fd, _split(item.path)[0], made=None if item.content is None else made)
    try:
        found = _existing(parent, item)
        if item.content is None:
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), item.path)
            return
        fd = os.open(item.new, _NEW_FILE, 0o666, dir_fd=parent)
        with os.fdopen(fd, "wb") as stream:
            if found is not None:
                os.fchmod(fd, found.st_mode & 0o777 | 0o600)
            stream.write(item.content)
    finally:
        os.close(parent)


def _place(root_fd: int, item: _Staged) -> None:
    name = _split(item.path)[1]
    parent = open_folder(root_fd, _split(item.path)[0])
    try:
        if _existing(parent, item) is not None:
            os.rename(name, item.old, src_dir_fd=parent, dst_dir_fd=parent)
            item.kept = True
        if item.content is None:
            return
        os.rename(item.new, name, src_dir_fd=parent, dst_dir_fd=parent)
        item.placed = True
    finally:
        os.close(parent)


def _forget(root_fd: int, item: _Staged, name: str) -> None:
    with suppress(OSError):
        parent = open_folder(root_fd, _split(item.path)[0])
        try:
            os.unlink(name, dir_fd=parent)
        finally:
            os.close(parent)


def _roll_back(root_fd: int, staged: Sequence[_Staged], made: Sequence[str]) -> None:
    """Undo as far as the file system lets us; the error being raised is the one that counts."""
    for item in reversed(staged):
        if item.placed:
            _forget(root_fd, item, _split(item.path)[1])
        _forget(root_fd, item, item.new)
        if item.kept:
            with suppress(OSError):
                parent = open_folder(root_fd, _split(item.path)[0])
                try:
                    os.rename(item.old, _split(item.path)[1], src_dir_fd=parent, dst_dir_fd=parent)
                finally:
                    os.close(parent)
    for folder in reversed(made):
        with suppress(OSError):
            parent = open_folder(root_fd, _split(folder)[0])
            try:
                os.rmdir(_split(folder)[1], dir_fd=parent)
            finally:
                os.close(parent)
