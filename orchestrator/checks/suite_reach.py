"""What a Python test file reaches for that a test must not: the network, and the clock (spec 1 C2)."""

import ast
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.python_source import dotted

SHORT_SLEEP_S = 0.5
_LOOPBACK = re.compile(
    r"^(localhost|127(\.\d+){3}|::1|0\.0\.0\.0|testserver|test|testing|.*\.(test|invalid|localhost))$"
)
_LOOPBACK_IN_TEXT = re.compile(r"127\.0\.0\.1|localhost|::1|testserver|server_address|server_port")
_URL = re.compile(r"^(https?|wss?|ftp)://", re.IGNORECASE)
_CLIENTS = frozenset({"requests", "httpx", "aiohttp", "urllib3"})
_VERBS = frozenset(
    {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "urlopen", "Request"}
)
_CALLS = frozenset(
    {f"{client}.{verb}" for client in _CLIENTS for verb in _VERBS}
    | {"urllib.request.urlopen", "urllib.request.urlretrieve", "urllib.request.Request", "socket.create_connection"}
    | {"http.client.HTTPConnection", "http.client.HTTPSConnection", "smtplib.SMTP", "smtplib.SMTP_SSL", "ftplib.FTP"}
    | {"imaplib.IMAP4", "poplib.POP3", "telnetlib.Telnet", "websockets.connect", "socket.gethostbyname"}
    | {"socket.getaddrinfo", "asyncio.open_connection"}
)
_SLEEPS = frozenset({"time.sleep", "asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep", "eventlet.sleep"})


def reach(tree: ast.Module, path: str) -> list[Finding]:
    """Network calls to anything but this machine (major) and sleeps (major above half a second, else minor)."""
    names = _bound_names(tree)
    constants = _constants(tree)
    visible = any(_LOOPBACK_IN_TEXT.search(word) for word in _words(tree))
    clients = not _CLIENTS.isdisjoint(name.split(".")[0] for name in _imported(tree))
    findings: list[Finding] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _resolved(dotted(node.func), names)
            where = Where(file=path, line=node.lineno)
            findings += _network(node, called, constants, visible, clients, where)
            if called in _SLEEPS:
                findings.append(_sleep(node, called, where))
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
    elif not _is_loopback(target):
        message = f"the test reaches for `{target[:100]}` over the network"
        yield major("suite.network", message, where=where, fix=fix)


def _connects(attribute: str, node: ast.Call) -> bool:
    """`sock.connect((host, port))`"""
    return attribute in {"connect", "connect_ex"} and len(node.args) == 1 and isinstance(node.args[0], ast.Tuple)


def _words(tree: ast.Module) -> Iterator[str]:
    """Every text and attribute name of the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
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
            node = node.values[0]
        elif isinstance(node, ast.FormattedValue):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Tuple) and node.elts:
            node = node.elts[0]
        elif isinstance(node, ast.Name):
            return constants.get(node.id)
        else:
            return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names that are only ever bound to one literal text."""
    found: dict[str, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            text = _text(node.value, {})
            found[name] = text if name not in found or found[name] == text else None
    return {name: text for name, text in found.items() if text is not None}


def _bound_names(tree: ast.Module) -> dict[str, str]:
    """Local name → what it was imported as."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _resolved(name: str, names: dict[str, str]) -> str:
    head, _, rest = name.partition(".")
    full = names.get(head, head)
    return f"{full}.{rest}" if rest else full


def _sleep(node: ast.Call, called: str, where: Where) -> Finding:
    first = node.args[0] if node.args else None
    seconds = first.value if isinstance(first, ast.Constant) else None
    short = isinstance(seconds, int | float) and seconds <= SHORT_SLEEP_S
    make = minor if short else major
    fix = "Wait for a condition, or give the time as an argument."
    return make("suite.sleep", f"the test sleeps (`{called}`)", where=where, fix=fix)
