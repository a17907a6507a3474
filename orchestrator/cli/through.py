"""Whether a command goes through a daemon: for every command the same rule."""

from orchestrator.cli.common import say
from orchestrator.settings import Environment
from orchestrator.wiring.reach import named, reach
from orchestrator.wiring.remote import Remote


def daemon_for(environment: Environment, url: str | None) -> Remote | None:
    """The daemon that carries the command out; None: the state folder is worked in. See `wiring.reach.reach`."""
    return reach(environment, url, say)


def named_daemon(environment: Environment, url: str | None) -> Remote | None:
    """The same for what is about the place where it is asked: only a daemon that is named carries it out."""
    return named(environment, url)
