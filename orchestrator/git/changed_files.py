"""Reads the files that a story, or one of its tasks, has changed: both texts of each, and which lines differ."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.core.errors import WorkspaceError
from orchestrator.git import commits
from orchestrator.git.mirror import Mirror, SprintRefs

_MOST_BYTES = 8 * 1024 * 1024
"""Of all texts together: they are held in memory."""
_SUBMODULE = "160000"
_ABSENT = "000000"
_PLAIN = ("-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--find-renames")
# A file with a NUL byte has no lines to show, but git is not to say so in words of its own.
_LINES = ("-p", "--text", "--full-index", "--unified=0", "--diff-algorithm=myers", "--indent-heuristic")
_INDEX = re.compile(rb"index ([0-9a-f]+)\.\.([0-9a-f]+)")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Hunk(NamedTuple):
    """Lines that stand in place of others; numbers count from 0."""

    old: int
    old_count: int
    new: int
    new_count: int


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """One file that differs between two commits."""

    path: str
    old_path: str
    """Another than `path` for a renamed file only."""
    old_mode: str
    new_mode: str
    """Six octal digits; 000000: there is none."""
    size: int
    """Bytes of the larger text."""
    old: bytes | None = b""
    new: bytes | None = b""
    """None for a text that was not read: too large, or another repository."""
    hunks: tuple[Hunk, ...] = ()

    @property
    def kind(self) -> str:
        """Returns what happened to it in one word."""
        if self.old_mode == _ABSENT:
            return "new"
        if self.new_mode == _ABSENT:
            return "deleted"
        return "renamed" if self.path != self.old_path else "changed"


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


async def read_changed_files(mirror: Mirror, between: Range, *, limit: int, path: str = "") -> list[ChangedFile]:
    """Returns the files that differ, in git's order, with texts of at most `limit` bytes each and their hunks; with a
    `path` that one alone."""
    if between.paths == ():
        return []
    entries = [one for one in await _list_entries(mirror, between) if path in ("", commits.shown(one.path))]
    sizes = await _sizes(mirror, {oid for entry in entries for oid in entry.oids})
    wanted, total = [], 0
    for entry in entries:
        size = sum(sizes.get(oid, 0) for oid in entry.oids)
        if not entry.is_submodule and all(sizes.get(oid, limit + 1) <= limit for oid in entry.oids):
            total += size
            if total <= _MOST_BYTES:
                wanted.append(entry)
    oids = [oid for entry in wanted for oid in entry.oids]
    texts = dict(zip(oids, await commits.blobs(mirror, oids), strict=True))
    hunks = await _read_hunks(mirror, between, [entry for entry in wanted if len(entry.oids) == 2])
    return [_changed(entry, sizes, texts, hunks) for entry in entries]


async def read_patch(mirror: Mirror, between: Range, path: str = "") -> str:
    """Returns the same difference, or that of one file, as git writes it. Raises WorkspaceError."""
    paths = (path,) if path else between.paths
    return "" if paths == () else await commits.patch(mirror, between.base, between.head, paths or ())


class _Entry(NamedTuple):
    old_mode: str
    new_mode: str
    old: str
    new: str
    old_path: str
    path: str

    @property
    def oids(self) -> tuple[str, ...]:
        """Returns the ids of the texts there are."""
        return tuple(oid for oid, mode in ((self.old, self.old_mode), (self.new, self.new_mode)) if mode != _ABSENT)

    @property
    def is_submodule(self) -> bool:
        return _SUBMODULE in {self.old_mode, self.new_mode}


async def _list_entries(mirror: Mirror, between: Range) -> list[_Entry]:
    options = (*_PLAIN, "--raw", "-z")
    ends = (between.base, between.head)
    output = await mirror.read("diff-tree", *options, *ends, "--", *(between.paths or ()), ids=ends)
    fields = iter(output.stdout.split(b"\0")[:-1])
    entries = []
    for facts in fields:
        old_mode, new_mode, old, new, status = facts.decode("ascii").lstrip(":").split()
        old_path = path = next(fields).decode("utf-8", "surrogateescape")
        if status[0] in "RC":
            path = next(fields).decode("utf-8", "surrogateescape")
        entries.append(_Entry(old_mode, new_mode, old, new, old_path, path))
    return entries


async def _sizes(mirror: Mirror, oids: Iterable[str]) -> dict[str, int]:
    """Returns the sizes of those of the objects that there are."""
    asked = "".join(f"{oid}\n" for oid in oids)
    output = await mirror.git("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked.encode())
    found = (line.split(" ") for line in output.text.splitlines())
    return {oid: int(size) for oid, size in found if size.isdigit()}  # else `missing`


async def _read_hunks(
    mirror: Mirror, between: Range, entries: Sequence[_Entry]
) -> dict[tuple[bytes, bytes], tuple[Hunk, ...]]:
    """Returns the hunks of each pair of texts."""
    if not entries:
        return {}
    paths = dict.fromkeys(path for entry in entries for path in (entry.old_path, entry.path))
    options = (*_PLAIN, *_LINES)
    output = await mirror.git("diff-tree", *options, between.base, between.head, "--", *paths)
    found: dict[tuple[bytes, bytes], list[Hunk]] = {}
    hunks: list[Hunk] = []
    # Lines of the files begin with a sign, so none of them passes for a head.
    for line in output.stdout.split(b"\n"):
        if index := _INDEX.match(line):
            hunks = found.setdefault((index[1], index[2]), [])
            hunks.clear()  # the same change in another file
        elif head := _HUNK.match(line):
            hunks.append(_hunk(*head.groups()))
    return {ids: tuple(those) for ids, those in found.items()}


def _hunk(old: bytes, old_count: bytes | None, new: bytes, new_count: bytes | None) -> Hunk:
    gone, come = (1 if count is None else int(count) for count in (old_count, new_count))
    # Without lines on a side git names the line before the place.
    return Hunk(int(old) - (gone > 0), gone, int(new) - (come > 0), come)


def _changed(
    entry: _Entry,
    sizes: dict[str, int],
    texts: dict[str, bytes],
    hunks: dict[tuple[bytes, bytes], tuple[Hunk, ...]],
) -> ChangedFile:
    def text(oid: str, mode: str) -> bytes | None:
        return b"" if mode == _ABSENT else texts.get(oid)

    old, new = text(entry.old, entry.old_mode), text(entry.new, entry.new_mode)
    own = hunks.get((entry.old.encode(), entry.new.encode()), ())
    if (old or new) and old is not None and new is not None and len(entry.oids) == 1:
        own = (Hunk(0, _count_lines(old), 0, _count_lines(new)),)
    return ChangedFile(
        path=commits.shown(entry.path),
        old_path=commits.shown(entry.old_path),
        old_mode=entry.old_mode,
        new_mode=entry.new_mode,
        size=max((sizes.get(oid, 0) for oid in entry.oids), default=0),
        old=old,
        new=new,
        hunks=own,
    )


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + (text[-1:] not in {b"", b"\n"})
