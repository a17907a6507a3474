"""A folder with the files of a commit, byte for byte, which can be restored after any change."""

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from orchestrator.core.errors import WorkspaceError
from orchestrator.files.safe_files import Trash, discard, make_usable, open_root, sweep
from orchestrator.git.commits import tree_entries
from orchestrator.git.mirror import Mirror

_SCRATCH_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[gc]\n\tauto = 0\n"


class Checkout:
    """The folder `parent/name`, written from the mirror.

    Our index is outside the folder, out of reach of commands. The folder's `.git` file points to a small separate
    repository that borrows the mirror's objects: a command may inspect it or even commit in it without any effect on
    the mirror. Every `set_to` makes it again.
    """

    def __init__(self, mirror: Mirror, parent: Path, name: str) -> None:
        self.root = parent / name
        self._mirror = mirror
        self._state = parent / ".state" / name
        self._trash = parent / ".trash"

    async def set_to(self, commit: str) -> None:
        """Makes the folder equal to the commit's tree: restores missing files, deletes all others.

        The private repository's HEAD is then `commit`. Raises WorkspaceError.
        """
        tracked = {path: entry.mode for path, entry in (await tree_entries(self._mirror, commit)).items()}
        await asyncio.to_thread(self._clear, tracked)
        await self._mirror.git("read-tree", "--reset", "-u", commit, index=self._state / "index", work_tree=self.root)
        await asyncio.to_thread(self._link, commit)

    async def remove(self) -> None:
        """Removes the folder and everything kept for it, if it exists."""
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        for path in (self.root, self._state):
            discard(path, self._trash)

    async def ignored(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Returns those of `paths` that the folder's .gitignore files ignore and the commit does not have.

        A path behind a link or in a submodule counts as not ignored.
        """
        above, index = os.fsencode(self.root) + b"/", self._state / "index"  # git runs in another folder
        # The first option is required by check-ignore; no path here has magic.
        argv = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin", "--verbose", "--non-matching")
        found, rest = list[str](), [*paths]
        while rest:
            stdin = b"".join(above + os.fsencode(path) + b"\0" for path in rest)
            told = await self._mirror.git(*argv, stdin=stdin, index=index, work_tree=self.root, ok=(0, 1, 128))
            patterns = told.stdout.split(b"\0")[2::4]  # of file, line, pattern and path
            found += [path for path, by in zip(rest, patterns, strict=False) if by and not by.startswith(b"!")]
            rest = rest[len(patterns) :]
            # git ends at the first path behind a link or in a submodule; its neighbours are behind it as well.
            rest = [path for path in rest[1:] if os.path.dirname(path) != os.path.dirname(rest[0])]
        return tuple(found)

    def _clear(self, tracked: dict[str, int]) -> None:
        self._state.mkdir(parents=True, exist_ok=True)
        (self._state / "index.lock").unlink(missing_ok=True)
        parent = open_root(self.root.parent)
        try:
            self._ensure_root(parent)
        except OSError as error:
            raise WorkspaceError(f"making the folder {self.root.name}: {error.strerror}") from error
        finally:
            os.close(parent)
        root = open_root(self.root)
        try:
            sweep(root, tracked, self._trash)
        finally:
            os.close(root)

    def _ensure_root(self, parent: int) -> None:
        name = self.root.name
        if os.path.lexists(self.root):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                make_usable(parent, name, found)
                return
            os.unlink(name, dir_fd=parent)
        os.mkdir(name, dir_fd=parent)

    def _link(self, commit: str) -> None:
        """Recreates the private repository, and the `.git` file that points to it."""
        place = self._state / "git"
        discard(place, self._trash)
        for folder in ("objects/info", "refs/heads"):
            (place / folder).mkdir(parents=True)
        texts = {
            "HEAD": f"{commit}\n",
            "config": _SCRATCH_CONFIG,
            "objects/info/alternates": f"{self._mirror.path / 'objects'}\n",
        }
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
        for name, origin in (("index", self._state / "index"), ("shallow", self._mirror.path / "shallow")):
            if origin.exists():
                (place / name).write_bytes(origin.read_bytes())
        root = open_root(self.root)
        try:
            if os.path.lexists(self.root / ".git"):
                with Trash(self._trash) as trash:
                    trash.take(root, ".git")
            fd = os.open(".git", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=root)
            with os.fdopen(fd, "w", encoding="utf-8") as stream:
                stream.write(f"gitdir: {place}\n")
        finally:
            os.close(root)
