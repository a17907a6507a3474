"""The catalogue: every book of the library, each with a number of its own."""

import sqlite3
from dataclasses import dataclass

from shelf import isbn as isbns
from shelf.errors import ShelfError
from shelf.storage import Database

TABLE = """
CREATE TABLE IF NOT EXISTS books (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    author TEXT NOT NULL,
    isbn TEXT NOT NULL DEFAULT ''
)
"""


@dataclass(frozen=True)
class Book:
    """One copy on the shelf; two copies of a title are two books."""

    number: int
    title: str
    author: str
    isbn: str = ""

    def __str__(self) -> str:
        return f"{self.title} by {self.author}"


class Books:
    """The catalogue of one library file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.ensure(TABLE)

    def add(self, title: str, author: str, isbn: str = "") -> Book:
        """Take a book in; returns it with its number. Raises ShelfError for a blank title or author or a wrong ISBN."""
        title, author = " ".join(title.split()), " ".join(author.split())
        if not title:
            raise ShelfError("a book needs a title")
        if not author:
            raise ShelfError("a book needs an author")
        isbn = isbns.normalise(isbn) if isbn.strip() else ""
        number = self._database.store("INSERT INTO books (title, author, isbn) VALUES (?, ?, ?)", title, author, isbn)
        return Book(number, title, author, isbn)

    def get(self, number: int) -> Book:
        """The book with this number. Raises ShelfError when there is none."""
        row = self._database.row("SELECT * FROM books WHERE number = ?", number)
        if row is None:
            raise ShelfError(f"there is no book {number}")
        return _book(row)

    def all(self) -> list[Book]:
        """Every book, by author, then title, then number."""
        order = "author COLLATE NOCASE, title COLLATE NOCASE, number"
        return [_book(row) for row in self._database.rows(f"SELECT * FROM books ORDER BY {order}")]


def _book(row: sqlite3.Row) -> Book:
    return Book(row["number"], row["title"], row["author"], row["isbn"])
