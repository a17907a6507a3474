"""Reads the command line and hands over to the command that was named."""

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Protocol, cast

from shelf import __version__, commands
from shelf.commands import Desk
from shelf.errors import ShelfError
from shelf.storage import Database


class Command(Protocol):
    """What a module in shelf/commands looks like."""

    NAME: str
    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, desk: Desk, arguments: argparse.Namespace) -> None:
        """Do the work and print what came of it; raises ShelfError for what people can put right."""


def known_commands() -> list[Command]:
    """Every command there is, in the order of their modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    return [cast(Command, importlib.import_module(f"{commands.__name__}.{name}")) for name in names]


def day(text: str) -> date:
    """A day written as YYYY-MM-DD."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no day; write it as YYYY-MM-DD") from error


def build_parser() -> argparse.ArgumentParser:
    """The whole command line, with a sub-command for each known command."""
    parser = argparse.ArgumentParser(prog="shelf", description="The desk of a small lending library.")
    default = Path(os.environ.get("SHELF_FILE", "library.db"))
    parser.add_argument("--file", type=Path, default=default, help="the library's file (default: %(default)s)")
    parser.add_argument("--today", type=day, help="work as if it were this day (YYYY-MM-DD)")
    parser.add_argument("--version", action="version", version=f"shelf {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for command in known_commands():
        subparser = subparsers.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.configure(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 1 when the person at the desk has to put something right."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    try:
        with Database(arguments.file) as database:
            arguments.run(Desk(database, arguments.today or date.today()), arguments)
    except ShelfError as error:
        print(f"shelf: {error}", file=sys.stderr)
        return 1
    return 0
