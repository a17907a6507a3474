"""A PgBouncer in transaction mode before a Postgres: connections of clients share a few of the server."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import sqlalchemy as sa

from tests.postgres import WAIT_S

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
SETTINGS = """
[databases]
{database} = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {door}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 1000
"""


@contextmanager
def pooled(settings: Path, database: str, connections: int) -> Iterator[str]:
    """The address of the database through a pooler with so many connections of the server; `settings` is its file."""
    assert PGBOUNCER is not None
    told = psycopg.conninfo.conninfo_to_dict(database)
    with socket.create_server(("127.0.0.1", 0)) as found:
        door = found.getsockname()[1]
    names = {"database": told["dbname"], "host": told["host"], "port": told.get("port", 5432), "user": told["user"]}
    settings.write_text(SETTINGS.format(**names, door=door, connections=connections))
    # As root it refuses to run.
    words = ["--quiet", *(["--user", "nobody"] if os.getuid() == 0 else []), str(settings)]
    url = sa.make_url(database).difference_update_query(["host", "port"]).set(host="127.0.0.1", port=door)
    address = url.render_as_string(hide_password=False)
    process = subprocess.Popen([PGBOUNCER, *words])
    try:
        deadline = time.monotonic() + WAIT_S
        while True:
            with suppress(psycopg.OperationalError):
                psycopg.connect(address).close()
                break
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()
