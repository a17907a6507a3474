"""Registries, and a proxy before them, on loopback: real sockets for steps that fetch."""

import base64
import hashlib
import io
import json
import select
import socket
import ssl
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TYPES = {".whl": "application/zip", ".tgz": "application/gzip"}


class Server:
    """Answers GET by `files` (path to content), to those alone who show `authorization`; keeps what it was asked."""

    def __init__(self, files: Mapping[str, bytes], authorization: str | None, certificate: Path | None) -> None:
        self.files, self.asked = dict(files), list[tuple[str, str | None]]()
        self.before: Callable[[str], object] = lambda _path: None
        """Called with each path before it is answered."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shown = self.headers["authorization"]
                server.asked.append((self.path, shown))
                server.before(self.path)
                body = server.files.get(self.path)
                status = 401 if authorization not in {None, shown} else 404 if body is None else 200
                self.send_response(status)
                page = "application/json" if (body or b"").startswith(b"{") else "text/html"
                self.send_header("Content-Type", TYPES.get(Path(self.path).suffix, page))
                self.send_header("Content-Length", str(len(body or b"") if status == 200 else 0))
                self.end_headers()
                if status == 200 and self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *args: Any) -> None:
                """Nothing is printed."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.place = f"127.0.0.1:{self.http.server_port}"
        self.url = f"http{'s' if certificate else ''}://{self.place}"

    def add_wheel(self, wheel: Path, name: str) -> None:
        """With a page that links to it by its whole address."""
        self.files[f"/files/{wheel.name}"] = wheel.read_bytes()
        self.files[f"/simple/{name}/"] = f'<a href="{self.url}/files/{wheel.name}">{wheel.name}</a>'.encode()


@contextmanager
def served(http: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


@contextmanager
def registry(
    files: Mapping[str, bytes] | None = None, *, authorization: str | None = None, certificate: Path | None = None
) -> Iterator[Server]:
    server = Server(files or {}, authorization, certificate)
    with served(server.http):
        yield server


@contextmanager
def proxy_to(place: str) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """A proxy behind which every name is the server at `place`: its address, and what it was asked by whom."""
    asked: list[tuple[str, str, str | None]] = []
    host, _, port = place.partition(":")

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append((self.command, self.path, self.headers["proxy-authorization"]))
            with socket.create_connection((host, int(port))) as there:
                self.wfile.write(b"HTTP/1.1 200 fine\r\n\r\n")
                ends = {self.connection: there, there: self.connection}
                while True:
                    for end in select.select(list(ends), [], [], 10)[0]:
                        if not (data := end.recv(65536)):
                            return
                        ends[end].sendall(data)

        def do_GET(self) -> None:
            asked.append((self.command, self.path, self.headers["proxy-authorization"]))
            with socket.create_connection((host, int(port))) as there:
                path = "/" + self.path.split("/", 3)[3]
                there.sendall(f"{self.command} {path} HTTP/1.0\r\n\r\n".encode())
                while data := there.recv(65536):
                    self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            """Nothing is printed."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with served(http):
        yield f"127.0.0.1:{http.server_port}", asked


def certificate_in(folder: Path) -> Path:
    """Key and certificate of 127.0.0.1, which vouches for itself, in one file."""
    key, made = folder / "key.pem", folder / "certificate.pem"
    words = (
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=here",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    )
    subprocess.run(["openssl", "req", "-x509", *words, "-keyout", key, "-out", made], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes(key.read_bytes() + made.read_bytes())
    return both


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def packed(files: Mapping[str, str]) -> bytes:
    """An archive of these files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text.encode()), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def node_package(
    server: Server, name: str, files: Mapping[str, str] | None = None, *, born: str = "2020-01-01", **more: Any
) -> None:
    """With its tarball's whole address, as registries of npm tell it; `more` stands in its manifest."""
    manifest = {"name": name, "version": "1.0.0", **more}
    inside = {"package.json": json.dumps(manifest), "index.js": f"module.exports = {name!r}\n", **(files or {})}
    content = packed({f"package/{path}": text for path, text in inside.items()})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    tarball = f"/npm/{name}/-/{name}-1.0.0.tgz"
    version = {**manifest, "dist": {"tarball": server.url + tarball, "integrity": integrity}}
    version["hasInstallScript"] = "scripts" in more
    told = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    told["time"] = {"1.0.0": f"{born}T00:00:00.000Z"}
    server.files |= {tarball: content, f"/npm/{name}": json.dumps(told).encode()}
