"""`shelf books`: the catalogue."""

import argparse

from shelf.books import Books
from shelf.commands import Desk

NAME = "books"
HELP = "list every book, by author"


def configure(parser: argparse.ArgumentParser) -> None:
    """The list needs no arguments."""


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print one line per book."""
    books = Books(desk.database).all()
    if not books:
        print("The shelf is empty. Take a book in with: shelf add TITLE AUTHOR")
    for book in books:
        print(f"{book.number:>4}  {book.author}: {book.title}")
