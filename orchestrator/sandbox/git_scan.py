"""What a command did to git in its tree: looked at after each, before anything of ours touches the tree again.

Our own git never reads a tree's `.git`, and `sweep` takes away what does not belong there; this is for telling that
somebody tried. Everything here blocks: call it from a thread."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import is_git_name
from orchestrator.files.safe_files import open_folder, open_root

MAX_ENTRIES = 400_000
"""Files and folders that a tree may have: what no project reaches is there to wear us out."""
MAX_DEPTH = 100
_LARGEST = 4096
"""Bytes of a `.git` file beyond which it is none of ours."""


@dataclass(frozen=True)
class GitMark:
    """The `.git` file of a tree as it was before a command; "" where the tree is no worktree of ours."""

    root: Path
    text: bytes

    @classmethod
    def of(cls, root: Path) -> "GitMark":
        """Of the tree at `root`, as it is now."""
        return cls(root, _git_file(root) or b"")

    def broken(self) -> str:
        """Why the tree is no longer what it was, for people; "" when nothing is wrong, or it is no worktree of ours."""
        if not self.text:
            return ""
        if _git_file(self.root) != self.text:
            return "`.git` of the tree was replaced or changed"
        try:
            return self._nested()
        except (OSError, WorkspaceError) as error:
            return f"the tree could not be looked through: {error}"

    def _nested(self) -> str:
        root, seen, pending = open_root(self.root), 0, [""]
        try:
            while pending:
                folder = pending.pop()
                names, below = _entries(root, folder)
                seen += len(names)
                if found := next((name for name in names if is_git_name(name) and (folder or name != ".git")), None):
                    return f"a repository or a link to one was left at `{_path(folder, found)}`"
                pending += [_path(folder, name) for name in below]
                if seen > MAX_ENTRIES or folder.count("/") > MAX_DEPTH:
                    return f"more than {MAX_ENTRIES} files, or more than {MAX_DEPTH} folders in each other, were left"
        finally:
            os.close(root)
        return ""


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _entries(root: int, folder: str) -> tuple[list[str], list[str]]:
    """All names in a folder, and those that are folders themselves."""
    fd = open_folder(root, folder)
    try:
        with os.scandir(fd) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(fd)
    return [name for name, _ in found], [name for name, is_folder in found if is_folder]


def _git_file(root: Path) -> bytes | None:
    """The bytes of the regular file `.git`; None for anything else."""
    try:
        fd = os.open(root / ".git", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_size > _LARGEST:
            return None
        return os.read(fd, _LARGEST + 1)
    finally:
        os.close(fd)
