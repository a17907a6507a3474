"""Facts that the workspace reports about a story's tree."""

import json

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
    flaky: tuple[str, ...] = ()
    """Tests that failed on the merged tree and passed when they were run once more alone."""
    onto: str = ""
    """The commit of the result branch that it was tried with."""


class Conflict(Value):
    """One file that a story and what was merged before it both changed in the same place."""

    path: str
    base: str | None
    """Its text where both began; None when both have added it."""
    result: str
    """Its text with what was merged before."""
    story: str
    """Its text in the story."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Its texts that there are."""
        return tuple(text for text in (self.base, self.result, self.story) if text is not None)


class MergedStory(Value):
    """A story that was merged before another one."""

    story: str
    subjects: tuple[str, ...]
    """First lines of its commits, oldest first, that of its merge included."""


class Sides(Value):
    """A story's branch and a commit of the result branch, brought together as far as git can."""

    onto: str
    head: str
    """The two commits: the result's and the story's."""
    tree: str
    """The merged tree, to be read with `files_at` and `read_at`; conflicts are between git's markers in it, labelled
    with the two commits."""
    conflicts: tuple[Conflict, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Paths in conflict that are no two texts of one file: binary, links, taken away or moved on one side."""
    merged: tuple[MergedStory, ...] = ()
    """What the result has and the story has not."""
    result_diff: str = ""
    story_diff: str = ""
    """What each side changed since both began, as a patch that may be cut; empty when there are conflicts."""


COMMAND = "Orchestrator-Command: "
"""Before a command in a commit's trailers, as a JSON string."""


class CommitNote(Value):
    """Subject and trailers of one of our commits."""

    subject: str
    sprint: str
    story: str
    task: str = ""
    step: str
    """Id of the durable step that makes it: a repeated step finds its own commit by this."""
    commands: tuple[str, ...] = ()
    """Shell commands that make what git ignores of the task's work; wherever this commit is, they are run again."""

    @property
    def message(self) -> str:
        """The whole commit message."""
        lines = [f"Orchestrator-Sprint: {self.sprint}", f"Orchestrator-Story: {self.story}"]
        if self.task:
            lines.append(f"Orchestrator-Task: {self.task}")
        lines += [f"{COMMAND}{json.dumps(command)}" for command in self.commands]
        lines.append(f"Orchestrator-Step: {self.step}")
        return f"{self.subject}\n\n" + "\n".join(lines) + "\n"
