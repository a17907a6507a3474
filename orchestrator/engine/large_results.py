"""Large results of steps, in the engine's database: each part of a text is kept once for a sprint.

What a scan, a contract or a brief tells of a project is nearly the same for each story of a sprint. So a text is cut
where its own content says, as backup programs do: an entry more in a long list changes the part around it only.
"""

import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import sqlalchemy as sa

SMALLEST = 1024
"""Bytes of a part at least: the rows of smaller ones would take more than what they share."""
_SEAM = re.compile(rb'", "|\\\\n')  # between two entries of a list, and behind a line of a text
_ENTRIES = 64  # one in so many of them ends a part
_NAME_BYTES = 15  # as text 20 characters, without padding
NAME_CHARS = 20


def table_of(engine: sa.Engine) -> str:
    """Returns the name of the table of parts."""
    return "orchestrator_parts" if engine.dialect.name == "sqlite" else "dbos.orchestrator_parts"


def make_parts_table(engine: sa.Engine) -> None:
    """Makes the table of parts if it is missing. Blocks."""
    is_sqlite = engine.dialect.name == "sqlite"
    shape = "(sprint TEXT NOT NULL, name TEXT NOT NULL, data {} NOT NULL, PRIMARY KEY (sprint, name)){}"
    shape = shape.format(*(("BLOB", " WITHOUT ROWID") if is_sqlite else ("BYTEA", "")))
    with engine.begin() as connection:
        if not is_sqlite:
            connection.execute(sa.text("CREATE SCHEMA IF NOT EXISTS dbos"))
        connection.execute(sa.text(f"CREATE TABLE IF NOT EXISTS {table_of(engine)} {shape}"))


def keep_parts(engine: sa.Engine, sprint: str, text: bytes) -> str:
    """Writes the parts of `text` that the sprint does not have yet; returns the names of all, in order. Blocks.

    They are committed before the result that refers to them is recorded.
    """
    order = [(_name(part), part) for part in cut(text)]
    parts = dict(order)
    with engine.begin() as connection:
        there = {name for name, _ in _read(connection, engine, sprint, [*parts], "''")}
        missing = [
            {"sprint": sprint, "name": name, "data": zlib.compress(part)}
            for name, part in sorted(parts.items())  # two at once that insert in different orders wait for each other
            if name not in there
        ]
        if missing:
            insert = f"INSERT INTO {table_of(engine)} VALUES (:sprint, :name, :data) ON CONFLICT DO NOTHING"
            connection.execute(sa.text(insert), missing)
    return "".join(name for name, _ in order)


def read_parts(engine: sa.Engine, sprint: str, names: str) -> bytes:
    """Returns the text whose parts have these names. Raises KeyError when one is missing. Blocks."""
    order = [names[at : at + NAME_CHARS] for at in range(0, len(names), NAME_CHARS)]
    with engine.connect() as connection:
        parts = dict(_read(connection, engine, sprint, [*dict.fromkeys(order)], "data"))
    return b"".join(zlib.decompress(parts[name]) for name in order)


def delete_parts(engine: sa.Engine, sprint: str) -> None:
    """Deletes all parts of a sprint, whose workflows are deleted. Blocks."""
    make_parts_table(engine)
    with engine.begin() as connection:
        connection.execute(sa.text(f"DELETE FROM {table_of(engine)} WHERE sprint = :sprint"), {"sprint": sprint})


def cut(text: bytes) -> Iterator[bytes]:
    """Yields the parts of a JSON text, in order."""
    start = seam = 0
    for found in _SEAM.finditer(text):
        end = found.end()
        if end - start >= SMALLEST and zlib.crc32(text[seam:end]) % _ENTRIES == 0:
            yield text[start:end]
            start = end
        seam = end
    if start < len(text):
        yield text[start:]


def _name(part: bytes) -> str:
    return b64encode(blake2b(part, digest_size=_NAME_BYTES).digest(), b"-_").decode("ascii")


def _read(
    connection: sa.Connection, engine: sa.Engine, sprint: str, names: Sequence[str], what: str
) -> Iterator[tuple[str, bytes]]:
    query = sa.text(f"SELECT name, {what} FROM {table_of(engine)} WHERE sprint = :sprint AND name IN :names")
    query = query.bindparams(sa.bindparam("names", expanding=True))
    for start in range(0, len(names), 500):  # SQLite limits the variables of a statement
        yield from connection.execute(query, {"sprint": sprint, "names": names[start : start + 500]})
