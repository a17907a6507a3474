"""The closed world of one story: what may be written and what may be depended on.

The result of the project scan: facts about the current project for personas.

The architecture record: what the finished stories of a sprint have settled, and for whom it counts.

The packages that are installed for a story.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from pydantic import Field

from orchestrator.core.paths import RepoPath
from orchestrator.core.value import Value


class FileExports(Value):
    """Names another file may import from this one."""

    path: str
    names: tuple[str, ...]


class Surface(Value):
    """The project at one commit, small enough for a prompt. Paths are relative, sorted."""

    commit: str
    files: tuple[str, ...]
    exports: tuple[FileExports, ...] = ()
    dependencies: tuple[str, ...] = ()
    """Names from every manifest, normalised."""
    runtime: str = ""
    """Facts from manifests that matter to a plan, e.g. `requires-python >=3.11`; empty when unknown."""
    runtimes: dict[str, str] = {}
    """The same of projects inside the project, by their folders."""
    versions: dict[str, str] = {}
    """Dependency → the version that its manifest asks for, where it asks for one."""
    imports: dict[str, tuple[str, ...]] = {}
    """File → the project's files that it imports."""
    map: str = ""
    """The files that the story is about, with what they define; "" where no story asked."""


class Amendment(Value):
    """Files and packages that were allowed after the contract was frozen."""

    task_id: str
    """The task that needed them."""
    files: tuple[RepoPath, ...] = ()
    dependencies: tuple[str, ...] = ()
    packages: dict[str, str] = {}
    """The same as they were granted: name → version."""
    by: str
    """The persona that allowed them."""
    reason: str


class ArchitectureContract(Value):
    """Frozen when a breakdown is accepted; sorted tuples, so that equal worlds are equal.

    Allowed files = `baseline_files` ∪ `declared_files`; allowed dependencies = `baseline_dependencies` ∪
    `declared_dependencies` (names normalised per ecosystem, PEP 503 for Python). Test files are not for the developer.
    """

    story_id: str
    base_commit: str
    """Commit whose tree gave the baseline; empty string for an empty tree."""
    baseline_files: tuple[str, ...]
    declared_files: tuple[RepoPath, ...]
    """What the plan names, and what amendments added."""
    task_files: dict[str, tuple[RepoPath, ...]]
    """Task id → the files it may write: its `files_to_create`, and what amendments added."""
    baseline_dependencies: tuple[str, ...]
    declared_dependencies: tuple[str, ...]
    """What the plan declares, and what amendments added."""
    local_names: tuple[str, ...] = ()
    """Names under which the project's own modules are imported: packages of the project, aliases that end in `*`."""
    module_roots: tuple[str, ...] = ()
    """Folders, "" for the root, in which JavaScript's bare module names are looked up before they are packages."""
    ignored: tuple[str, ...] = ()
    """Patterns of files that git leaves out and the project makes itself, as a `.gitignore` at the root has them."""
    amendments: tuple[Amendment, ...] = ()
    """In the order in which they were given."""

    @property
    def granted_packages(self) -> dict[str, str]:
        """Returns name → version of all packages from amendments."""
        return {name: version for one in self.amendments for name, version in one.packages.items()}

    @property
    def allowed_files(self) -> frozenset[str]:
        """Every path the developer may write, before the rule on test files."""
        return frozenset(self.baseline_files) | frozenset(self.declared_files)

    @property
    def allowed_dependencies(self) -> frozenset[str]:
        """Every distribution or package name that may be depended on, normalised."""
        return frozenset(self.baseline_dependencies) | frozenset(self.declared_dependencies)


class Installed(Value):
    """One package as its own metadata tells it. Names are PEP 503 for Python, as in package.json for Node."""

    modules: tuple[str, ...] = ()
    """Dotted names under which Python imports it: packages and modules; of a namespace the parts inside it."""
    requires: tuple[str, ...] = ()
    """Names of what it requires; only those that are installed too count."""
    extras: tuple[str, ...] = ()
    """Names of what its extras, or its optional and peer dependencies, require."""
    version: str = ""


class InstalledPackages(Value):
    """The packages of one story's environment; empty where nothing is known of them."""

    python: Mapping[str, Installed] = Field(default_factory=dict)
    node: Mapping[str, Installed] = Field(default_factory=dict)

    def python_bringing(self, module: str) -> frozenset[str]:
        """Returns the distributions that contain a dotted module, or a part of it; none if there is none."""
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


STACK = "tech stack"
"""Stands before what a locked convention says about the tech stack, with a colon."""


class Todo(Value):
    """Something a story left open."""

    id: str
    """`TODO-<story>-NN`, NN by the order in the story's plan."""
    text: str


class Contribution(Value):
    """What one merged story adds to the record; recorded once, with the event `record_updated`."""

    story: str
    conventions: tuple[str, ...] = ()
    """Locked for the stories that follow; the foundation story's alone."""
    todos: tuple[Todo, ...] = ()
    todos_done: tuple[str, ...] = ()
    """Ids; those the record does not hold open change nothing."""


class Settled(Value):
    """A line of the record and the story it comes from."""

    story: str
    text: str


class ArchitectureRecord(Value):
    """The sum of contributions, in the order in which their stories were merged."""

    conventions: tuple[Settled, ...] = ()
    todos: tuple[Todo, ...] = ()
    """The open ones."""

    @property
    def tech_stack(self) -> tuple[str, ...]:
        """What the locked conventions say about the tech stack, line by line."""
        label = f"{STACK}: "
        return tuple(line.text.removeprefix(label) for line in self.conventions if line.text.startswith(label))

    @classmethod
    def of(cls, contributions: Iterable[Contribution]) -> "ArchitectureRecord":
        """Adds them up."""
        conventions: dict[str, Settled] = {}
        todos: dict[str, Todo] = {}
        for part in contributions:
            for text in part.conventions:
                conventions.setdefault(text, Settled(story=part.story, text=text))
            for done in part.todos_done:
                todos.pop(done, None)
            todos.update({todo.id: todo for todo in part.todos})
        return cls(conventions=tuple(conventions.values()), todos=tuple(todos.values()))
