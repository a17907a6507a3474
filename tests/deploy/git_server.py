"""A git server over smart HTTP on loopback: git's own `http-backend` behind a handler that may want a password."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class GitServer:
    """Serves the repositories below `root`. `secret` is the password it wants, "" none; `fails` are statuses that the
    next requests get; `elsewhere` is an address they are sent on to."""

    def __init__(self, root: Path, secret: str = "") -> None:
        self.root, self.secret, self.elsewhere = root, secret, ""
        self.fails: list[int] = []
        self.page = ""
        """What every request gets, with status 200."""
        self.asked: list[str] = []
        self.users: set[str] = set()
        """Those that came with a password, right or wrong."""
        self.told: list[str] = []
        """Command lines in which the password could be read while a request was served."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.serve(self)

            do_POST = do_GET

            def log_message(self, *args: object) -> None:
                """Nothing is printed."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path)
        if self.fails:
            handler.send_error(self.fails.pop(0))
        elif self.page:
            handler.send_response(200)
            kind = "text/html" if self.page.startswith("<") else "application/x-git-upload-pack-advertisement"
            handler.send_header("Content-Type", kind)
            handler.end_headers()
            handler.wfile.write(self.page.encode())
        elif self.elsewhere:
            handler.send_response(302)
            handler.send_header("Location", self.elsewhere + handler.path)
            handler.end_headers()
        elif not self._let_in(handler):
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="git"')
            handler.end_headers()
        else:
            self._answer(handler)

    def _let_in(self, handler: BaseHTTPRequestHandler) -> bool:
        given = handler.headers.get("Authorization", "").removeprefix("Basic ")
        user, _, password = base64.b64decode(given).decode().partition(":")
        if given:
            self.users.add(user)
            self.told += [line for line in command_lines() if password and password in line]
        return not self.secret or password == self.secret

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, _, query = handler.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true",
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        }
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        handler.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def command_lines() -> list[str]:
    """Of every process there is."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


@contextmanager
def git_server(root: Path, secret: str = "") -> Iterator[GitServer]:
    server = GitServer(root, secret)
    try:
        yield server
    finally:
        server.close()
