"""The engine's tables, made without launching it."""

from dbos import DBOS


def make_tables(url: str) -> None:
    """Make or update them in the database at `url`. Blocks."""
    DBOS.migrate(url)
