"""Who carries a command out: the daemon that it names, the one at work in its state folder, or the command itself."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.adapters.sprint_lock import holder
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment
from orchestrator.wiring.remote import Remote

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

if TYPE_CHECKING:
    from orchestrator.adapters.daemon_client import DaemonClient

HERE = "here"
"""In place of an address: the command works in the state folder itself, whoever is alive in it."""


def reach(environment: Environment, url: str | None, tell: Callable[[str], None]) -> Remote | None:
    """The daemon at `url`, else at ORCHESTRATOR_URL, else the one that is alive in the state folder and answers.

    None: the command reads and writes the state folder, which is safe beside any daemon: what is read is the same
    record, and an order or an answer is recorded for whoever works on the sprint. That a daemon lives and does not
    answer is told. Raises ConfigError for what is no address of a daemon, for one that the token must not be sent to,
    and when the daemon of the state folder wants another token.
    """
    if (url or environment.url) is None:
        return _alive(environment, tell)
    return named(environment, url)


def named(environment: Environment, url: str | None) -> Remote | None:
    """The daemon at `url`, else at ORCHESTRATOR_URL, None where neither names one. Raises ConfigError."""
    address = url or environment.url
    if not address or address == HERE:
        return None
    living = _living(environment)
    if living is not None and _is_same(address, living[1]):
        return Remote(_client(environment, living[1], own=True))
    return Remote(_client(environment, address, own=False))


def _alive(environment: Environment, tell: Callable[[str], None]) -> Remote | None:
    living = _living(environment)
    if living is None:
        return None
    pid, url = living
    from orchestrator.adapters.daemon_client import DaemonAway, NoDaemon

    client = _client(environment, url, own=True)
    try:
        answers = client.pid()
    except (DaemonAway, NoDaemon):
        answers = None
    except ConfigError as error:
        hint = f"`--url {HERE}` works in {environment.home} without it"
        raise ConfigError(f"{error.message}; {hint}", findings=error.findings) from error
    if answers == pid:
        return Remote(client, found=True)
    tell(f"warning: the daemon of {environment.home} (pid {pid}) does not answer at {url}: its state folder is used")
    return None


def _is_same(address: str, own: str) -> bool:
    """Whether an address is that of the daemon that listens at `own`, perhaps by another name of this machine."""
    named, listening = urlsplit(address), urlsplit(own)
    with suppress(ValueError):
        same = (named.scheme, named.port or 80) == (listening.scheme, listening.port or 80)
        hosts = {named.hostname, listening.hostname}
        return same and (len(hosts) == 1 or hosts <= _LOOPBACK)
    return False


def _living(environment: Environment) -> tuple[int, str] | None:
    """The process and the address of the daemon of the state folder; None: no daemon, or one that begins or ends."""
    folder = StateFolder(environment.home)
    pid = holder(folder.daemon_lock)
    url = _address(folder, pid) if pid is not None else None
    return None if pid is None or url is None else (pid, url)


def _address(folder: StateFolder, pid: int) -> str | None:
    """Where the daemon that holds the folder listens, if it does."""
    try:
        told = json.loads(folder.daemon_address.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("pid") != pid or not isinstance(told.get("url"), str):
        return None
    return str(told["url"])


def _client(environment: Environment, url: str, *, own: bool) -> "DaemonClient":
    """`own`: it is the daemon that is alive in the state folder; no other gets the token that lies there."""
    # Imported here: a command that asks nobody does not wait for it.
    from orchestrator.adapters.daemon_client import DaemonClient

    kept = StateFolder(environment.home).token() if own else None
    return DaemonClient(url, environment.variables, own=own, kept=kept)
