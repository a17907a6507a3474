"""Finds the process that runs a command: a named daemon, or the command itself in its state folder."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.client.local import LocalFolder
from orchestrator.core.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.storage.locks import holder
from orchestrator.storage.state_folder import StateFolder

if TYPE_CHECKING:
    from orchestrator.client.daemon import Daemon

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
HERE = "here"
"""In place of an address: the command works in the state folder, also where ORCHESTRATOR_URL names a daemon."""


def connect(environment: Environment, settings: Settings, url: str | None) -> "Daemon | LocalFolder":
    """Returns the daemon at `url`, else at ORCHESTRATOR_URL, else the state folder.

    The folder is safe beside any daemon: what is read is the same record, and an order or an answer is recorded for the
    process that holds the sprint. Raises ConfigError for what is no address of a daemon, for one that the token must
    not be sent to, and where the log of the folder's daemon is in a database that this command was not given.
    """
    named = connect_named(environment, url)
    if named is not None:
        return named
    # Without the log every story would look as if it had not started.
    no_log = environment.database_url is None and not StateFolder.of(environment).event_database.exists()
    if no_log and (own := find_daemon(environment)) is not None:
        raise ConfigError(f"the daemon of {environment.home} uses another database: set DATABASE_URL, or --url {own}")
    return LocalFolder(environment, settings)


def connect_named(environment: Environment, url: str | None) -> "Daemon | None":
    """Returns the daemon at `url`, else at ORCHESTRATOR_URL; None where neither names one. Raises ConfigError."""
    address = url or environment.url
    if not address or address == HERE:
        return None
    own = find_daemon(environment)
    if own is not None and _is_same(address, own):
        return _connect(environment, own, own=True)
    return _connect(environment, address, own=False)


def connect_own(environment: Environment) -> "Daemon":
    """Returns the daemon of the state folder. Raises ConfigError where there is none."""
    url = find_daemon(environment)
    if url is None:
        raise ConfigError(
            f"no daemon answers for {environment.home}: start one with `orchestrator serve`, or name one with --url"
        )
    return _connect(environment, url, own=True)


def find_daemon(environment: Environment) -> str | None:
    """Returns the address of the daemon of the state folder; None: no daemon, or one that starts or ends."""
    folder = StateFolder.of(environment)
    pid = holder(folder.daemon_lock)
    if pid is None:
        return None
    try:
        known = json.loads(folder.daemon_address.read_bytes())
    except (OSError, ValueError):  # no daemon, or it is just starting
        return None
    # A killed daemon leaves its address behind.
    is_its_own = isinstance(known, dict) and known.get("pid") == pid and isinstance(known.get("url"), str)
    return str(known["url"]) if is_its_own else None


def _is_same(address: str, own: str) -> bool:
    """Returns whether an address is that of the daemon that listens at `own`, perhaps by another name."""
    named, listening = urlsplit(address), urlsplit(own)
    with suppress(ValueError):  # `port` raises for an invalid number
        same = (named.scheme, named.port or 80) == (listening.scheme, listening.port or 80)
        hosts = {named.hostname, listening.hostname}
        return same and (len(hosts) == 1 or hosts <= _LOOPBACK)
    return False


def _connect(environment: Environment, url: str, *, own: bool) -> "Daemon":
    """Connects to a daemon. `own`: it runs in this state folder; no other daemon gets the token that lies there."""
    # Imported here: a command that no daemon carries out does not wait for the HTTP library.
    from orchestrator.client.daemon import Daemon
    from orchestrator.client.http import DaemonClient

    kept = StateFolder.of(environment).token() if own else None
    return Daemon(DaemonClient(url, environment.variables, own=own, kept=kept))
