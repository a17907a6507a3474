"""`shelf join`: a new card."""

import argparse

from shelf.commands import Desk
from shelf.members import Members

NAME = "join"
HELP = "give a person a card"


def configure(parser: argparse.ArgumentParser) -> None:
    """Name and address."""
    parser.add_argument("name")
    parser.add_argument("email")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Store the member and print the card."""
    member = Members(desk.database).join(arguments.name, arguments.email)
    print(f"Welcome, {member.name}! The card is {member.card}.")
