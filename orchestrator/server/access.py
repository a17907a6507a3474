"""Access: a request is let through with the daemon's token, or with a session of its board."""

from http import HTTPStatus
from urllib.parse import quote

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.server.login import has_session, is_same_origin, is_token, path_within
from orchestrator.server.problems import is_page_wanted, make_problem

PUBLIC = frozenset({"/healthz", "/readyz"})
"""Paths that a platform may request without a token."""
LOGIN, STATIC = "/login", "/static/"
"""Where a browser gets in, and what its pages look like: public as well."""
AUTHORIZED = "orchestrator.authorized"
"""In the scope of a request: whether its sender may know everything."""


class Access:
    """Middleware: lets a request through, or answers 401 or 403.

    Every request needs the token, also from this machine: another user, a command in a sandbox or a proxy here is no
    different there.
    """

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Part of ASGI."""
        refusal, path, is_read = self._refusal(scope), scope["path"], scope["method"] == "GET"
        is_public = path == LOGIN or (is_read and (path in PUBLIC or path.startswith(STATIC)))
        app = self._app if refusal is None or is_public else refusal
        await app({**scope, AUTHORIZED: refusal is None}, receive, send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = scope["headers"]
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) == 1 and _is_bearer(given[0], self._token):
            return None
        if not given and has_session(headers, self._token):
            told = "with a session, only pages of this daemon change anything"
            is_ours = scope["method"] == "GET" or is_same_origin(headers)
            return None if is_ours else make_problem(HTTPStatus.FORBIDDEN, told)
        if not given and is_page_wanted(scope):
            query = scope["query_string"].decode("latin-1")
            address = path_within(scope["path"] + (f"?{query}" if query else ""))
            return RedirectResponse(f"{LOGIN}?next={quote(address)}", HTTPStatus.SEE_OTHER)
        needed = "a token is needed: Authorization: Bearer TOKEN, with ORCHESTRATOR_TOKEN or what daemon/token holds"
        told = "the token is not the daemon's" if given else needed
        refused = {"www-authenticate": 'Bearer realm="orchestrator"', "connection": "close"}
        return make_problem(HTTPStatus.UNAUTHORIZED, told, headers=refused)


def _is_bearer(given: bytes, token: str) -> bool:
    scheme, _, named = given.partition(b" ")
    return is_token(named.strip(), token) and scheme.lower() == b"bearer"
