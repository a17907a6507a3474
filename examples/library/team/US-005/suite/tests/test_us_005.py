"""US-005: late books."""

from datetime import date
from pathlib import Path

import pytest

from shelf.books import Books
from shelf.cli import main
from shelf.fines import fine_cents, money
from shelf.loans import Loans
from shelf.members import Members
from shelf.storage import Database


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Database(tmp_path / "library.db") as database:
        Members(database).join("Ada Byron", "ada@example.org")
        Members(database).join("Mary Somerville", "mary@example.org")
        for title in ["Emma", "Persuasion", "Sanditon"]:
            Books(database).add(title, "Jane Austen")
        loans = Loans(database)
        loans.lend(2, "M-0002", date(2024, 2, 25))
        loans.lend(1, "M-0001", date(2024, 2, 20))
        loans.lend(3, "M-0001", date(2024, 3, 10))
    return tmp_path / "library.db"


def test_grace_costs_nothing() -> None:
    """A book that is up to three days late costs nothing"""
    assert [fine_cents(days) for days in range(4)] == [0, 0, 0, 0]


def test_every_late_day_counts_after_the_grace() -> None:
    """From the fourth late day on every late day costs 10 cents, those of the grace too"""
    assert fine_cents(4) == 40
    assert fine_cents(10) == 100


def test_fine_has_an_end() -> None:
    """A book never costs more than 5.00"""
    assert [money(fine_cents(days)) for days in (50, 60, 4000)] == ["5.00", "5.00", "5.00"]


def test_overdue_list_starts_with_the_latest(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list of late books starts with the latest and names days, fine, title, member and address"""
    main(["--file", str(file), "--today", "2024-03-20", "overdue"])
    assert capsys.readouterr().out.splitlines() == [
        "   8 days  0.80  Emma: Ada Byron <ada@example.org>",
        "   3 days  0.00  Persuasion: Mary Somerville <mary@example.org>",
    ]
    main(["--file", str(file), "--today", "2024-03-12", "overdue"])
    assert capsys.readouterr().out == "Nothing is late.\n"


def test_late_return_says_what_to_pay(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who brings a book back late is told what to pay, and who is in time is not"""
    main(["--file", str(file), "--today", "2024-03-22", "return", "1"])
    assert capsys.readouterr().out == "Emma is back from Ada Byron.\nIt is 10 days late: 1.00 to pay.\n"
    main(["--file", str(file), "--today", "2024-03-22", "return", "3"])
    assert capsys.readouterr().out == "Sanditon is back from Ada Byron.\n"
