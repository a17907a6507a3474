"""Removing what does not belong into a tree: constant descriptors, no recursion, no link followed.

A command may have left trees thousands of folders deep, folders without permissions, links to the outside, special
files. Everything here blocks: call it from a thread.
"""

import os
import secrets
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType

from orchestrator.adapters.safe_files import open_folder, open_root
from orchestrator.errors import WorkspaceError

_GITLINK = 0o160000


class Trash:
    """A folder that takes what is thrown away; leaving the context removes it all. Same file system as its victims."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / secrets.token_hex(6)
        self._names: list[str] = []
        self._fd = -1

    def __enter__(self) -> "Trash":
        self._folder.mkdir(parents=True)
        self._fd = open_root(self._folder)
        return self

    def take(self, parent_fd: int, name: str) -> None:
        """Remove the entry `name` of an open folder, whatever it is. Raises WorkspaceError."""
        try:
            self._take(parent_fd, name)
        except OSError as error:
            raise WorkspaceError(f"removing {name}: {error.strerror}") from error

    def _take(self, parent_fd: int, name: str) -> None:
        found = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=parent_fd)
            return
        make_usable(parent_fd, name, found)
        unique = str(len(self._names))
        os.rename(name, unique, src_dir_fd=parent_fd, dst_dir_fd=self._fd)
        self._names.append(unique)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Every folder is emptied at depth one: folders in it are first moved up, beside it."""
        try:
            done = 0
            while done < len(self._names):
                name = self._names[done]
                fd = open_folder(self._fd, name)
                try:
                    for entry in os.listdir(fd):
                        self.take(fd, entry)
                finally:
                    os.close(fd)
                os.rmdir(name, dir_fd=self._fd)
                done += 1
        except OSError as problem:
            raise WorkspaceError(f"emptying the trash: {problem.strerror}") from problem
        finally:
            os.close(self._fd)
        self._folder.rmdir()


def make_usable(parent_fd: int, name: str, found: os.stat_result) -> None:
    """Give the owner all rights on a folder that lacks some. `found` has shown that it is a folder and no link."""
    if found.st_mode & 0o700 != 0o700:
        os.chmod(name, stat.S_IMODE(found.st_mode) | 0o700, dir_fd=parent_fd)


def discard(path: Path, trash: Path) -> None:
    """Remove `path`, whatever it is; absent is fine. Raises WorkspaceError."""
    if not os.path.lexists(path):
        return
    parent = open_root(path.parent)
    try:
        with Trash(trash) as bin_:
            bin_.take(parent, path.name)
    finally:
        os.close(parent)


def prune(folder: Path, kept: Collection[str]) -> None:
    """Remove what a killed run left in a folder of worktrees: those that are not in `kept`, their state, its trash."""
    trash = folder / ".trash"
    for place in (folder, folder / ".state", trash):
        for entry in list(place.iterdir()) if place.is_dir() else ():
            if place == trash or entry.name not in kept:
                discard(entry, trash)


def sweep(root_fd: int, tracked: Mapping[str, int], trash: Path) -> None:
    """Remove everything but the `tracked` paths (path → git mode), and `.git` at the root, which is the caller's.

    Tracked paths of another kind than their mode says, or with a second name (hard link), are removed too: git then
    writes them afresh. Tracked folders become usable by us. Raises WorkspaceError.
    """
    wanted = _by_folder(tracked)
    pending = [""]
    with Trash(trash) as bin_:
        while pending:
            folder = pending.pop()
            try:
                fd = open_folder(root_fd, folder)
                try:
                    pending += _sweep_folder(fd, folder, wanted[folder], bin_)
                finally:
                    os.close(fd)
            except OSError as error:
                raise WorkspaceError(f"cleaning {folder or 'the tree'}: {error.strerror}") from error


def _by_folder(tracked: Mapping[str, int]) -> dict[str, dict[str, int]]:
    wanted: dict[str, dict[str, int]] = {"": {}}
    for path, mode in tracked.items():
        folder, _, name = path.rpartition("/")
        wanted.setdefault(folder, {})[name] = stat.S_IFDIR if mode == _GITLINK else mode
        if mode == _GITLINK:
            wanted.setdefault(path, {})
        while folder:
            above, _, name = folder.rpartition("/")
            wanted.setdefault(above, {})[name] = stat.S_IFDIR
            folder = above
    return wanted


def _sweep_folder(fd: int, folder: str, wanted: Mapping[str, int], bin_: Trash) -> list[str]:
    below = []
    for name in os.listdir(fd):
        if name == ".git" and not folder:
            continue
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not _fits(wanted.get(name), found):
            bin_.take(fd, name)
        elif stat.S_ISDIR(found.st_mode):
            make_usable(fd, name, found)
            below.append(f"{folder}/{name}" if folder else name)
    return below


def _fits(mode: int | None, found: os.stat_result) -> bool:
    if mode is None or stat.S_IFMT(mode) != stat.S_IFMT(found.st_mode):
        return False
    return stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
