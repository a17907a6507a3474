"""Reads what a story, or one of its tasks, has changed."""

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.core.errors import WorkspaceError
from orchestrator.git import commits
from orchestrator.git.mirror import Mirror, SprintRefs


class StoryCommit(NamedTuple):
    """A commit on a story's branch."""

    commit: str
    parents: tuple[str, ...]
    task: str
    """The task it belongs to; "" for tests and merges."""
    subject: str


class Range(NamedTuple):
    """Two commits that are compared."""

    base: str
    head: str
    paths: tuple[str, ...] | None = None
    """Only these files; None: all."""


async def list_commits(mirror: Mirror, refs: SprintRefs, story: str) -> list[StoryCommit]:
    """Returns the commits of a story's branch, oldest first. Raises WorkspaceError when there is no such branch."""
    base, head = await refs.ends(story)
    if base.commit == head.commit:
        return []
    options = ("-z", "--first-parent", "--reverse", "--format=%H %P%n%B")
    output = await mirror.read("log", *options, f"{base.commit}..{head.commit}", ids=(base.commit, head.commit))
    return [_commit(record) for record in output.text.split("\0") if record]


def _commit(record: str) -> StoryCommit:
    ids, _, message = record.partition("\n")
    commit, *parents = ids.split()
    return StoryCommit(commit, tuple(parents), commits.trailer_of(message, "Task"), message.partition("\n")[0])


async def find_task_range(
    mirror: Mirror, made: Sequence[StoryCommit], task: str, *, since: str = "", until: str = ""
) -> Range:
    """Returns what a task has changed, as its reviewers are shown it: from before its first commit to its last one, and
    of that the files that its commits touch.

    `since`, `until`: only what its commits behind the one have changed, up to the other. Raises WorkspaceError when
    there are none.
    """
    own = [one for one in made if one.task == task and len(one.parents) == 1]
    places = {one.commit: number for number, one in enumerate(own, start=1)}
    if unknown := next((name for name in (since, until) if name and name not in places), None):
        raise WorkspaceError(f"{unknown[:10]} is no commit of {task} on the story's branch")
    base = own[0].parents[0] if own and not since else since
    own = own[places[since] if since else 0 : places[until] if until else None]
    if not own:
        raise WorkspaceError(f"{task} has no commit on the story's branch")
    names = await mirror.git(
        "diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames", "--stdin",
        stdin="".join(f"{one.commit}\n" for one in own).encode(),
    )  # fmt: skip
    paths = dict.fromkeys(path.decode("utf-8", "surrogateescape") for path in names.stdout.split(b"\0") if path)
    return Range(base, own[-1].commit, tuple(paths))


async def read_patch(mirror: Mirror, between: Range, path: str = "") -> str:
    """Returns the difference, or that of one file, as git writes it. Raises WorkspaceError."""
    paths = (path,) if path else between.paths
    return "" if paths == () else await commits.patch(mirror, between.base, between.head, paths or ())
