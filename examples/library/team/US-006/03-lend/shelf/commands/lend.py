"""`shelf lend`: a book goes out."""

import argparse

from shelf.commands import Desk
from shelf.loans import Loans
from shelf.waiting import Waiting

NAME = "lend"
HELP = "lend a book to a member, unless it is kept for another"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which book, to whom."""
    parser.add_argument("book", type=int, help="the book's number")
    parser.add_argument("card", help="the member's card")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Store the loan and print its slip."""
    waiting = Waiting(desk.database)
    waiting.check_turn(arguments.book, arguments.card)
    loan = Loans(desk.database).lend(arguments.book, arguments.card, desk.today)
    waiting.leave(arguments.book, loan.member)
    print(f"{loan.book.title}, for {loan.member.name}, back by {loan.due}")
