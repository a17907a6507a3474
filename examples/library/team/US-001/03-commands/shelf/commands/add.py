"""`shelf add`: take a book in."""

import argparse

from shelf.books import Books
from shelf.commands import Desk

NAME = "add"
HELP = "take a book into the library"


def configure(parser: argparse.ArgumentParser) -> None:
    """Title and author, and the ISBN if the book has one."""
    parser.add_argument("title")
    parser.add_argument("author")
    parser.add_argument("--isbn", default="", help="ten or thirteen digits, with or without hyphens")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Store the book and print its number."""
    book = Books(desk.database).add(arguments.title, arguments.author, arguments.isbn)
    print(f"Book {book.number}: {book}")
