"""Reading small files of a hostile tree: regular files inside it only, never through a link, bounded."""

import os
import stat
from pathlib import Path

MAX_BYTES = 2 * 1024 * 1024


def root_files(root: Path) -> tuple[str, ...]:
    """Names of the entries of the root folder that are no folders, sorted; empty when there is no such folder."""
    try:
        with os.scandir(root) as entries:
            return tuple(sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)))
    except OSError:
        return ()


def read_text(root: Path, path: str, most: int = MAX_BYTES) -> str | None:
    """UTF-8 text of `path` below `root`, or None: absent, a link on the way, no regular file, too large, no text."""
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        *parents, name = path.split("/")
        if ".." in parents:
            return None
        for part in parents:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        # O_NONBLOCK: opening a named pipe would wait for ever.
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(most + 1)
        return content.decode("utf-8") if len(content) <= most else None
    except (OSError, ValueError):
        return None
    finally:
        if folder >= 0:
            os.close(folder)
