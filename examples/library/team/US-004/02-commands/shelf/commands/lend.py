"""`shelf lend`: a book goes out."""

import argparse

from shelf.commands import Desk
from shelf.loans import Loans

NAME = "lend"
HELP = "lend a book to a member"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which book, to whom."""
    parser.add_argument("book", type=int, help="the book's number")
    parser.add_argument("card", help="the member's card")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Store the loan and print its slip."""
    loan = Loans(desk.database).lend(arguments.book, arguments.card, desk.today)
    print(f"{loan.book.title}, for {loan.member.name}, back by {loan.due}")
