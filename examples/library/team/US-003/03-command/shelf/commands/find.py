"""`shelf find`: look for books."""

import argparse

from shelf.books import Books
from shelf.commands import Desk
from shelf.search import search

NAME = "find"
HELP = "look for books by words from title or author, or by ISBN"


def configure(parser: argparse.ArgumentParser) -> None:
    """Any number of words."""
    parser.add_argument("words", nargs="+", metavar="WORD")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print what was found, best matches first."""
    query = " ".join(arguments.words)
    found = search(Books(desk.database).all(), query)
    if not found:
        print(f"Nothing on the shelf fits: {query}")
    for book in found:
        print(f"{book.number:>4}  {book.author}: {book.title}")
