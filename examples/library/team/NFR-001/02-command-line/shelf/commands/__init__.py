"""One module per command; a new module here is a new command, nothing else has to change.

A command module has NAME (what people type), HELP (one line), `configure(parser)` and `run(desk, arguments)`.
"""

from dataclasses import dataclass
from datetime import date

from shelf.storage import Database


@dataclass(frozen=True)
class Desk:
    """What every command works with."""

    database: Database
    today: date
