"""`shelf report`: the library in numbers."""

import argparse

from shelf.commands import Desk
from shelf.report import build

NAME = "report"
HELP = "the library in numbers"


def configure(parser: argparse.ArgumentParser) -> None:
    """For people, or as JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(desk: Desk, arguments: argparse.Namespace) -> None:
    """Print the numbers of the day."""
    report = build(desk.database, desk.today)
    if arguments.json:
        print(report.as_dict())
    else:
        print("\n".join(report.as_lines()))
