"""What is installed for a project: which package brings which module, and who requires whom."""

from collections.abc import Iterable, Mapping
from functools import cached_property

from pydantic import Field

from orchestrator.domain.base import Value


class Installed(Value):
    """One package as its own metadata tells it. Names are PEP 503 for Python, as in package.json for Node."""

    modules: tuple[str, ...] = ()
    """Dotted names under which Python imports it: packages and modules; of a namespace the parts inside it."""
    requires: tuple[str, ...] = ()
    """Names of what it requires; only those that are installed too count."""
    extras: tuple[str, ...] = ()
    """Names of what its extras, or its optional and peer dependencies, require."""


class InstalledPackages(Value):
    """The packages of one story's environment; empty where nothing is known of them."""

    python: Mapping[str, Installed] = Field(default_factory=dict)
    node: Mapping[str, Installed] = Field(default_factory=dict)

    def python_bringing(self, module: str) -> frozenset[str]:
        """Returns the distributions that bring a dotted module, or a part of it; none where nobody does."""
        parts = module.split(".")
        for end in range(len(parts), 0, -1):
            if found := self._bringing.get(".".join(parts[:end])):
                return found
        return frozenset()

    def python_reached(self, declared: Iterable[str]) -> frozenset[str]:
        """Returns the distributions that these or their extras require, and what those require in turn."""
        return _reached(self.python, declared)

    def node_reached(self, declared: Iterable[str]) -> frozenset[str]:
        """Returns the Node packages that these require, and what those require in turn."""
        return _reached(self.node, declared)

    @cached_property
    def _bringing(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for name, one in self.python.items():
            for module in one.modules:
                found.setdefault(module, set()).add(name)
        return {module: frozenset(names) for module, names in found.items()}


def _reached(packages: Mapping[str, Installed], declared: Iterable[str]) -> frozenset[str]:
    own = [packages[name] for name in declared if name in packages]
    seen: set[str] = set()
    waiting = [needed for one in own for needed in (*one.requires, *one.extras)]
    while waiting:
        name = waiting.pop()
        if name in packages and name not in seen:
            seen.add(name)
            waiting += packages[name].requires
    return frozenset(seen)
