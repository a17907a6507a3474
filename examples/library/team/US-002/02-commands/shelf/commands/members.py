"""`shelf members`: everybody with a card."""

import argparse

from shelf.commands import Desk
from shelf.members import Members

NAME = "members"
HELP = "list everybody who has a card, by name"


def configure(parser: argparse.ArgumentParser) -> None:
    """The list needs no arguments."""


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print one line per member."""
    members = Members(desk.database).all()
    if not members:
        print("Nobody has a card yet. Give one out with: shelf join NAME EMAIL")
    for member in members:
        print(f"{member.card}  {member.name} <{member.email}>")
