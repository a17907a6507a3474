"""Who has which book, and until when."""

import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta

from shelf.books import Book, Books
from shelf.errors import ShelfError
from shelf.members import Member, Members
from shelf.storage import Database

LOAN_DAYS = 21
MOST_BOOKS = 5
TABLE = """
CREATE TABLE IF NOT EXISTS loans (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    book INTEGER NOT NULL REFERENCES books (number),
    member INTEGER NOT NULL REFERENCES members (number),
    lent TEXT NOT NULL,
    due TEXT NOT NULL,
    returned TEXT
)
"""


@dataclass(frozen=True)
class Loan:
    """One book with one member."""

    number: int
    book: Book
    member: Member
    lent: date
    due: date

    def days_late(self, today: date) -> int:
        """Whole days since the day it was due; 0 when it is not late."""
        return max(0, (today - self.due).days)


class Loans:
    """The loans of one library file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = Books(database)
        self._members = Members(database)
        database.ensure(TABLE)

    def lend(self, book_number: int, card: str, today: date) -> Loan:
        """Lend a book from today. Raises ShelfError when it is out or the member has the most books allowed."""
        with self._database.transaction():
            book, member = self._books.get(book_number), self._members.get(card)
            out = self.of_book(book_number)
            if out is not None:
                raise ShelfError(f"{book.title} is out with {out.member} until {out.due}")
            if len(self.of_member(member)) >= MOST_BOOKS:
                raise ShelfError(f"{member} has {MOST_BOOKS} books already; one has to come back first")
            due = today + timedelta(days=LOAN_DAYS)
            sql = "INSERT INTO loans (book, member, lent, due) VALUES (?, ?, ?, ?)"
            number = self._database.store(sql, book.number, member.number, today.isoformat(), due.isoformat())
        return Loan(number, book, member, today, due)

    def give_back(self, book_number: int, today: date) -> Loan:
        """Take a book back; returns the loan that ended. Raises ShelfError when the book is not out."""
        with self._database.transaction():
            book, loan = self._books.get(book_number), self.of_book(book_number)
            if loan is None:
                raise ShelfError(f"{book.title} is not out")
            self._database.store("UPDATE loans SET returned = ? WHERE number = ?", today.isoformat(), loan.number)
        return loan

    def of_book(self, book_number: int) -> Loan | None:
        """The loan that keeps a book out, or None when it is on the shelf."""
        return next((loan for loan in self._open("AND book = ?", book_number)), None)

    def of_member(self, member: Member) -> list[Loan]:
        """What a member has at the moment."""
        return self._open("AND member = ?", member.number)

    def all_open(self) -> list[Loan]:
        """Everything that is out, first due first."""
        return self._open("")

    def _open(self, condition: str, *values: int) -> list[Loan]:
        sql = f"SELECT * FROM loans WHERE returned IS NULL {condition} ORDER BY due, number"
        return [self._loan(row) for row in self._database.rows(sql, *values)]

    def _loan(self, row: sqlite3.Row) -> Loan:
        return Loan(
            number=row["number"],
            book=self._books.get(row["book"]),
            member=self._members.get(str(row["member"])),
            lent=date.fromisoformat(row["lent"]),
            due=date.fromisoformat(row["due"]),
        )
