"""`shelf return`: a book comes back."""

import argparse

from shelf.commands import Desk
from shelf.fines import fine_cents, money
from shelf.loans import Loans

NAME = "return"
HELP = "take a book back, and say what a late one costs"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which book."""
    parser.add_argument("book", type=int, help="the book's number")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """End the loan."""
    loan = Loans(desk.database).give_back(arguments.book, desk.today)
    print(f"{loan.book.title} is back from {loan.member.name}.")
    days = loan.days_late(desk.today)
    cents = fine_cents(days)
    if cents:
        print(f"It is {days} days late: {money(cents)} to pay.")
