"""What a Python test file reaches for that a test must not: the network, and the clock (spec 1 C2)."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import urlsplit

from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.python_source import dotted

SHORT_SLEEP_S = 0.5
_LOOPBACK = re.compile(
    r"^(localhost|127(\.\d+){3}|::1|0\.0\.0\.0|testserver|test|testing|.*\.(test|invalid|localhost))$"
)
_LOOPBACK_IN_TEXT = re.compile(r"127\.0\.0\.1|localhost|::1|testserver|server_address|server_port")
_URL = re.compile(r"^(https?|wss?|ftp)://", re.IGNORECASE)
_BARE_SCHEME = re.compile(r"^\w+://$")
"""The address comes from elsewhere: a server that the test has started tells it."""
_CLIENTS = frozenset({"requests", "httpx", "aiohttp", "urllib3"})
_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "urlopen"})
_CALLS = frozenset(
    {f"{client}.{verb}" for client in _CLIENTS for verb in _VERBS}
    | {"urllib.request.urlopen", "urllib.request.urlretrieve", "urllib.request.Request", "socket.create_connection"}
    | {"http.client.HTTPConnection", "http.client.HTTPSConnection", "smtplib.SMTP", "smtplib.SMTP_SSL", "ftplib.FTP"}
    | {"imaplib.IMAP4", "poplib.POP3", "telnetlib.Telnet", "websockets.connect", "socket.gethostbyname"}
    | {"socket.getaddrinfo", "asyncio.open_connection"}
)
_SLEEPS = frozenset({"time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep", "eventlet.sleep"})


_STANDING_IN = frozenset(
    {"responses", "respx", "requests_mock", "pytest_httpx", "httpretty", "aioresponses", "vcr", "pook", "pyvcr"}
)
"""Packages that answer requests before they leave the process."""
_FIXTURES = frozenset({"requests_mock", "httpx_mock", "respx_mock", "aioresponses", "responses", "vcr"})
_IN_PROCESS = frozenset({"MockTransport", "ASGITransport", "WSGITransport", "TestClient", "test_client", "MockAdapter"})


def reach(nodes: Collection[ast.AST], path: str) -> list[Finding]:
    """Network calls to anything but this machine (major) and sleeps (major above half a second, else minor).

    `nodes`: everything in the file.
    """
    names = _bound_names(nodes)
    constants = _constants(nodes)
    imported = {name.split(".")[0] for name in _imported(nodes)}
    given = {node.arg for node in nodes if isinstance(node, ast.arg)}
    answered = not _STANDING_IN.isdisjoint(imported) or not _FIXTURES.isdisjoint(given)
    words = set(_words(nodes))
    visible = any(_LOOPBACK_IN_TEXT.search(word) for word in words)
    clients = not _CLIENTS.isdisjoint(imported) and _IN_PROCESS.isdisjoint(words | set(names))
    findings: list[Finding] = []
    for node in nodes:
        if isinstance(node, ast.Call):
            called = _resolved(dotted(node.func), names)
            where = Where(file=path, line=node.lineno)
            if not answered and not _given(node, given):
                findings += _network(node, called, constants, visible, clients, where)
            if called in _SLEEPS:
                findings += _sleep(node, called, where)
    return findings


def _network(
    node: ast.Call, called: str, constants: dict[str, str], visible: bool, clients: bool, where: Where
) -> Iterator[Finding]:
    """`visible`: this machine is named somewhere in the file. `clients`: the file imports an HTTP client."""
    target = _target(node, constants)
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else called
    sent = clients and attribute in _VERBS and target is not None and _URL.match(target)  # client.get("https://…")
    if called not in _CALLS and not sent and not _connects(attribute, node):
        return
    fix = "Start the program under test on 127.0.0.1, or call its functions."
    if target is None:
        if not visible:
            message = f"`{called}` calls something that is not visibly this machine"
            yield major("suite.network", message, where=where, fix=fix)
    elif not _BARE_SCHEME.match(target) and not _is_loopback(target):
        message = f"the test reaches for `{target[:100]}` over the network"
        yield major("suite.network", message, where=where, fix=fix)


def _given(node: ast.Call, names: set[str]) -> bool:
    """Whether the address comes from a fixture or parameter: whoever gives it knows what it is."""
    arguments = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in {"url", "host", "address"})]
    for argument in arguments:
        parts = (
            [part.value for part in argument.values if isinstance(part, ast.FormattedValue)]
            if isinstance(argument, ast.JoinedStr)
            else [argument.left if isinstance(argument, ast.BinOp) else argument]
        )
        if parts and dotted(parts[0]).partition(".")[0] in names:
            return True
    return False


def _connects(attribute: str, node: ast.Call) -> bool:
    """`sock.connect((host, port))`"""
    return attribute in {"connect", "connect_ex"} and len(node.args) == 1 and isinstance(node.args[0], ast.Tuple)


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every text and attribute name of the file."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _is_loopback(target: str) -> bool:
    if "://" not in target:
        return target.startswith("/") or bool(_LOOPBACK.match(target.split(":")[0].lower() or "::1"))
    try:
        host = urlsplit(target).hostname or ""
    except ValueError:
        return False
    return bool(_LOOPBACK.match(host.lower())) or target.startswith(("file:", "data:"))


def _target(node: ast.Call, constants: dict[str, str]) -> str | None:
    """The address a call names as literal text (the beginning of one is enough), or None when it cannot be seen."""
    named = isinstance(node.func, ast.Attribute) and node.func.attr in {"request", "stream"}  # (method, url)
    arguments = [
        *node.args[named : 1 + named],
        *(w.value for w in node.keywords if w.arg in {"url", "host", "address"}),
    ]
    return next((text for argument in arguments if (text := _text(argument, constants)) is not None), None)


def _text(node: ast.expr, constants: dict[str, str]) -> str | None:
    """The literal text an expression begins with."""
    while True:
        if isinstance(node, ast.JoinedStr) and node.values:
            return _joined(node, constants)
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Tuple) and node.elts:
            node = node.elts[0]
        elif isinstance(node, ast.Name):
            return constants.get(node.id)
        else:
            return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _joined(node: ast.JoinedStr, constants: dict[str, str]) -> str | None:
    """The beginning of an f-string, as far as its parts are known; None when its very first part is not."""
    known = ""
    for part in node.values:
        text = _text(part.value, constants) if isinstance(part, ast.FormattedValue) else _text(part, constants)
        if text is None:
            return known or None
        known += text
    return known


def _constants(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Names that are only ever bound to one literal text."""
    found: dict[str, str | None] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            text = _text(node.value, {})
            found[name] = text if name not in found or found[name] == text else None
    return {name: text for name, text in found.items() if text is not None}


def _bound_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Local name → what it was imported as."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _resolved(name: str, names: dict[str, str]) -> str:
    head, _, rest = name.partition(".")
    full = names.get(head, head)
    return f"{full}.{rest}" if rest else full


def _sleep(node: ast.Call, called: str, where: Where) -> Iterator[Finding]:
    first = node.args[0] if node.args else None
    seconds = first.value if isinstance(first, ast.Constant) else None
    if seconds == 0:
        return  # lets others run, and waits for nothing
    short = isinstance(seconds, int | float) and seconds <= SHORT_SLEEP_S
    make = minor if short else major
    fix = "Wait for the condition itself, or replace the clock: monkeypatch what the program asks for the time."
    yield make("suite.sleep", f"the test sleeps (`{called}`)", where=where, fix=fix)
