"""The schema of a SQLite file that lies in a hostile tree: read in memory, never opened as a file, never written."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from orchestrator.adapters.commits import read_files
from orchestrator.adapters.mirror import Mirror

MAX_DATABASE_BYTES = 64 * 1024 * 1024
MAX_SCHEMA_CHARS = 200_000
_MAGIC = b"SQLite format 3\0"
_READ_WRITE_VERSIONS = slice(18, 20)


def schema_sql(content: bytes) -> str:
    """The CREATE statements of its tables, `;` behind each; "" for what is no readable database. Never raises."""
    if not content.startswith(_MAGIC) or len(content) > MAX_DATABASE_BYTES:
        return ""
    image = bytearray(content)
    # A file in WAL mode asks for its log beside it, which memory has not; its pages read the same without.
    image[_READ_WRITE_VERSIONS] = b"\1\1"
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(bytes(image))
            connection.execute("PRAGMA trusted_schema = OFF")
            rows = connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                "ORDER BY name"
            )
            statements = [sql for (sql,) in rows if isinstance(sql, str)]
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
        return ""
    text = "".join(f"{sql};\n" for sql in statements)
    return text if len(text) <= MAX_SCHEMA_CHARS else ""


async def read_schemas(mirror: Mirror, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """`schema_sql` of those `paths` of a commit that are SQLite databases with a table in them."""
    contents = await read_files(mirror, commit, paths, limit=MAX_DATABASE_BYTES)
    found = {path: await asyncio.to_thread(schema_sql, content) for path, content in contents.items()}
    return {path: sql for path, sql in found.items() if sql}
