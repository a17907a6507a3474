"""Giving room in a SQLite file back to the disk, while others read and write it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

_INCREMENTAL = 2
_PAGES = 500
"""Pages that are given back at a time: nobody waits for more than that."""
_WORTH = 8
"""Files are shrunk from this part of free pages on (one in eight): new rows take the free ones first anyway."""


def shrink(path: Path, *, always: bool = False) -> int:
    """Bytes that the file lost; 0 when nothing is to be had, or somebody held it for too long. Blocks.

    The first time the file is written anew, with a note that free pages can be given back one by one; later calls do
    that in small portions.
    """
    if not path.is_file():
        return 0
    before = _size(path)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        try:
            free, pages = _number(connection, "freelist_count"), _number(connection, "page_count")
            if not free or (free * _WORTH < pages and not always):
                return 0
            if _number(connection, "auto_vacuum") == _INCREMENTAL:
                _give_back(connection, free)
            else:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError:
            return 0
    return max(0, before - _size(path))


def _give_back(connection: sqlite3.Connection, free: int) -> None:
    for _ in range(0, free, _PAGES):
        # As a script: a single statement would end after its first page.
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")


def _number(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _size(path: Path) -> int:
    beside = path.with_name(f"{path.name}-wal")
    return os.path.getsize(path) + (os.path.getsize(beside) if beside.exists() else 0)
