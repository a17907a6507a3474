"""Settings read anew while the daemon runs: what changes at once, what only with the next start."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.settings import Settings

LATER = ("serve.host", "serve.port", "serve.watchdog_s", "sandbox.", "prompts.dir", "log.format")
"""What is read once, when the daemon starts."""


@dataclass(frozen=True)
class Change:
    """What differs between two readings of the settings, by dotted names."""

    changed: tuple[str, ...]
    later: tuple[str, ...]
    """Those of `changed` that the next start brings."""

    @property
    def told(self) -> str:
        """For people."""
        if not self.changed:
            return "the settings are as they were"
        now = [name for name in self.changed if name not in self.later]
        told = f"the settings are read anew: {', '.join(now) or 'nothing'} from now on"
        return f"{told}; with the next start: {', '.join(self.later)}" if self.later else told


def change_between(before: Settings, after: Settings) -> Change:
    """Names whose values differ."""
    old, new = dict(_leaves(before.model_dump(mode="json"))), dict(_leaves(after.model_dump(mode="json")))
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return Change(tuple(changed), tuple(name for name in changed if name.startswith(LATER)))


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
