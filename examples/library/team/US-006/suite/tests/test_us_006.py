"""US-006: waiting lists."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from shelf.books import Books
from shelf.cli import main
from shelf.loans import Loans
from shelf.members import Members
from shelf.storage import Database

Shelf = Callable[..., int]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """Runs a command in a library where Ada (M-0001) has Emma (1), and Persuasion (2) is on the shelf."""
    file = tmp_path / "library.db"
    with Database(file) as database:
        for name in ["Ada", "Mary", "Sofia"]:
            Members(database).join(name, f"{name}@example.org")
        for title in ["Emma", "Persuasion"]:
            Books(database).add(title, "Jane Austen")
        Loans(database).lend(1, "M-0001", date(2024, 2, 20))
    return lambda *arguments: main(["--file", str(file), "--today", "2024-03-01", *arguments])


def test_book_on_the_shelf_is_not_reserved(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """A book on the shelf cannot be reserved, and the message says that it can be taken"""
    assert shelf("reserve", "2", "M-0002") == 1
    assert "on the shelf and can be taken now" in capsys.readouterr().err


def test_members_wait_in_order(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """Members wait in the order in which they asked, and the list of waiting members shows it"""
    assert shelf("reserve", "1", "M-0003") == 0
    assert shelf("reserve", "1", "M-0002") == 0
    assert capsys.readouterr().out == "Number 1 in the line.\nNumber 2 in the line.\n"
    shelf("waiting")
    assert capsys.readouterr().out == "   1  Emma: Sofia (M-0003), Mary (M-0002)\n"


def test_returned_book_is_kept_for_the_first(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """A book that came back is kept for the first in the line, and lending it to another is refused by name"""
    shelf("reserve", "1", "M-0002")
    shelf("return", "1")
    assert shelf("lend", "1", "M-0003") == 1
    assert "Emma is kept for Mary (M-0002)" in capsys.readouterr().err


def test_lending_ends_the_waiting(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """Who gets the book leaves the line, and the next member is the first"""
    shelf("reserve", "1", "M-0002")
    shelf("reserve", "1", "M-0003")
    shelf("return", "1")
    assert shelf("lend", "1", "M-0002") == 0
    capsys.readouterr()
    shelf("waiting")
    assert capsys.readouterr().out == "   1  Emma: Sofia (M-0003)\n"


def test_nobody_waits_twice(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody waits twice for a book, or for a book they have"""
    assert shelf("reserve", "1", "M-0002") == 0
    assert shelf("reserve", "1", "M-0002") == 1
    assert shelf("reserve", "1", "M-0001") == 1
    errors = capsys.readouterr().err
    assert "Mary (M-0002) waits for Emma already" in errors
    assert "Ada (M-0001) has Emma already" in errors
