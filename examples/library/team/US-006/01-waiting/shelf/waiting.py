"""Waiting lists: who gets a book next."""

from datetime import date

from shelf.books import Books
from shelf.errors import ShelfError
from shelf.loans import Loans
from shelf.members import Member, Members
from shelf.storage import Database

TABLE = """
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    book INTEGER NOT NULL REFERENCES books (number),
    member INTEGER NOT NULL REFERENCES members (number),
    since TEXT NOT NULL,
    UNIQUE (book, member)
)
"""


class Waiting:
    """The waiting lists of one library file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = Books(database)
        self._members = Members(database)
        self._loans = Loans(database)
        database.ensure(TABLE)

    def reserve(self, book_number: int, card: str, today: date) -> int:
        """Put a member at the end of a book's list; returns the place, 1 for the first.

        Raises ShelfError when the book can simply be taken, or the member has it or waits for it already.
        """
        with self._database.transaction():
            book, member = self._books.get(book_number), self._members.get(card)
            line, loan = self.line(book_number), self._loans.of_book(book_number)
            if member in line:
                raise ShelfError(f"{member} waits for {book.title} already")
            if loan is not None and loan.member == member:
                raise ShelfError(f"{member} has {book.title} already")
            if loan is None and not line:
                raise ShelfError(f"{book.title} is on the shelf and can be taken now")
            sql = "INSERT INTO waiting (book, member, since) VALUES (?, ?, ?)"
            self._database.store(sql, book.number, member.number, today.isoformat())
        return len(line) + 1

    def line(self, book_number: int) -> list[Member]:
        """Who waits for a book, in the order they asked."""
        rows = self._database.rows("SELECT member FROM waiting WHERE book = ? ORDER BY number", book_number)
        return [self._members.get(str(row["member"])) for row in rows]

    def check_turn(self, book_number: int, card: str) -> None:
        """Raises ShelfError when the book is kept for another member."""
        line = self.line(book_number)
        if line and line[0] != self._members.get(card):
            raise ShelfError(f"{self._books.get(book_number).title} is kept for {line[0]}")

    def leave(self, book_number: int, member: Member) -> None:
        """Take a member off a book's list; nothing happens to one who is not on it."""
        self._database.store("DELETE FROM waiting WHERE book = ? AND member = ?", book_number, member.number)

    def all(self) -> dict[int, list[Member]]:
        """Book number → who waits for it, for every book that somebody waits for."""
        rows = self._database.rows("SELECT DISTINCT book FROM waiting ORDER BY book")
        return {row["book"]: self.line(row["book"]) for row in rows}
