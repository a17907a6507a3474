"""Which process carries a command out: a named daemon, the one of the state folder, or the command itself."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchestrator.client.local import LocalFolder
from orchestrator.core.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.storage.locks import holder
from orchestrator.storage.state_folder import StateFolder


def living_daemon(environment: Environment) -> tuple[int, str] | None:
    """Returns process and address of the daemon of the state folder; None: no daemon, or one that starts or ends."""
    folder = StateFolder(environment.home)
    pid = holder(folder.daemon_lock)
    if pid is None:
        return None
    try:
        known = json.loads(folder.daemon_address.read_bytes())
    except (OSError, ValueError):
        return None
    is_its_own = isinstance(known, dict) and known.get("pid") == pid and isinstance(known.get("url"), str)
    return (pid, str(known["url"])) if is_its_own else None


def kept_token(environment: Environment) -> str | None:
    """Returns the token of the state folder; None where there is none."""
    return StateFolder(environment.home).token()


if TYPE_CHECKING:
    from orchestrator.client.daemon import Daemon

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
HERE = "here"
"""In place of an address: the command works in the state folder itself, whatever is alive in it."""


def connect(
    environment: Environment, settings: Settings, url: str | None, tell: Callable[[str], None]
) -> "Daemon | LocalFolder":
    """Returns the daemon at `url`, else at ORCHESTRATOR_URL, else the one alive in the state folder that answers.

    Else the state folder itself, which is safe beside any daemon: what is read is the same record, and an order or an
    answer is recorded for the process that holds the sprint. A daemon that is alive and does not answer is reported.
    Raises ConfigError for what is no address of a daemon, for one that the token must not be sent to, and when the
    daemon of the state folder wants another token.
    """
    here = LocalFolder(environment, settings)
    address = url or environment.url
    if address is None:
        return _alive(environment, here, tell) or here
    return named_daemon(environment, settings, url) or here


def named_daemon(environment: Environment, settings: Settings, url: str | None) -> "Daemon | None":
    """Returns the daemon at `url`, else at ORCHESTRATOR_URL; None where neither names one. Raises ConfigError."""
    address = url or environment.url
    if not address or address == HERE:
        return None
    here, living = LocalFolder(environment, settings), living_daemon(environment)
    if living is not None and _is_same(address, living[1]):
        return _daemon(environment, here, living[1], own=True)
    return _daemon(environment, here, address, own=False)


def _alive(environment: Environment, here: LocalFolder, tell: Callable[[str], None]) -> "Daemon | None":
    living = living_daemon(environment)
    if living is None:
        return None
    pid, url = living
    from orchestrator.client.http import DaemonAway, NoDaemon

    daemon = _daemon(environment, here, url, own=True, found=True)
    try:
        if daemon.client.pid() == pid:
            return daemon
    except (DaemonAway, NoDaemon):
        pass
    except ConfigError as error:
        hint = f"`--url {HERE}` works in {environment.home} without it"
        raise ConfigError(f"{error.message}; {hint}", findings=error.findings) from error
    tell(f"warning: the daemon of {environment.home} (pid {pid}) does not answer at {url}: its state folder is used")
    return None


def _is_same(address: str, own: str) -> bool:
    """Returns whether an address is that of the daemon that listens at `own`, perhaps by another name."""
    named, listening = urlsplit(address), urlsplit(own)
    with suppress(ValueError):
        same = (named.scheme, named.port or 80) == (listening.scheme, listening.port or 80)
        hosts = {named.hostname, listening.hostname}
        return same and (len(hosts) == 1 or hosts <= _LOOPBACK)
    return False


def _daemon(environment: Environment, here: LocalFolder, url: str, *, own: bool, found: bool = False) -> "Daemon":
    """`own`: it is the daemon that is alive in the state folder; no other gets the token that lies there."""
    # Imported here: a command that no daemon carries out does not wait for the HTTP library.
    from orchestrator.client.daemon import Daemon
    from orchestrator.client.http import DaemonClient

    kept = kept_token(environment) if own else None
    return Daemon(DaemonClient(url, environment.variables, own=own, kept=kept), here, found=found)
