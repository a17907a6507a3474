"""The library in numbers."""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from shelf.books import Books
from shelf.fines import fine_cents, money
from shelf.loans import Loans
from shelf.members import Members
from shelf.storage import Database
from shelf.waiting import Waiting

FAVOURITES = 3


@dataclass(frozen=True)
class Report:
    """One day's numbers."""

    day: str
    books: int
    members: int
    out: int
    late: int
    waiting: int
    open_fines: str
    """What all late books cost if they came back on this day, such as 1.20."""
    favourites: list[str]
    """The titles that went out most often, at most three."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def as_lines(self) -> list[str]:
        """The same for people, one fact a line."""
        lines = [
            f"The library on {self.day}",
            f"  {self.books} books, {self.out} out, {self.late} late ({self.open_fines} to pay)",
            f"  {self.members} members, {self.waiting} waiting",
        ]
        return lines + [f"  {place}. {title}" for place, title in enumerate(self.favourites, start=1)]


def build(database: Database, today: date) -> Report:
    """Count everything as of today."""
    loans = Loans(database)
    out = loans.all_open()
    late = [loan.days_late(today) for loan in out if loan.days_late(today)]
    return Report(
        day=today.isoformat(),
        books=len(Books(database).all()),
        members=len(Members(database).all()),
        out=len(out),
        late=len(late),
        waiting=sum(len(line) for line in Waiting(database).all().values()),
        open_fines=money(sum(fine_cents(days) for days in late)),
        favourites=[book.title for book, _ in loans.most_lent(FAVOURITES)],
    )
