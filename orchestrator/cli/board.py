"""`board`: the board of a state folder in a browser, without a daemon."""

import asyncio
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from secrets import token_urlsafe
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, command, command_group, say
from orchestrator.cli.run import run_interruptible
from orchestrator.settings import Environment, Settings, forget_secrets

app = command_group()

HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open it in a browser.")]


@command(app, "board", "url", "as_json")
def board_command(
    context: Context, host: HostOption = "localhost", port: PortOption = 0, open_it: OpenOption = False
) -> int:
    """Serve the board of the state folder to a browser, without a daemon, until Ctrl-C.

    Prints the address with a token of its own, which ends with it. Shows what sprints do, whoever runs them; orders and
    answers are recorded for the process that runs the sprint. Backlogs are submitted to `orchestrator serve`.

    Example: orchestrator board --open
    """
    # Imported here: it brings what connects to daemons.
    from orchestrator.client.discovery import find_daemon

    settings, environment = context.settings, context.environment
    if (daemon := find_daemon(environment)) is not None:
        say(f"the daemon of {environment.home} has its own board, which takes backlogs, too: {daemon}")
    forget_secrets()

    async def serve() -> None:
        async with serve_board(settings, environment, host=host, port=port) as link:
            print(f"The board of {environment.home}, until Ctrl-C:\n{link}", flush=True)
            if open_it:
                await asyncio.to_thread(webbrowser.open, link)
            await asyncio.Event().wait()

    run_interruptible(serve())
    return Exit.GOOD


@asynccontextmanager
async def serve_board(
    settings: Settings, environment: Environment, *, host: str = "localhost", port: int = 0
) -> AsyncIterator[str]:
    """Serves the board for as long as the context lasts. Yields the address that logs a browser in: what stands behind
    its # is sent to no server. Raises ConfigError for an address that cannot be listened on."""
    # Imported here: the server takes half a second to import, and --help must not.
    from orchestrator.server.app import build_app
    from orchestrator.server.listen import serve_http
    from orchestrator.server.service import Viewer

    # A token of its own: that of a daemon would stay in the terminal, and be good for more than this.
    token = token_urlsafe(32)
    viewer = Viewer(
        settings=settings.model_copy(update={"serve": settings.serve.model_copy(update={"host": host})}),
        environment=environment.with_token(token).model_copy(update={"port": port}),
    )
    async with serve_http(build_app(viewer), viewer.settings, viewer.environment) as address:
        yield f"{address.url}/login#{token}"


@contextmanager
def board_in_thread(settings: Settings, environment: Environment) -> Iterator[str]:
    """Serves the board in a thread of its own, beside what the main thread does. Yields as `serve_board`."""
    from anyio.from_thread import start_blocking_portal

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_board(settings, environment)) as link,
    ):
        yield link
