"""The daemon's HTTP interface as one application."""

from typing import TYPE_CHECKING

from fastapi import FastAPI

from orchestrator import __version__
from orchestrator.server import (
    board_routes,
    daemon_routes,
    events,
    sprint_routes,
)
from orchestrator.server.access import Access
from orchestrator.server.limits import BodyLimit, ResponseHeaders
from orchestrator.server.metrics import Metrics
from orchestrator.server.problems import handle_problems
from orchestrator.server.service import Service, Viewer

if TYPE_CHECKING:
    from orchestrator.daemon.serve import Daemon


def build_app(served: "Daemon | Viewer", metrics: Metrics | None = None) -> FastAPI:
    """Returns everything that is answered over HTTP; `metrics` are those that the daemon's events are fed to.

    Requests need the token of `served.environment`, which has one. Needs no start: what it begins in the background
    ends with `listen.serve_http`, or with `get_service(app).close()`.
    """
    token = served.environment.token
    assert token, "a daemon has a token"
    app = make_routes()
    app.state.service = Service(served, metrics or Metrics())
    handle_problems(app)
    # The last one added is the first one asked.
    app.add_middleware(BodyLimit, limit=served.settings.serve.body_limit_kb * 1024)
    app.add_middleware(Access, token=token)
    app.add_middleware(ResponseHeaders)
    return app


def make_routes() -> FastAPI:
    """Returns the routes alone, for their OpenAPI document."""
    # No page of documentation: those load scripts of others.
    app = FastAPI(
        title="Sprint Orchestrator",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in (
        daemon_routes.health,
        daemon_routes.router,
        sprint_routes.router,
        sprint_routes.orders,
        events.router,
        daemon_routes.keeping,
        board_routes.router,
    ):
        app.include_router(router)
    return app
