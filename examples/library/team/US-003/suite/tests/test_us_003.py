"""US-003: finding books."""

from pathlib import Path

import pytest

from shelf.books import Book
from shelf.cli import main
from shelf.errors import ShelfError
from shelf.search import search

BOOKS = [
    Book(1, "Jane Eyre", "Charlotte Brontë", "9780141441146"),
    Book(2, "Emma", "Jane Austen"),
    Book(3, "Wuthering Heights", "Emily Brontë"),
]


def numbers(query: str) -> list[int]:
    return [book.number for book in search(BOOKS, query)]


def test_words_are_found_in_any_order() -> None:
    """A book is found by words from its title or author in any order, and by the beginning of a word"""
    assert numbers("austen emma") == [2]
    assert numbers("heigh wuth") == [3]
    assert numbers("emma brontë") == []


def test_capitals_and_accents_do_not_matter() -> None:
    """Capital letters and accents make no difference"""
    assert numbers("BRONTE") == [1, 3]
    assert numbers("brontë") == [1, 3]


def test_title_stands_before_author() -> None:
    """A book with the word in its title stands before one with the word in its author"""
    turned = [BOOKS[1], BOOKS[0]]
    assert [book.number for book in search(turned, "jane")] == [1, 2]


def test_isbn_is_found() -> None:
    """A book is found by its ISBN, with or without hyphens"""
    assert numbers("978-0-14-144114-6") == [1]
    assert numbers("9780141441146") == [1]


def test_nothing_found_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When nothing fits the command says so, and a query without a word is refused"""
    assert main(["--file", str(tmp_path / "library.db"), "find", "zebra"]) == 0
    assert capsys.readouterr().out == "Nothing on the shelf fits: zebra\n"
    with pytest.raises(ShelfError, match="at least one word"):
        search(BOOKS, "?!")
