"""`shelf overdue`: whom to remind."""

import argparse

from shelf.commands import Desk
from shelf.fines import fine_cents, money
from shelf.loans import Loans

NAME = "overdue"
HELP = "list what is late, the latest first, with whom to remind"


def configure(parser: argparse.ArgumentParser) -> None:
    """The list needs no arguments."""


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print one line per late book."""
    late = [loan for loan in Loans(desk.database).all_open() if loan.days_late(desk.today)]
    if not late:
        print("Nothing is late.")
    for loan in late:
        days = loan.days_late(desk.today)
        late_by = f"{days:>4} {'day ' if days == 1 else 'days'}"
        print(f"{late_by}  {money(fine_cents(days))}  {loan.book.title}: {loan.member.name} <{loan.member.email}>")
