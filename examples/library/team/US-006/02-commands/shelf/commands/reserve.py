"""`shelf reserve`: wait for a book."""

import argparse

from shelf.commands import Desk
from shelf.waiting import Waiting

NAME = "reserve"
HELP = "put a member on a book's waiting list"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which book, for whom."""
    parser.add_argument("book", type=int, help="the book's number")
    parser.add_argument("card", help="the member's card")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Store the wish and print the place in the line."""
    place = Waiting(desk.database).reserve(arguments.book, arguments.card, desk.today)
    print(f"Number {place} in the line.")
