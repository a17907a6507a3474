"""A network between a process and a Postgres that a test can cut: nothing passes, and nobody is told."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg
import sqlalchemy as sa

WITH_A_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing drops what was not sent, as a machine does that no longer knows the connection."""


class Forwarder:
    """A port on the loopback that leads to the server of a database address."""

    def __init__(self, database: str) -> None:
        told = psycopg.conninfo.conninfo_to_dict(database)
        self._server = (str(told.get("host") or "localhost"), int(told.get("port") or 5432))
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._door = socket.create_server(("127.0.0.1", 0))
        address = sa.make_url(database).difference_update_query(["host", "port"])
        self.url = address.set(host="127.0.0.1", port=self._door.getsockname()[1]).render_as_string(hide_password=False)
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def cut(self) -> None:
        """From now on no byte passes in either direction. Connections stay, and new ones get no answer."""
        self._whole.clear()

    def mend(self, *, resets: bool) -> None:
        """All passes again, with what was sent meanwhile; or connections of before are reset, as after a long time."""
        if resets:
            with self._lock:
                for one in self._sockets:
                    _reset(one)
        self._whole.set()

    def __enter__(self) -> "Forwarder":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all connections."""
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.mend(resets=True)
        for thread in list(self._threads):
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client = self._door.accept()[0]
                self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        self._whole.wait()
        host, port = self._server
        is_local = host.startswith("/")
        with client, socket.socket(socket.AF_UNIX if is_local else socket.AF_INET) as server:
            try:
                server.connect(f"{host}/.s.PGSQL.{port}" if is_local else (host, port))
            except OSError:  # it is away
                return
            with self._lock:
                self._sockets |= {client, server}
            back = self._begin(self._pass_on, server, client)
            self._pass_on(client, server)
            back.join()
            with self._lock:
                self._sockets -= {client, server}

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # reset
            while True:
                data = source.recv(1 << 16)
                self._whole.wait()
                if not data:
                    break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _begin(self, work: Callable[..., None], *sockets: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=work, args=sockets, daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread


def _reset(one: socket.socket) -> None:
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, WITH_A_RESET)
        one.shutdown(socket.SHUT_RDWR)
