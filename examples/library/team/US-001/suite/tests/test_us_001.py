"""US-001: the catalogue."""

from pathlib import Path

import pytest

from shelf.books import Books
from shelf.cli import main
from shelf.errors import ShelfError
from shelf.isbn import normalise
from shelf.storage import Database


def shelf(tmp_path: Path, *arguments: str) -> int:
    return main(["--file", str(tmp_path / "library.db"), *arguments])


def test_added_book_gets_the_next_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A book added with title and author gets the next number and appears in the list"""
    assert shelf(tmp_path, "add", "Emma", "Jane Austen") == 0
    assert shelf(tmp_path, "add", "Kindred", "Octavia E. Butler") == 0
    assert "Book 2: Kindred by Octavia E. Butler" in capsys.readouterr().out
    shelf(tmp_path, "books")
    listed = capsys.readouterr().out
    assert "Jane Austen: Emma" in listed
    assert "Octavia E. Butler: Kindred" in listed


def test_book_without_title_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A book without a title or an author is refused with exit code 1 and nothing is stored"""
    assert shelf(tmp_path, "add", "  ", "Jane Austen") == 1
    assert shelf(tmp_path, "add", "Emma", "") == 1
    assert "needs a title" in capsys.readouterr().err
    with Database(tmp_path / "library.db") as database:
        assert Books(database).all() == []


def test_wrong_check_digit_is_refused() -> None:
    """An ISBN with a wrong check digit is refused by name, and one of ten digits is stored with thirteen"""
    with pytest.raises(ShelfError, match="978-0-14-143958-8"):
        normalise("978-0-14-143958-8")
    assert normalise("978-0-14-143958-7") == "9780141439587"
    assert normalise("0-8044-2957-X") == "9780804429573"


def test_list_is_in_order_of_authors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is in the order of authors, then titles, and an empty library says so"""
    shelf(tmp_path, "books")
    assert "The shelf is empty" in capsys.readouterr().out
    for title, author in [("Persuasion", "Jane Austen"), ("Kindred", "Octavia E. Butler"), ("emma", "jane austen")]:
        shelf(tmp_path, "add", title, author)
    capsys.readouterr()
    shelf(tmp_path, "books")
    listed = capsys.readouterr().out
    assert listed.index("emma") < listed.index("Persuasion") < listed.index("Kindred")
