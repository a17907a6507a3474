"""US-004: lending and returning."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from shelf.books import Books
from shelf.cli import main
from shelf.errors import ShelfError
from shelf.loans import Loans
from shelf.members import Members
from shelf.storage import Database

DAY = date(2024, 2, 20)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Database(tmp_path / "library.db") as database:
        for title in ["Emma", "Persuasion", "Sanditon", "Lady Susan", "Mansfield Park", "Northanger Abbey"]:
            Books(database).add(title, "Jane Austen")
        Members(database).join("Ada Byron", "ada@example.org")
        Members(database).join("Mary Somerville", "mary@example.org")
    return tmp_path / "library.db"


@pytest.fixture
def loans(file: Path) -> Iterator[Loans]:
    with Database(file) as database:
        yield Loans(database)


def test_slip_names_the_day(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lent book is due 21 days later, and the slip names title, member and day"""
    assert main(["--file", str(file), "--today", "2024-02-20", "lend", "1", "M-0001"]) == 0
    assert capsys.readouterr().out == "Emma, for Ada Byron, back by 2024-03-12\n"


def test_book_that_is_out_stays_out(loans: Loans) -> None:
    """A book that is out cannot be lent again, and the message says who has it until when"""
    loans.lend(1, "M-0001", DAY)
    with pytest.raises(ShelfError, match=r"Ada Byron \(M-0001\) until 2024-03-12"):
        loans.lend(1, "M-0002", DAY)
    assert len(loans.all_open()) == 1


def test_sixth_book_is_refused(loans: Loans) -> None:
    """A member can have five books at once and not a sixth"""
    for number in range(1, 6):
        loans.lend(number, "M-0001", DAY)
    with pytest.raises(ShelfError, match="5 books already"):
        loans.lend(6, "M-0001", DAY)
    assert loans.lend(6, "M-0002", DAY).book.title == "Northanger Abbey"


def test_returned_book_can_go_out_again(loans: Loans) -> None:
    """A returned book can be lent again, and a book that is not out cannot be returned"""
    loans.lend(1, "M-0001", DAY)
    assert loans.give_back(1, DAY).member.name == "Ada Byron"
    with pytest.raises(ShelfError, match="Emma is not out"):
        loans.give_back(1, DAY)
    assert loans.lend(1, "M-0002", DAY).member.name == "Mary Somerville"


def test_catalogue_shows_what_is_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list of books shows until when a book is out, and can show only what is on the shelf"""
    main(["--file", str(file), "--today", "2024-02-20", "lend", "1", "M-0001"])
    capsys.readouterr()
    main(["--file", str(file), "books"])
    listed = capsys.readouterr().out.splitlines()
    assert [line for line in listed if "[out until" in line] == ["   1  Jane Austen: Emma  [out until 2024-03-12]"]
    main(["--file", str(file), "books", "--here"])
    assert "Emma" not in capsys.readouterr().out
