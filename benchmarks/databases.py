"""Databases of their own for benchmarks, on the Postgres that was named; SQLite where none was."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy as sa


@contextmanager
def fresh(server: str | None) -> Iterator[str | None]:
    """The address of a new, empty database on the server, dropped afterwards; None without a server."""
    if server is None:
        yield None
        return
    address = sa.make_url(server).set(drivername="postgresql")
    plain = address.render_as_string(hide_password=False)
    name = f"bench_{time.time_ns()}"
    _command(plain, f"CREATE DATABASE {name}")
    try:
        yield address.set(database=name).render_as_string(hide_password=False)
    finally:
        _command(plain, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _command(address: str, text: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(text.encode())
