"""Everything that goes wrong as one JSON object: `{"error": "<one sentence>", "findings": [...]}`."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from orchestrator.board.templates import render
from orchestrator.core.errors import BacklogError, EventLogAway, OrchestratorError, SprintLocked, UnknownName
from orchestrator.core.finding import Finding
from orchestrator.core.secrets import redact, redacted
from orchestrator.core.value import Value, escape_json

JSON = "application/json"
LOG = logging.getLogger("orchestrator.server")


class Problem(Value):
    """Why a request failed."""

    error: str
    """One sentence for people."""
    findings: tuple[Finding, ...] = ()
    """Findings on the request's content, if that is the cause."""


class Refused(Exception):
    """Ends a request with this status and sentence."""

    def __init__(self, status: int, error: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(error)
        self.status, self.error, self.findings = status, error, tuple(findings)


def make_problem(
    status: int, error: str, findings: Sequence[Finding] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """Returns the response that tells a problem, without what looks like a secret."""
    told = [redacted(finding.model_dump(mode="json")) for finding in findings]
    return Response(dump_json({"error": redact(error), "findings": told}), status, dict(headers or {}), JSON)


def dump_json(value: Any) -> bytes:
    """Returns JSON that every reader takes: no NaN, no half of a surrogate pair, no control character as it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number of a foreign answer that JSON does not know
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)
    return escape_json(text.encode("utf-8", "replace").decode()).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def _status_of(error: OrchestratorError) -> int:
    """Returns what an error of ours comes to, where the route says nothing else."""
    if isinstance(error, UnknownName):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, SprintLocked):
        return HTTPStatus.CONFLICT
    if isinstance(error, BacklogError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.SERVICE_UNAVAILABLE


def handle_problems(app: FastAPI) -> None:
    """Lets every error of a route end in such an object."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(OrchestratorError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def is_page_wanted(scope: Scope) -> bool:
    """Returns whether a person opens a page."""
    accepted = [value for name, value in scope["headers"] if name == b"accept"]
    is_read = scope["method"] == "GET" and not scope["path"].startswith("/api/")
    return is_read and any(b"text/html" in value for value in accepted)


async def _tell(
    request: Request,
    status: int,
    error: str,
    findings: Sequence[Finding] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Returns the problem as whoever asks reads it: a page, or JSON."""
    if not is_page_wanted(request.scope):
        return make_problem(status, error, findings, headers)
    values = {"title": "Not found" if status == HTTPStatus.NOT_FOUND else "This cannot be shown", "problem": error}
    html = await asyncio.to_thread(render, "problem.html", redacted(values, request.app.state.service.secrets))
    return Response(html, status, dict(headers or {}), "text/html")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    # Whatever a route makes of other errors: this one passes, and the same request is right.
    away = isinstance(error.__cause__, EventLogAway)
    status = HTTPStatus.SERVICE_UNAVAILABLE if away else error.status
    return await _tell(request, status, error.error, error.findings)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, OrchestratorError)
    return await _tell(request, _status_of(error), error.message, error.findings)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _tell(request, HTTPStatus.UNPROCESSABLE_ENTITY, explain_errors(error.errors()))


def explain_errors(details: Sequence[Any]) -> str:
    """Returns what pydantic says of a value, in one sentence that quotes nothing of it."""
    said = [f"{'.'.join(str(part) for part in detail['loc']) or 'body'}: {detail['msg']}" for detail in details[:5]]
    more = f"; and {len(details) - 5} more" if len(details) > 5 else ""
    return "; ".join(said) + more


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_allowed(request.scope))
        return make_problem(error.status_code, f"{headers['allow']} can be asked of this address", headers=headers)
    told = "there is nothing at this address" if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
    return await _tell(request, error.status_code, told, headers=headers)


def _allowed(scope: Scope) -> list[str]:
    """Methods of every route at this address: the framework names those of the first one alone."""
    asked = {name: scope[name] for name in ("type", "path", "root_path", "headers")}

    def has(method: str) -> bool:
        routes = scope["app"].router.routes
        return any(route.matches({**asked, "method": method})[0] is Match.FULL for route in routes)

    return [method for method in ("DELETE", "GET", "POST", "PUT") if has(method)]


async def _unexpected(request: Request, error: Exception) -> Response:
    LOG.error("%s %r failed", request.method, request.url.path, exc_info=error)
    return await _tell(request, HTTPStatus.INTERNAL_SERVER_ERROR, "the daemon failed at this request; its log says why")
