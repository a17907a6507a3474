"""One SQLite file holds the whole library."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shelf.errors import ShelfError


class Database:
    """An open library file. Use it in a `with` statement, so that it is closed again."""

    def __init__(self, path: Path) -> None:
        if not path.absolute().parent.is_dir():
            raise ShelfError(f"there is no folder {path.absolute().parent} to keep the library in")
        try:
            # No isolation level: each statement counts at once, and transaction() decides what belongs together.
            self._connection = sqlite3.connect(path, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise ShelfError(f"{path} cannot be opened: {error}") from error
        self._connection.row_factory = sqlite3.Row
        try:
            self._connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.DatabaseError as error:
            self.close()
            raise ShelfError(f"{path} is not a library file: {error}") from error
        self._connection.execute("PRAGMA foreign_keys = ON")

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; nothing can be read or stored afterwards."""
        self._connection.close()

    def ensure(self, table: str) -> None:
        """Create a table if the file does not have it yet; `table` is one CREATE TABLE IF NOT EXISTS."""
        self._connection.execute(table)

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query; columns are read by name."""
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return found

    def store(self, sql: str, *values: Any) -> int:
        """Run one INSERT, UPDATE or DELETE; returns the number of the new row after an INSERT."""
        return self._connection.execute(sql, values).lastrowid or 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything stored inside counts together, or not at all when an error gets out."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
