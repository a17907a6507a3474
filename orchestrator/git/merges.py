"""Merges two branches of the mirror without a working tree, and renders changes for reviewers."""

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.core.delivery import CommitNote, Conflict, FileChange, MergedStory, Sides
from orchestrator.core.errors import WorkspaceError
from orchestrator.git import commits
from orchestrator.git.commits import REGULAR, shown
from orchestrator.git.mirror import RESULT, Mirror, Ref, SprintRefs

DIFF_LIMIT = 100_000
"""Limit in characters of a side's patch."""
_BASE, _OURS, _THEIRS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge. With conflicts, the tree's files have both versions between markers."""

    tree: str
    stages: Mapping[str, Mapping[int, tuple[int, str]]]
    """Path in conflict → stage (1 base, 2 ours, 3 theirs) → mode and blob."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Paths in conflict, in git's order."""
        return tuple(self.stages)


async def merge_trees(mirror: Mirror, ours: str, theirs: str) -> Merged:
    """Merges two commits without moving a branch."""
    if mirror.made_between(ours, theirs) is not None:  # theirs was made on top of ours
        return Merged(tree=await commits.tree_of(mirror, theirs), stages={})
    asked = ("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs)
    # With what stood there when both began.
    output = await mirror.git(*asked, ok=(0, 1), settings=("merge.conflictStyle=diff3",))
    tree, *records = (part for part in output.stdout.split(b"\0") if part)
    stages: dict[str, dict[int, tuple[int, str]]] = {}
    for record in records if output.code == 1 else ():
        facts, _, path = record.partition(b"\t")
        mode, oid, stage = facts.decode("ascii").split()
        stages.setdefault(shown(os.fsdecode(path)), {})[int(stage)] = (int(mode, 8), oid)
    if output.code == 1 and not stages:
        raise WorkspaceError("git merge-tree: a conflict without a path")
    return Merged(tree=tree.decode("ascii").strip(), stages=stages)


async def sides(mirror: Mirror, onto: str, head: str, *, limit: int) -> Sides:
    """Returns both sides of a merge of a story's `head` with `onto`, a commit of the result branch."""
    start = (await mirror.read("merge-base", onto, head, ids=(onto, head))).text
    merged = await merge_trees(mirror, onto, head)
    conflicts, unreadable = await _conflicts(mirror, merged, limit)
    clean = not merged.conflicts
    return Sides(
        onto=onto,
        head=head,
        tree=merged.tree,
        conflicts=conflicts,
        unreadable=unreadable,
        merged=_stories(await commits.log(mirror, start, onto, "--topo-order", "--reverse")),
        result_diff=(await commits.patch(mirror, start, onto))[:DIFF_LIMIT] if clean else "",
        story_diff=(await commits.patch(mirror, start, head))[:DIFF_LIMIT] if clean else "",
    )


async def _conflicts(mirror: Mirror, merged: Merged, limit: int) -> tuple[tuple[Conflict, ...], tuple[str, ...]]:
    """Returns the conflicts between two texts of one file, and the paths of all others."""
    told = {path: await _texts(mirror, stages, limit) for path, stages in merged.stages.items()}
    found = tuple(
        Conflict(path=path, base=texts.get(_BASE), result=texts[_OURS], story=texts[_THEIRS])
        for path, texts in told.items()
        if texts is not None
    )
    return found, tuple(path for path, texts in told.items() if texts is None)


async def _texts(mirror: Mirror, stages: Mapping[int, tuple[int, str]], limit: int) -> dict[int, str] | None:
    """Returns the text of each stage; None when one is not such a text, or when a side deleted or moved the file."""
    if not {_OURS, _THEIRS} <= stages.keys() or any(mode not in REGULAR for mode, _ in stages.values()):
        return None
    contents = await commits.blobs(mirror, [oid for _, oid in stages.values()])
    if any(len(content) > limit for content in contents):
        return None
    try:
        return {stage: content.decode("utf-8") for stage, content in zip(stages, contents, strict=True)}
    except UnicodeDecodeError:  # not text: a person resolves it
        return None


def _stories(log: Sequence[tuple[str, str]]) -> tuple[MergedStory, ...]:
    subjects: dict[str, list[str]] = {}
    for _, message in log:
        subjects.setdefault(commits.trailer_of(message, "Story"), []).append(message.partition("\n")[0])
    return tuple(MergedStory(story=story, subjects=tuple(told)) for story, told in subjects.items())


async def take_in(
    mirror: Mirror,
    ends: tuple[Ref, Ref],
    onto: str,
    changes: Sequence[FileChange],
    note: CommitNote,
) -> str:
    """Merges `onto` and `changes` into a story's branch and returns the commit; see the port."""
    base, head = ends
    earlier = await commits.find_step(mirror, base.commit, head.commit, note.step)
    if earlier is not None:
        return earlier
    has_it = (await mirror.git("merge-base", "--is-ancestor", onto, head.commit, ok=(0, 1))).code == 0
    if has_it:
        source, parents = head.commit, [head.commit]
    else:
        merged = await merge_trees(mirror, onto, head.commit)
        _refuse_open(merged.conflicts, {change.path for change in changes})
        source, parents = merged.tree, [head.commit, onto]
    tree = await commits.build_tree(mirror, source, changes, ())
    if has_it and tree == head.tree:
        return head.commit
    made = await commits.commit_tree(mirror, tree, parents, commits.message_of(note))
    await mirror.update(f"update {head.name} {made} {head.commit}")
    return made


def _refuse_open(conflicts: Collection[str], resolved: Collection[str]) -> None:
    left = sorted(set(conflicts) - set(resolved))
    if left:
        raise WorkspaceError(f"the branches cannot be brought together: {', '.join(left)} in conflict")


async def merge_of(mirror: Mirror, base: str, result: str, head: str) -> str | None:
    """Returns the commit between `base` and `result` (first parents) that merged this head of a branch."""
    made = mirror.made_between(base, result)
    if made is not None:
        parents = [(oid, commit.parents[1:]) for oid, commit in made]
    else:
        walk = ("--first-parent", "--merges", "--format=%H %P", f"{base}..{result}")
        lines = (await mirror.read("log", *walk, ids=(base, result))).text.splitlines()
        parents = [(oid, tuple(rest)) for oid, _, *rest in map(str.split, lines)]
    return next((oid for oid, others in parents if others == (head,)), None)


async def merged_by(mirror: Mirror, refs: SprintRefs, workflow_id: str) -> str | None:
    """Returns the merge on a sprint's result branch that this workflow made; works on an unprepared mirror."""
    if not await asyncio.to_thread(mirror.path.exists):
        return None
    names = (refs.ref("base", RESULT), refs.ref("heads", RESULT))
    ends = await mirror.refs(*names)
    if len(ends) < len(names):
        return None
    base, head = (ends[name].commit for name in names)
    made, own = await commits.first_parents(mirror, base, head), f"{workflow_id}/"
    return next((commit for commit, text in made if commits.trailer_of(text, "Step").startswith(own)), None)
