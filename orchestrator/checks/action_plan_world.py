"""What a plan is held against, and what becomes of it while the plan's actions are walked through. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rapidfuzz import process


@dataclass(frozen=True, kw_only=True)
class PlanWorld:
    """The files that are there, and those that were shown."""

    paths: frozenset[str]
    """Every file below the root."""
    texts: Mapping[str, str]
    """Texts of those of them that a plan names; a file without one is no text that could be edited."""
    context: frozenset[str] | None = None
    """Files and pages that were shown in full in this turn; None: nobody knows, so the rule is not checked."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder above a file."""
        return frozenset(above for path in self.paths for above in folders_above(path))

    def near(self, path: str) -> str:
        """The existing path most like this one, "" when none is."""
        found = process.extractOne(path, sorted(self.paths), score_cutoff=70)
        return found[0] if found else ""


def folders_above(path: str) -> Iterable[str]:
    """The folders a path lies in."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


@dataclass
class Walked:
    """The tree as the actions so far have left it."""

    world: PlanWorld
    changes: dict[str, str | None] = field(default_factory=dict)
    """Path → its new text, None for a file that is gone."""
    shown: set[str] = field(default_factory=set)
    """Files that the plan itself wrote whole."""

    def exists(self, path: str) -> bool:
        """Whether a file is there now."""
        return self.changes[path] is not None if path in self.changes else path in self.world.paths

    def text(self, path: str) -> str | None:
        """Its text now; None for none, and for what is no text."""
        return self.changes[path] if path in self.changes else self.world.texts.get(path)

    def is_shown(self, path: str) -> bool:
        """Whether its author can know what it holds; True where nobody knows what was shown."""
        return self.world.context is None or path in self.world.context or path in self.shown

    def blocked(self, path: str) -> str:
        """What stands in the way of a file here: a folder, or a file above; "" when nothing does.

        What the plan takes away counts still: files are written before others are gone.
        """
        paths = {*self.world.paths, *(name for name, text in self.changes.items() if text is not None)}
        above = next((up for up in folders_above(path) if up in paths), None)
        if above is not None:
            return f"`{above}` is a file, no folder"
        if path in self.world.folders or any(name.startswith(f"{path}/") for name in self.changes):
            return f"`{path}` is a folder"
        return ""

    def put(self, path: str, text: str) -> None:
        """A file that the plan wrote whole."""
        self.changes[path] = text
        self.shown.add(path)

    def gone(self, path: str) -> None:
        """A file that the plan took away."""
        self.changes[path] = None
        self.shown.discard(path)
