"""The SQLite file of the event log, read without SQLAlchemy, whose import takes longer than what most commands do."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.core.errors import ConfigError, EventLogAway

SQLITE = "sqlite:///"
SQLITE_AWAY = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
})  # fmt: skip
"""Errors that pass by themselves."""
Rows = Sequence[Sequence[Any]]


def sqlite_url(path: Path) -> str:
    """Returns the database URL of a SQLite file."""
    return f"{SQLITE}{path}"


class EventFile:
    """A reader of the file; also for threads, one at a time. Raises ConfigError, EventLogAway."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Closes the file; the next look opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def has_table(self) -> bool:
        """Returns whether there is a log in it."""
        return bool(self.find("SELECT 1 FROM sqlite_master WHERE name = 'orchestrator_events'", {}))

    def find(self, query: str, given: dict[str, Any]) -> Rows:
        """Returns the rows that a query finds."""
        try:
            with self._lock:
                if self._connection is None:
                    self._connection = sqlite3.connect(self._path, timeout=30, check_same_thread=False)
                return self._connection.execute(query, given).fetchall()
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            kind = EventLogAway if code in SQLITE_AWAY else ConfigError
            raise kind(f"the event log cannot be used: {error}; see DATABASE_URL or the state folder") from error
