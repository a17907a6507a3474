"""Which daemon a command talks to, if any: the one it names, or the one that holds the state folder."""

import json
from typing import TYPE_CHECKING

from orchestrator.adapters.sprint_lock import holder
from orchestrator.settings import Environment

if TYPE_CHECKING:
    from orchestrator.adapters.daemon_client import DaemonClient


def client_of(environment: Environment, url: str | None) -> "DaemonClient | None":
    """A client of the daemon at `url`, else of ORCHESTRATOR_URL; None: the state folder is read.

    Raises ConfigError for what is no address of a daemon, or one that the token must not be sent to.
    """
    address = url or environment.url
    return _client(environment, address) if address else None


def living(environment: Environment) -> "DaemonClient | None":
    """A client of the daemon that is alive in this state folder and listens; None where there is none."""
    folder = environment.home / "daemon"
    pid = holder(folder / "lock")
    if pid is None:
        return None
    try:
        told = json.loads((folder / "address.json").read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("pid") != pid or not isinstance(told.get("url"), str):
        return None
    return _client(environment, told["url"])


def _client(environment: Environment, url: str) -> "DaemonClient":
    # Imported here: a command that asks nobody does not wait for it.
    from orchestrator.adapters.daemon_client import DaemonClient

    return DaemonClient(url, environment.variables)
