"""`shelf books`: the catalogue."""

import argparse

from shelf.books import Books
from shelf.commands import Desk
from shelf.loans import Loans

NAME = "books"
HELP = "list every book, by author, with what is out"


def configure(parser: argparse.ArgumentParser) -> None:
    """The list can be cut down to what is on the shelf."""
    parser.add_argument("--here", action="store_true", help="only books that are on the shelf")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print one line per book."""
    books = Books(desk.database).all()
    if not books:
        print("The shelf is empty. Take a book in with: shelf add TITLE AUTHOR")
    out = {loan.book.number: loan for loan in Loans(desk.database).all_open()}
    for book in books:
        loan = out.get(book.number)
        if loan is None:
            print(f"{book.number:>4}  {book.author}: {book.title}")
        elif not arguments.here:
            print(f"{book.number:>4}  {book.author}: {book.title}  [out until {loan.due}]")
