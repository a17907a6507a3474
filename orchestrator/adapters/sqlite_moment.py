"""Several SQLite files as they are at one moment, copied at leisure while others go on writing."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from orchestrator.errors import ConfigError


class SqliteMoment:
    """The files by name; those that are not there yet are left out. Blocks. Raises ConfigError
    for what is no database, sqlite3.Error when there is no room for a copy."""

    def __init__(self, databases: Mapping[str, Path]) -> None:
        self._databases = databases
        self._open: dict[str, sqlite3.Connection] = {}

    def begin(self) -> None:
        """From now on this moment is what is seen, in the order of the names: of a later one never less."""
        for name, path in self._databases.items():
            if path.exists():
                self._open[name] = _held(path)

    def end(self) -> None:
        """Let go of it."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def copy(self, folder: Path) -> list[Path]:
        """Write each file below `folder` under its name."""
        made = []
        for name, connection in self._open.items():
            target = folder / name
            with closing(sqlite3.connect(target)) as copied:
                connection.backup(copied)
            made.append(target)
        return made

    def pairs(self, name: str, query: str) -> dict[str, int]:
        """Rows of two columns that a query of one of the files gives; none when it has no such table."""
        try:
            return dict(self._open[name].execute(query).fetchall()) if name in self._open else {}
        except sqlite3.OperationalError:
            return {}


def _held(path: Path) -> sqlite3.Connection:
    """A connection with a transaction that reads."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return connection
