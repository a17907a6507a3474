"""Files that commands make in a tree beside those of the repository: kept elsewhere, and put back. Blocks."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.safe_files import open_folder, open_root

_SKIPPED = ("node_modules", "__pycache__", "build", "dist", ".egg-info")


def paths_in(root: Path) -> set[str]:
    """All files, folders and links below `root`, without what is git's own."""
    found = set[str]()
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        inner[:] = [name for name in inner if place or name != ".git"]
        found.update(place + name for name in (*inner, *names) if place or name != ".git")
    return found


def take_new(root: Path, before: Collection[str], kept: Path) -> None:
    """Move what is in `root` and was not `before` to its path below `kept`, on the same file system."""
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        for name in (*inner, *names):
            if place + name not in before and (place or name != ".git"):
                (kept / place).mkdir(parents=True, exist_ok=True)
                _make_movable(root / place / name)
                os.rename(root / place / name, kept / place / name)
        inner[:] = [name for name in inner if place + name in before]


def _make_movable(path: Path) -> None:
    """A folder that its owner may not write, such as Go's of modules, is not moved to another parent."""
    told = path.lstat()
    if stat.S_ISDIR(told.st_mode):
        path.chmod(stat.S_IMODE(told.st_mode) | stat.S_IRWXU)


def put_back(kept: Path, root: Path, *, folders: bool = True) -> None:
    """Copy what is kept into `root`, but for what is there already; nothing is written through a link of the tree.

    Without `folders`, none is made for it.
    """
    root_fd = open_root(root)
    try:
        for folder, inner, names in os.walk(kept):
            place = _prefix(folder, kept)
            links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
            try:
                fd = open_folder(root_fd, place.rstrip("/"), made=[] if folders else None)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise
                continue  # no folder stands there, or something else does
            try:
                for name in (*links, *names):
                    _copy(os.path.join(folder, name), name, fd)
            finally:
                os.close(fd)
    finally:
        os.close(root_fd)


def _copy(source: str, name: str, folder: int) -> None:
    """A file is renamed when it is whole: half of one that a kill left there would be taken for what is there."""
    told = os.lstat(source)
    if stat.S_ISLNK(told.st_mode):
        with suppress(FileExistsError):
            os.symlink(os.readlink(source), name, dir_fd=folder)
    elif stat.S_ISREG(told.st_mode) and not _is_there(name, folder):
        flags, half = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, f".{secrets.token_hex(6)}"
        fd = os.open(half, flags, told.st_mode & 0o777 | 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as target, open(source, "rb") as content:
            shutil.copyfileobj(content, target)
            target.flush()
            # Its own time: make must not take it to be newer than the source that a story has changed.
            os.utime(fd, ns=(told.st_atime_ns, told.st_mtime_ns))
        os.rename(half, name, src_dir_fd=folder, dst_dir_fd=folder)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def file_states(root: Path) -> dict[str, tuple[int, ...]]:
    """Paths of a project's files, each with what changes with its content; neither hidden ones nor those of packages,
    caches and folders of builds."""
    found: dict[str, tuple[int, ...]] = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".") and not name.endswith(_SKIPPED)]
        for name in names:
            with suppress(OSError):
                state = os.lstat(os.path.join(folder, name))
                if not name.startswith("."):
                    found[_prefix(folder, root) + name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def _prefix(folder: str, root: Path) -> str:
    """Of the paths in `folder`: "" for the root's own."""
    place = os.path.relpath(folder, root)
    return "" if place == "." else f"{place}/"
