"""Where the daemon of a state folder is found, and the token that it keeps there for its own user."""

import json

from orchestrator.adapters.sprint_lock import holder
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.settings import Environment


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
