"""The people who may borrow, each with a card."""

import re
import sqlite3
from dataclasses import dataclass

from shelf import addresses
from shelf.errors import ShelfError
from shelf.storage import Database

TABLE = """
CREATE TABLE IF NOT EXISTS members (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE
)
"""
_CARD = re.compile(r"(?:M-)?0*([1-9][0-9]{0,8})", re.IGNORECASE)


@dataclass(frozen=True)
class Member:
    """One person with a card."""

    number: int
    name: str
    email: str

    @property
    def card(self) -> str:
        """The number printed on the card, such as M-0001."""
        return f"M-{self.number:04}"

    def __str__(self) -> str:
        return f"{self.name} ({self.card})"


class Members:
    """The members of one library file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.ensure(TABLE)

    def join(self, name: str, email: str) -> Member:
        """Give a person a card. Raises ShelfError for a blank name and for an address that is none or is taken."""
        name, email = " ".join(name.split()), addresses.checked(email.strip())
        if not name:
            raise ShelfError("a member needs a name")
        holder = self._database.row("SELECT * FROM members WHERE email = ?", email)
        if holder is not None:
            raise ShelfError(f"{email} belongs to {_member(holder)} already")
        return Member(self._database.store("INSERT INTO members (name, email) VALUES (?, ?)", name, email), name, email)

    def get(self, card: str) -> Member:
        """The member with this card; M-0007, m-7 and 7 all name the same one. Raises ShelfError when there is none."""
        number = _CARD.fullmatch(card.strip())
        row = self._database.row("SELECT * FROM members WHERE number = ?", int(number[1])) if number else None
        if row is None:
            raise ShelfError(f"nobody has the card {card}")
        return _member(row)

    def all(self) -> list[Member]:
        """Every member, by name, then card."""
        rows = self._database.rows("SELECT * FROM members ORDER BY name COLLATE NOCASE, number")
        return [_member(row) for row in rows]


def _member(row: sqlite3.Row) -> Member:
    return Member(row["number"], row["name"], row["email"])
