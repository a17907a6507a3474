"""`shelf waiting`: all waiting lists."""

import argparse

from shelf.books import Books
from shelf.commands import Desk
from shelf.waiting import Waiting

NAME = "waiting"
HELP = "list who waits for which book"


def configure(parser: argparse.ArgumentParser) -> None:
    """The list needs no arguments."""


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print one line per book that somebody waits for."""
    lines = Waiting(desk.database).all()
    if not lines:
        print("Nobody waits for a book.")
    for number, members in lines.items():
        title = Books(desk.database).get(number).title
        print(f"{number:>4}  {title}: {', '.join(str(member) for member in members)}")
