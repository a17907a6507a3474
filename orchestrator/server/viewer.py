"""The board of a state folder where no daemon is: in the running event loop, or in a thread beside other work."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from secrets import token_urlsafe

from anyio.from_thread import start_blocking_portal

from orchestrator.server.app import build_app
from orchestrator.server.listen import serve_http
from orchestrator.server.service import Viewer
from orchestrator.settings import Environment, Settings


@asynccontextmanager
async def serve_board(
    settings: Settings, environment: Environment, *, host: str = "localhost", port: int = 0
) -> AsyncIterator[str]:
    """Serves the board for as long as the context lasts. Yields the address that logs a browser in: what stands behind
    its # is sent to no server. Raises ConfigError for an address that cannot be listened on."""
    # A token of its own: that of a daemon would stay in the terminal, and be good for more than this.
    token = token_urlsafe(32)
    viewer = Viewer(
        settings=settings.model_copy(update={"serve": settings.serve.model_copy(update={"host": host})}),
        environment=environment.with_token(token).model_copy(update={"port": port}),
    )
    async with serve_http(build_app(viewer), viewer.settings, viewer.environment) as address:
        yield f"{address}/login#{token}"


@contextmanager
def board_in_thread(settings: Settings, environment: Environment) -> Iterator[str]:
    """Serves the board beside what the calling thread does. Yields as `serve_board`."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_board(settings, environment)) as link,
    ):
        yield link
