"""A folder looked at from outside, for `init`: which files belong to the project, and the texts of some. Reads only."""

import asyncio
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from orchestrator.adapters.git import run_git
from orchestrator.errors import ConfigError, WorkspaceError

MAX_FILES = 50_000
MAX_BYTES = 400_000
_OURS = ".orchestrator/"
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dist", "build"})


async def project_files(folder: Path) -> tuple[str, ...]:
    """Paths of the project's files, relative, sorted: git's where it is a repository, else all that are not hidden.

    At most MAX_FILES. Raises ConfigError when the folder cannot be read.
    """
    if await asyncio.to_thread((folder / ".git").exists):
        asked = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            said = await run_git(asked, cwd=folder, settings=("safe.directory=*",))
        except WorkspaceError as error:
            raise ConfigError(f"the repository {folder} cannot be read: {error.message}") from error
        names = said.stdout.decode("utf-8", "surrogateescape").split("\0")
        return tuple(sorted({name for name in names if name and not name.startswith(_OURS)})[:MAX_FILES])
    return await asyncio.to_thread(_walked, folder)


def _walked(folder: Path) -> tuple[str, ...]:
    def failed(error: OSError) -> None:
        if error.filename == str(folder):
            raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error

    found: list[str] = []
    for place, folders, names in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        relative = Path(place).relative_to(folder)
        found += [(relative / name).as_posix() for name in names if not name.startswith(".")]
        if len(found) >= MAX_FILES:
            break
    return tuple(sorted(found)[:MAX_FILES])


def read_texts(folder: Path, paths: Iterable[str], limit: int = MAX_BYTES) -> dict[str, str]:
    """Path → text of those `paths` that are regular files, UTF-8 and of at most `limit` bytes; no link is followed."""
    texts: dict[str, str] = {}
    for path in paths:
        try:
            status = (folder / path).lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= limit and not _below_link(folder, path):
                texts[path] = (folder / path).read_bytes().decode("utf-8")
        except (OSError, ValueError):
            continue
    return texts


def _below_link(folder: Path, path: str) -> bool:
    parts = path.split("/")
    return any((folder / "/".join(parts[:end])).is_symlink() for end in range(1, len(parts)))


def those_there(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    """Those of `paths` at which something stands that is no folder; a link counts, wherever it leads."""
    return frozenset(
        path
        for path in paths
        if os.path.lexists(folder / path) and ((folder / path).is_symlink() or not (folder / path).is_dir())
    )


def write_new(files: dict[Path, str]) -> None:
    """Write files that are not there yet: all or none. Raises ConfigError naming the one that is there."""
    written: list[Path] = []
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8", newline="") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        why = "is there already" if isinstance(error, FileExistsError) else f"cannot be written: {error.strerror}"
        raise ConfigError(f"{path} {why}; nothing was written") from error
