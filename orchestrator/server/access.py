"""Who may ask: anybody on this machine while the daemon listens to nobody else, elsewhere whoever has the token."""

import hmac
import ipaddress
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.errors import ConfigError
from orchestrator.server.problems import problem
from orchestrator.settings import Environment, Settings

PUBLIC = frozenset({"/healthz", "/readyz"})
"""What a platform asks without a token."""
AUTHORIZED = "orchestrator.authorized"
"""In the scope of a request: whether whoever asks may know everything."""
PROVEN = "orchestrator.proven"
"""In the scope of a request: whether it brought the token, and was not let through for where it came from."""
_LOCAL = ("127.0.0.1", "::1")


def hosts_of(settings: Settings, environment: Environment) -> tuple[str, ...]:
    """Addresses to listen on: `serve.host`; without it every one when PORT is set, else loopback alone."""
    named = settings.serve.host
    if named:
        return _LOCAL if named.lower() == "localhost" else (named.strip("[]"),)
    asked = environment.variables.get("PORT", "").strip()  # by a platform; a port that a person names is no such wish
    return ("0.0.0.0", "::") if asked else _LOCAL


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a name other than localhost counts as any address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def require_token(bound_host: str, token: str | None) -> None:
    """Raises ConfigError when others than this machine reach the address and no token keeps them out."""
    if not is_loopback(bound_host) and not (token or "").strip():
        raise ConfigError(
            f"the variable ORCHESTRATOR_TOKEN is not set, and the daemon would listen on {bound_host}, where others "
            "reach it: set it to a long random text, or listen on this machine alone with serve.host=127.0.0.1"
        )


class Access:
    """Middleware: lets a request through, or answers 401 or 403.

    A token that is not the daemon's is refused everywhere. While the daemon listens on loopback alone, requests
    without one are those of this machine's users; they are told from a web page's in a browser here, which names
    another host or its origin.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], token: str | None) -> None:
        self._app = app
        self._open = all(is_loopback(host) for host in hosts)
        self._token = (token or "").strip().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        given = [value for name, value in headers if name == b"authorization"]
        named = bool(given) and self._token != b""
        proven = named and self._is_right(given)
        authorized = proven or (not named and self._open and _is_local(headers))
        if authorized or (scope["path"] in PUBLIC and scope["method"] in {"GET", "HEAD"}):
            await self._app({**scope, AUTHORIZED: authorized, PROVEN: proven}, receive, send)
            return
        await self._refusal(named)(scope, receive, send)

    def _is_right(self, given: list[bytes]) -> bool:
        scheme, _, token = given[0].partition(b" ")
        right = hmac.compare_digest(token.strip(), self._token)
        return right and len(given) == 1 and scheme.lower() == b"bearer"

    def _refusal(self, given: bool) -> ASGIApp:
        if self._open and not given:
            told = "this daemon serves its own machine: only requests to a loopback address, from no web page"
            return problem(HTTPStatus.FORBIDDEN, told, headers={"connection": "close"})
        told = "the token is not the daemon's" if given else "a token is needed: Authorization: Bearer TOKEN"
        headers = {"www-authenticate": 'Bearer realm="orchestrator"', "connection": "close"}
        return problem(HTTPStatus.UNAUTHORIZED, told, headers=headers)


def _is_local(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the request names this machine, and no page of another origin sends it.

    A page whose name is made to resolve to loopback still names itself; a proxy hands on the name it was asked by.
    """
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    proxied = any(name in {b"forwarded", b"x-forwarded-for", b"x-forwarded-host"} for name, _ in headers)
    named = [_host(f"//{host}") for host in hosts] + [_host(origin) for origin in origins]
    return not proxied and len(hosts) <= 1 and all(host is not None and is_loopback(host) for host in named)


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
