"""The OpenAPI document: what each route refuses, what it takes, and the parts that are named once."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from orchestrator import __version__
from orchestrator.core.command import AnswerBody, OrderBody, PruneBody, ReplanBody
from orchestrator.server.problems import Problem

BODIES: tuple[type[BaseModel], ...] = (
    AnswerBody,
    OrderBody,
    PruneBody,
    ReplanBody,
)
WHY: Mapping[int, str] = {
    401: "No token, or not the daemon's",
    403: "With a session: no page of this daemon sends it",
    404: "There is no such sprint, story or backlog",
    409: "It cannot be done as things are now",
    413: "The body is too large",
    415: "The body is no application/json",
    422: "What was sent is not usable",
    503: "It cannot be done or read at the moment",
}
NEEDS_NOTHING: dict[str, Any] = {"security": []}
GUARDED = (401, 403)
READS = (*GUARDED, 404, 422, 503)
WRITES = (*READS, 409, 413, 415)
TAGS = (
    ("health", "For platforms and Prometheus"),
    ("daemon", "The daemon and the backlogs that it watches"),
    ("sprints", "What the record says of sprints and stories"),
    ("orders", "What people order and answer"),
    ("events", "The log, as it is recorded"),
    ("keeping", "The state folder, and what the daemon's machine has"),
)


def list_refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Responses of a route that tell a problem."""
    return {code: {"model": Problem, "description": WHY[code]} for code in codes}


def describe(
    operation_id: str,
    summary: str,
    model: Any,
    *refused: int,
    status: int = 200,
    takes: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """Returns what a route says of itself: what it answers, what it refuses, and its JSON body."""
    responses: dict[int | str, dict[str, Any]] = {status: {"model": model}, **list_refusals(*refused)}
    extra = {"openapi_extra": describe_body(takes)} if takes is not None else {}
    return {"operation_id": operation_id, "summary": summary, "responses": responses, **extra}


def describe_body(model: type[BaseModel]) -> dict[str, Any]:
    """Returns a route's JSON body."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def make_document(app: FastAPI) -> dict[str, Any]:
    """Returns the whole document of the app's routes."""
    made = get_openapi(
        title="Sprint Orchestrator",
        version=__version__,
        summary="What `orchestrator serve` answers: the command line's data and orders over HTTP.",
        routes=app.routes,
        tags=[{"name": name, "description": told} for name, told in TAGS],
    )
    components = made.setdefault("components", {})
    _, bodies = models_json_schema(
        [(model, "validation") for model in BODIES], ref_template="#/components/schemas/{model}"
    )
    known = components.setdefault("schemas", {})
    known |= {name: schema for name, schema in bodies.get("$defs", {}).items() if name not in known}
    for name in ("HTTPValidationError", "ValidationError"):
        known.pop(name, None)
    components["schemas"] = dict(sorted(known.items()))
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "ORCHESTRATOR_TOKEN, else daemon/token"}
    }
    made["security"] = [{"token": []}]
    return made
