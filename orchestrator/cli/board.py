"""`board`: the board of a state folder in a browser, without a daemon."""

import asyncio
import webbrowser
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, command, command_group, say
from orchestrator.cli.run import run_interruptible
from orchestrator.settings import forget_secrets

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
    # Imported here: the server takes half a second to import, and --help must not.
    from orchestrator.client.discovery import find_daemon
    from orchestrator.server.viewer import serve_board

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
