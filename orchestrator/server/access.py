"""Access: requests with the token; with `--no-auth`, direct requests of this machine."""

import asyncio
import ipaddress
from functools import partial
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.board.templates import render
from orchestrator.core.errors import ConfigError
from orchestrator.server.login import has_session, is_same_origin, is_token, path_within
from orchestrator.server.problems import is_page_wanted, make_problem
from orchestrator.settings import Environment, Settings

PUBLIC = frozenset({"/healthz", "/readyz"})
"""Paths that a platform may request without a token."""
LOGIN, STATIC = "/login", "/static/"
"""Where a browser gets in, and what its pages look like: public as well."""
_SAFE = frozenset({"GET", "HEAD"})
AUTHORIZED = "orchestrator.authorized"
"""In the scope of a request: whether its sender may know everything."""
_LOCAL = ("127.0.0.1", "::1")
_PROXIED = frozenset({b"via", b"forwarded", b"x-real-ip"})


def choose_hosts(settings: Settings, environment: Environment) -> tuple[str, ...]:
    """Addresses to listen on: `serve.host`; without it every one when PORT is set, else loopback alone."""
    named = settings.serve.host
    if named:
        return _LOCAL if named.lower() == "localhost" else (named.strip("[]"),)
    asked = environment.variables.get("PORT", "").strip()  # by a platform; a port that a person names is no such wish
    return ("0.0.0.0", "::") if asked else _LOCAL


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches the address; a name other than localhost counts as any address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def require_token(bound_host: str, token: str | None) -> None:
    """Raises ConfigError when others than this machine reach the address and no token keeps them out."""
    if not is_loopback(bound_host) and not token:
        raise ConfigError(
            f"the variable ORCHESTRATOR_TOKEN is not set, and the daemon would listen on {bound_host}, where others "
            "reach it: set it to a long random text, or listen on this machine alone with serve.host=127.0.0.1"
        )


class Access:
    """Middleware: lets a request through, or answers 401 or 403.

    With a token every request needs it, also from this machine: another user, a command in a sandbox or a proxy here
    is no different there. Without one (`--no-auth`), direct requests of this machine pass, and nothing that a browser
    sends for another site or that shows that it came through a proxy.
    """

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = token or None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None or _is_public(scope):
            await self._app({**scope, AUTHORIZED: refusal is None}, receive, send)
            return
        await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = scope["headers"]
        if self._token is None:
            told = "this daemon serves its own machine: only direct requests to a loopback address, from no web page"
            return (
                None
                if _is_direct(headers)
                else make_problem(HTTPStatus.FORBIDDEN, told, headers={"connection": "close"})
            )
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) == 1 and _is_bearer(given[0], self._token):
            return None
        if not given and has_session(headers, self._token):
            told = "with a session, only pages of this daemon change anything"
            is_ours = scope["method"] in _SAFE or is_same_origin(headers)
            return None if is_ours else make_problem(HTTPStatus.FORBIDDEN, told)
        if not given and is_page_wanted(scope):
            return _lead_to_login(scope)
        needed = "a token is needed: Authorization: Bearer TOKEN, with ORCHESTRATOR_TOKEN or what daemon/token holds"
        told = "the token is not the daemon's" if given else needed
        refused = {"www-authenticate": 'Bearer realm="orchestrator"', "connection": "close"}
        return make_problem(HTTPStatus.UNAUTHORIZED, told, headers=refused)


def _is_public(scope: Scope) -> bool:
    path, is_read = scope["path"], scope["method"] in _SAFE
    return path == LOGIN or (is_read and (path in PUBLIC or path.startswith(STATIC)))


def _lead_to_login(scope: Scope) -> ASGIApp:
    """Returns the way to the login page and back.

    A browser that follows a link of another site leaves a strict cookie out. From our own page, which loads itself
    again, it brings the cookie along, so links can be shared.
    """
    query = scope["query_string"].decode("latin-1")
    address = path_within(scope["path"] + (f"?{query}" if query else ""))
    if (b"sec-fetch-site", b"cross-site") in scope["headers"]:
        return partial(_send_continuation, address)
    return RedirectResponse(f"{LOGIN}?next={quote(address)}", HTTPStatus.SEE_OTHER)


async def _send_continuation(address: str, scope: Scope, receive: Receive, send: Send) -> None:
    html = await asyncio.to_thread(render, "continue.html", {"address": address})  # the first one reads the template
    await HTMLResponse(html)(scope, receive, send)


def _is_bearer(given: bytes, token: str) -> bool:
    scheme, _, named = given.partition(b" ")
    return is_token(named.strip(), token) and scheme.lower() == b"bearer"


def _is_direct(headers: list[tuple[bytes, bytes]]) -> bool:
    """Returns whether the request names this machine, comes through no proxy, and is no page's of another origin.

    A page whose name is made to resolve to loopback still names itself.
    """
    names = [value.decode("latin-1") for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    sites = {value.strip().lower() for name, value in headers if name == b"sec-fetch-site"}
    hosts = [_host(f"//{name}") for name in names] + [_host(origin) for origin in origins]
    return (
        all(host is not None and is_loopback(host) for host in hosts)
        and sites <= {b"same-origin", b"none"}  # another port of localhost is `same-site`
        and not any(name in _PROXIED or name.startswith(b"x-forwarded-") for name, _ in headers)
    )


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # not an address
        return None
