"""What belongs to the process of a daemon: its token, its log lines, its watchdog, and where it is found."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from orchestrator.core.event import Level
from orchestrator.daemon.serve import Daemon
from orchestrator.files.atomic_file import replace_content
from orchestrator.files.process import Watchdog
from orchestrator.settings import Environment, Settings
from orchestrator.storage.log_stream import LogStream
from orchestrator.storage.state_folder import StateFolder

STDOUT = 1


def with_token(environment: Environment) -> tuple[Environment, str | None]:
    """Returns it with a token: ORCHESTRATOR_TOKEN, else that of the state folder; and the warning of `make` for that.

    Raises ConfigError. Blocks.
    """
    if environment.token is not None:
        return environment, None
    folder = StateFolder(environment.home)
    warning = folder.make()
    return environment.with_token(folder.make_token()), warning


def open_log(settings: Settings, environment: Environment) -> LogStream:
    """Prints events on stdout from now on; to be closed."""
    return LogStream(STDOUT, settings.log, environment.variables)


def watchdog(settings: Settings) -> Watchdog:
    """Ends the process when the event loop stands still for `serve.watchdog_s`."""
    return Watchdog(settings.serve.watchdog_s)


@asynccontextmanager
async def found_at(url: str, daemon: Daemon) -> AsyncIterator[None]:
    """Commands of its state folder find the daemon at `url` inside."""
    place = StateFolder(daemon.environment.home).daemon_address
    await asyncio.to_thread(replace_content, place, json.dumps({"url": url, "pid": os.getpid()}).encode())
    await daemon.emit("daemon_listens", f"the daemon answers at {url}", url=url)
    if daemon.environment.token is None:
        told = f"--no-auth: every user and program of this machine may give orders at {url}"
        await daemon.emit("daemon_unguarded", told, level=Level.WARN, url=url)
    try:
        yield
    finally:
        with suppress(OSError):  # a disk that takes nothing any more: whoever reads it finds nobody there
            await asyncio.to_thread(place.unlink, missing_ok=True)
