"""US-007: the library in numbers."""

import json
from datetime import date
from pathlib import Path

import pytest

from shelf.books import Books
from shelf.cli import main
from shelf.loans import Loans
from shelf.members import Members
from shelf.report import build
from shelf.storage import Database
from shelf.waiting import Waiting

START = date(2024, 1, 10)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Database(tmp_path / "library.db") as database:
        for title in ["Emma", "Persuasion", "Sanditon", "Lady Susan"]:
            Books(database).add(title, "Jane Austen")
        for name in ["Ada", "Mary"]:
            Members(database).join(name, f"{name}@example.org")
        loans = Loans(database)
        for number in [2, 3, 3, 1, 3, 2, 4]:
            loans.lend(number, "M-0001", START)
            loans.give_back(number, START)
        loans.lend(3, "M-0001", START)
        loans.lend(1, "M-0002", date(2024, 2, 8))
        Waiting(database).reserve(3, "M-0002", START)
    return tmp_path / "library.db"


def test_report_counts_everything(file: Path) -> None:
    """The report counts books, members, loans, late books, waiting members and open fines"""
    with Database(file) as database:
        report = build(database, date(2024, 2, 10))
    assert (report.books, report.members, report.out, report.late, report.waiting) == (4, 2, 2, 1, 1)
    assert report.open_fines == "1.00"


def test_favourites_are_the_most_lent(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The three titles that went out most often are named, the most lent first"""
    main(["--file", str(file), "report"])
    assert capsys.readouterr().out.splitlines()[-3:] == ["  1. Sanditon", "  2. Emma", "  3. Persuasion"]


def test_report_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the report is one JSON object with the same numbers"""
    main(["--file", str(file), "--today", "2024-02-10", "report", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["day"] == "2024-02-10"
    assert (data["books"], data["late"], data["open_fines"]) == (4, 1, "1.00")
    assert data["favourites"] == ["Sanditon", "Emma", "Persuasion"]


def test_empty_library_has_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report of an empty library is all zeros and no error"""
    assert main(["--file", str(tmp_path / "new.db"), "--today", "2024-02-10", "report"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "The library on 2024-02-10",
        "  0 books, 0 out, 0 late (0.00 to pay)",
        "  0 members, 0 waiting",
    ]
