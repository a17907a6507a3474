"""`serve`: the daemon, until it is asked to stop; `board`: its pages of a state folder, without a daemon."""

import asyncio
import json
import re
import signal
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.app.trust import load_settings
from orchestrator.cli.common import Context, Exit, command, command_group, say
from orchestrator.cli.run import CallLogOption, ProviderOption, ScriptOption, run_interruptible
from orchestrator.core.event import Event
from orchestrator.settings import Environment, Settings, forget_secrets
from orchestrator.settings.options import ServeOptions

if TYPE_CHECKING:
    from orchestrator.daemon.serve import Daemon

app = command_group()
# A URL, or git's short form `user@host:path`; everything else is a path.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/@\s]+@[^/:\s]+:")
FLUSH_S = 3.0
"""Seconds that the last log lines get."""

BacklogsOption = Annotated[
    list[Path] | None,
    typer.Option("--backlog", metavar="FILE", help="A backlog to watch: a file or a folder; repeatable."),
]
RepoOption = Annotated[str | None, typer.Option(metavar="PATH|URL", help="The repository; as serve.repo.")]
PushOption = Annotated[str | None, typer.Option(metavar="BRANCH", help="Push each result there; as serve.push_to.")]
HostOption = Annotated[str | None, typer.Option(help="Address to listen on; as serve.host.")]
PortOption = Annotated[int | None, typer.Option(help="Port to listen on; as serve.port, before PORT.")]

BoardHostOption = Annotated[str, typer.Option(help="Address to listen on.")]
BoardPortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open it in a browser.")]


@command(app, "serve", "url", "as_json")
def serve_command(
    context: Context,
    backlog: BacklogsOption = None,
    repo: RepoOption = None,
    push_to: PushOption = None,
    provider: ProviderOption = None,
    script: ScriptOption = None,
    call_log: CallLogOption = None,
    host: HostOption = None,
    port: PortOption = None,
) -> int:
    """Watch backlogs, build their stories, and serve HTTP, until SIGTERM or SIGINT.

    Prints one JSON line per event. SIGTERM: running calls may end within shutdown.grace_s, exit 0; a second SIGTERM
    stops at once. Settings count from the next start on. Exit 70: another daemon took its place.

    Example: orchestrator serve --backlog backlog.csv --repo ./app --provider anthropic --set provider.model=MODEL-ID
    """
    settings, environment = load_settings(context.config, [*context.overrides, *_overrides(repo, push_to, host, port)])
    say(f"settings: {environment.config_file or 'the packaged ones'}")
    if port is not None:
        environment = environment.model_copy(update={"port": port})
    options = ServeOptions(backlogs=tuple(backlog or ()), provider=provider, script=script, call_log=call_log)
    return asyncio.run(_serve(options, settings, environment))


def _overrides(repo: str | None, push_to: str | None, host: str | None, port: int | None) -> Iterator[str]:
    # JSON is YAML, and quotes whatever needs it. A path as typed starts from here, not from the configuration.
    if repo is not None:
        here = repo if _ADDRESS.match(repo) else str(Path(repo).absolute())
        yield f"serve.repo={json.dumps(here)}"
    for name, value in (("push_to", push_to), ("host", host), ("port", port)):
        if value is not None:
            yield f"serve.{name}={json.dumps(value)}"


async def _serve(options: ServeOptions, settings: Settings, environment: Environment) -> int:
    # Imported here: the engine and the server take a second to import, and --help must not.
    from orchestrator.daemon.serve import Daemon
    from orchestrator.daemon.startup import add_token, make_folder_event
    from orchestrator.engine.durable import send_traces
    from orchestrator.server.app import build_app
    from orchestrator.server.listen import serve_http
    from orchestrator.server.metrics import Metrics
    from orchestrator.storage.log_stream import LogStream

    environment, warning = await asyncio.to_thread(add_token, environment)
    metrics, stream = Metrics(), LogStream(sys.stdout, settings.log, environment.variables)
    send_traces(environment.variables)

    def listen(event: Event) -> None:
        metrics.observe(event)
        stream.event(event)

    if warning is not None:
        listen(make_folder_event(warning))
    daemon = Daemon(options, settings, environment, listen=listen)
    try:
        async with (
            _signals(daemon),
            daemon,
            serve_http(build_app(daemon, metrics), settings, environment) as address,
            daemon.announced(address),
        ):
            await daemon.run()
    finally:
        await asyncio.to_thread(stream.close, FLUSH_S)
    return Exit.INTERRUPTED if daemon.hurried else Exit.GOOD


@asynccontextmanager
async def _signals(daemon: "Daemon") -> AsyncIterator[None]:
    """Stops it on SIGTERM and SIGINT, at once on a second one."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending


@command(app, "board", "url", "as_json")
def board_command(
    context: Context, host: BoardHostOption = "localhost", port: BoardPortOption = 0, open_it: OpenOption = False
) -> int:
    """Serve the board of the state folder to a browser, without a daemon, until Ctrl-C.

    Prints the address with a token of its own, which ends with it. Shows all sprints of the state folder; orders and
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
