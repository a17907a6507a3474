"""`shelf return`: a book comes back."""

import argparse

from shelf.commands import Desk
from shelf.loans import Loans

NAME = "return"
HELP = "take a book back"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which book."""
    parser.add_argument("book", type=int, help="the book's number")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """End the loan."""
    loan = Loans(desk.database).give_back(arguments.book, desk.today)
    print(f"{loan.book.title} is back from {loan.member.name}.")
