"""Facts that the workspace reports about a story's tree."""

from orchestrator.domain.base import Value


class DiffEntry(Value):
    """One path of a raw git diff between base and head. Renames are reported as a deletion and an addition."""

    path: str
    status: str
    """A added, D deleted, M modified, T type changed."""
    old_mode: str
    new_mode: str
    """Six octal digits; 120000 is a symbolic link, 160000 a submodule, 000000 absent."""


class Branch(Value):
    """A story's branch with its recorded base."""

    name: str
    base: str
    """Commit the branch started from; recorded once per story."""
    head: str


class MergeResult(Value):
    """How a merge into the sprint's result branch ended."""

    merged: bool
    commit: str = ""
    """The merge commit when `merged`."""
    conflicts: tuple[str, ...] = ()
    """Conflicting paths, when the merge stopped on conflicts."""
    red: str = ""
    """Why the merged tree was turned down by the check, with output; empty otherwise."""
    vanished: tuple[str, ...] = ()
    """Tests that ran before and do not run on the merged tree, when that is why it was turned down."""
    older_unknown: str = ""
    """Why it is not known which tests ran before; empty when it is."""


class CommitNote(Value):
    """Subject and trailers of one of our commits."""

    subject: str
    sprint: str
    story: str
    task: str = ""
    step: str
    """Id of the durable step that makes it: a repeated step finds its own commit by this."""

    @property
    def message(self) -> str:
        """The whole commit message."""
        lines = [f"Orchestrator-Sprint: {self.sprint}", f"Orchestrator-Story: {self.story}"]
        if self.task:
            lines.append(f"Orchestrator-Task: {self.task}")
        lines.append(f"Orchestrator-Step: {self.step}")
        return f"{self.subject}\n\n" + "\n".join(lines) + "\n"
