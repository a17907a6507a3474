"""The closed world of one story: what may be written and what may be depended on."""

import hashlib
import json

from orchestrator.domain.base import Value
from orchestrator.domain.paths import RepoPath
from orchestrator.domain.surface import shared_names


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
    """Frozen when a breakdown is accepted; sorted tuples, so that equal worlds have equal hashes.

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
    """Patterns of files that git leaves out and the project makes itself, each behind its `.gitignore`'s folder."""
    amendments: tuple[Amendment, ...] = ()
    """In the order in which they were given."""
    hash: str = ""
    """sha256 over everything above, hexadecimal; empty local names, roots, patterns and amendments left out."""

    def sealed(self) -> "ArchitectureContract":
        """The same contract with its hash filled in."""
        return self.model_copy(update={"hash": self.digest()})

    def sharing(self) -> "ArchitectureContract":
        """An equal contract that shares what the tree gave with the Surface of that tree and with other stories'."""
        parts = ("baseline_files", "baseline_dependencies", "local_names")
        return self.model_copy(update={name: shared_names(getattr(self, name)) for name in parts})

    def digest(self) -> str:
        """The hash this content must have."""
        content = self.model_dump(mode="json", exclude={"hash"})
        for later in ("local_names", "module_roots", "ignored", "amendments"):
            if not content[later]:
                del content[later]
        for amendment in content.get("amendments", ()):
            if not amendment["packages"]:  # recorded before there were versions
                del amendment["packages"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def granted_packages(self) -> dict[str, str]:
        """Name → version of all packages that amendments brought."""
        return {name: version for one in self.amendments for name, version in one.packages.items()}

    @property
    def allowed_files(self) -> frozenset[str]:
        """Every path the developer may write, before the rule on test files."""
        return frozenset(self.baseline_files) | frozenset(self.declared_files)

    @property
    def allowed_dependencies(self) -> frozenset[str]:
        """Every distribution or package name that may be depended on, normalised."""
        return frozenset(self.baseline_dependencies) | frozenset(self.declared_dependencies)
