"""The `Workspace` port without git, over trees of texts: for tests of the loops and for benchmarks."""

import asyncio
import difflib
import hashlib
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from orchestrator.core.delivery import (
    Branch,
    CommitNote,
    Conflict,
    DiffEntry,
    FileChange,
    MergedStory,
    MergeResult,
    Sides,
)
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import folders_of, obstacle_at, parents, spelling
from orchestrator.core.ports import CheckMerge, TestMerge
from orchestrator.core.story import id_problem
from orchestrator.files.safe_files import write_below

Tree = Mapping[str, str]
"""Path → text."""


def changed(tree: Tree, changes: Sequence[FileChange], removed: Sequence[str]) -> dict[str, str]:
    """Returns the tree with the changes applied.

    Raises WorkspaceError when a file would also have to be a folder, or one to be removed is not there.
    """
    gone = next((path for path in removed if path not in tree), None)
    if gone is not None:
        raise WorkspaceError(f"{gone} cannot be removed: it is not on the branch")
    new: dict[str, str] = {change.path: change.content for change in changes}
    made = {**tree, **new}
    for path in removed:
        made.pop(path, None)
    blocking = [(above, path) for path in new for above in parents(path) if above in made]
    if added := tuple(f"{path}/" for path in new if path not in tree):
        blocking += [(path[: len(start) - 1], path) for path in made for start in added if path.startswith(start)]
    if blocking:
        raise WorkspaceError("{1} cannot be written: {0} is no folder on the branch".format(*blocking[0]))
    return made


def merged(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, tuple[str, ...]]:
    """Ours with what theirs changed, and the paths that both changed in different ways."""
    differing = sorted(path for path in {*base, *theirs} if base.get(path) != theirs.get(path))
    both = dict(ours)
    for path in differing:
        both.pop(path, None)
        if path in theirs:
            both[path] = theirs[path]
    return both, tuple(path for path in differing if ours.get(path) not in {base.get(path), theirs.get(path)})


def _name(*parts: object) -> str:
    """Returns the name of a commit by what it is made of, or of a tree by its files."""
    return hashlib.sha1("\0".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()


T = TypeVar("T")
_ABSENT, _FILE = "000000", "100644"


@dataclass(frozen=True, slots=True)
class _Commit:
    id: str
    tree: Tree
    note: CommitNote | None = None
    parent: "_Commit | None" = None

    def since(self, start: "_Commit") -> "list[_Commit]":
        """Returns the commits after `start` up to this one, newest first."""
        found: list[_Commit] = []
        commit: _Commit | None = self
        while commit is not None and commit is not start:
            found.append(commit)
            commit = commit.parent
        return found


@dataclass(slots=True)
class _Branch:
    base: _Commit
    head: _Commit
    onto: _Commit
    """The commit of the result that it contains."""

    def find(self, step: str) -> _Commit | None:
        """Returns the commit of this step between head and base."""
        found = (commit for commit in self.head.since(self.base) if commit.note and commit.note.step == step)
        return next(found, None)


@dataclass(slots=True)
class MemoryWorkspace:
    """Branches as dictionaries of path to text. Whole files only: two stories that change one file are in conflict.

    With `folder` the worktrees, merged trees and base trees are really written below it, so that tests can run in
    them; without it the paths handed out name nothing.
    """

    sprint: str = "sprint"
    base_files: Tree = field(default_factory=dict)
    folder: Path | None = None
    _result: _Branch = field(init=False)
    _branches: dict[str, _Branch] = field(init=False, default_factory=dict)
    _merging: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _trees: dict[str, Tree] = field(init=False, default_factory=dict)
    """Trees by the id of their commit, or their own when they were only merged."""

    def __post_init__(self) -> None:
        start = _Commit(id=_name(sorted(self.base_files.items())), tree=dict(self.base_files))
        self._result = _Branch(start, start, start)
        self._trees[start.id] = start.tree

    @property
    def result(self) -> Tree:
        """Files of the result branch."""
        return self._result.head.tree

    async def open(self, story_id: str) -> Branch:
        """See the port."""
        problem = id_problem(story_id)
        if problem is not None:
            raise WorkspaceError(f"{story_id!r} cannot name a branch: {problem}")
        branch = self._branches.setdefault(story_id, _Branch(*[self._result.head] * 3))
        await self._lay_out(self.root(story_id), branch.head.tree)
        return Branch(name=f"orchestrator/{self.sprint}/{story_id}", base=branch.base.id, head=branch.head.id)

    def root(self, story_id: str) -> Path:
        """See the port."""
        return (self.folder or Path("/nonexistent")) / story_id

    async def head(self, story_id: str) -> str:
        """Returns the commit the story's branch stands at."""
        return self._branch(story_id).head.id

    async def remove(self, story_id: str) -> None:
        """Forgets the story's branch and remove its worktree; a missing one is fine."""
        self._branches.pop(story_id, None)
        await self.leave(story_id)

    async def leave(self, story_id: str) -> None:
        """See the port."""
        if self.folder is not None:
            await asyncio.to_thread(shutil.rmtree, self.root(story_id), ignore_errors=True)

    async def reset(self, story_id: str) -> None:
        """See the port."""
        await self._lay_out(self.root(story_id), self._branch(story_id).head.tree)

    async def files(self, story_id: str) -> tuple[str, ...]:
        """See the port."""
        return tuple(sorted(self._branch(story_id).head.tree))

    async def read(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port."""
        tree = self._branch(story_id).head.tree
        return {path: tree[path] for path in dict.fromkeys(paths) if path in tree}

    async def obstacles(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port; a tree of texts holds no links and nothing else than text."""
        folders = folders_of(self._branch(story_id).head.tree)
        known = {spelling(folder): folder for folder in folders}
        known |= {spelling(one): one for path in paths for one in parents(path) if one in folders}
        return {path: said for path in paths if (said := obstacle_at(path, {}, known))}

    async def read_base(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port."""
        return await self.read_at(self._branch(story_id).onto.id, paths)

    async def files_at(self, tree: str) -> tuple[str, ...]:
        """See the port."""
        return tuple(sorted(self._trees[tree]))

    async def read_at(self, tree: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port."""
        held = self._trees[tree]
        return {path: held[path] for path in dict.fromkeys(paths) if path in held}

    async def write(self, story_id: str, changes: Sequence[FileChange], removed: Sequence[str] = ()) -> None:
        """See the port."""
        await self._lay_out(self.root(story_id), changed(self._branch(story_id).head.tree, changes, removed))

    async def ignored(self, story_id: str, paths: Sequence[str]) -> tuple[str, ...]:
        """See the port; patterns of .gitignore are names and folders here."""
        rules = self._branch(story_id).head.tree.get(".gitignore", "").split()
        names = {rule.strip("/") for rule in rules}
        return tuple(path for path in paths if path in names or not names.isdisjoint(path.split("/")))

    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        """See the port."""
        branch = self._branch(story_id)
        earlier = branch.find(note.step)
        if earlier is not None:
            return earlier.id
        tree = changed(branch.head.tree, changes, removed)
        if tree != branch.head.tree:
            branch.head = self._made(tree, note, branch.head, *changes, *removed)
        return branch.head.id

    def _made(self, tree: Tree, note: CommitNote, parent: _Commit, *made_of: object) -> _Commit:
        commit = _Commit(_name(parent.id, note.message, *made_of), tree, note, parent)
        self._trees[commit.id] = tree
        return commit

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        """See the port."""
        branch = self._branch(story_id)
        old, new = branch.onto.tree, branch.head.tree
        return tuple(
            DiffEntry(
                path=path,
                status="M" if path in old and path in new else "A" if path in new else "D",
                old_mode=_FILE if path in old else _ABSENT,
                new_mode=_FILE if path in new else _ABSENT,
            )
            for path in sorted({*old, *new})
            if old.get(path) != new.get(path)
        )

    async def patch(self, story_id: str, since: str, paths: Sequence[str]) -> str:
        """See the port."""
        head = commit = self._branch(story_id).head
        while commit.id != since:
            if commit.parent is None:
                raise WorkspaceError(f"{since} is no commit below the branch of {story_id}")
            commit = commit.parent
        old, new = commit.tree, head.tree
        return "".join(_patch(path, old.get(path), new.get(path)) for path in sorted(set(paths)))

    async def diff_stat(self, story_id: str) -> str:
        """See the port."""
        return "\n".join(f" {entry.path} | {entry.status}" for entry in await self.diff(story_id))

    async def sides(self, story_id: str, onto: str) -> Sides:
        """See the port."""
        branch, taken = self._branch(story_id), self._of_result(onto)
        base, ours, theirs = branch.onto.tree, taken.tree, branch.head.tree
        tree, conflicts = merged(base, ours, theirs)
        texts = {path for path in conflicts if path in ours and path in theirs}
        for path in texts:  # as git leaves a file in conflict
            began = f"||||||| 0123abc\n{base.get(path, '')}=======\n"
            both = f"<<<<<<< {taken.id}\n{ours[path]}{began}{theirs[path]}>>>>>>> {branch.head.id}\n"
            tree = {**tree, path: both}
        name = _name(taken.id, branch.head.id)
        self._trees[name] = tree
        return Sides(
            onto=taken.id,
            head=branch.head.id,
            tree=name,
            conflicts=tuple(
                Conflict(path=path, base=base.get(path), result=ours[path], story=theirs[path])
                for path in sorted(texts)
            ),
            unreadable=tuple(path for path in conflicts if path not in texts),
            merged=_stories(reversed(taken.since(branch.onto))),
            result_diff="" if conflicts else _patches(base, ours),
            story_diff="" if conflicts else _patches(base, theirs),
        )

    async def take_in(self, story_id: str, onto: str, changes: Sequence[FileChange], note: CommitNote) -> str:
        """See the port."""
        branch, taken = self._branch(story_id), self._of_result(onto)
        earlier = branch.find(note.step)
        if earlier is not None:
            return earlier.id
        if taken not in branch.onto.since(self._result.base) and taken is not self._result.base:
            both, conflicts = merged(branch.onto.tree, taken.tree, branch.head.tree)
            left = sorted(set(conflicts) - {change.path for change in changes})
            if left:
                raise WorkspaceError(f"the branches cannot be brought together: {', '.join(left)} in conflict")
            branch.head, branch.onto = (
                self._made(changed(both, changes, ()), note, branch.head, taken.id, *changes),
                taken,
            )
            return branch.head.id
        return await self.commit(story_id, changes, note)

    def _of_result(self, commit: str) -> _Commit:
        found = (one for one in (*self._result.head.since(self._result.base), self._result.base) if one.id == commit)
        return next(found)

    async def test_merge(self, story_id: str, note: CommitNote, test: TestMerge[bool]) -> bool:
        """See the port; no place is kept."""
        branch, onto = self._branch(story_id), self._result.head
        both, conflicts = merged(branch.onto.tree, onto.tree, branch.head.tree)
        made = self._made(both, note, onto, branch.head.id)
        return not conflicts and await self._shown(both, lambda folder: test(folder, made.id))

    async def merge(
        self, story_id: str, note: CommitNote, check: CheckMerge, test: TestMerge[None] | None = None
    ) -> MergeResult:
        """See the port; one after the other."""
        async with self._merging:
            branch, result = self._branch(story_id), self._result
            earlier, onto = result.find(note.step), result.head
            if earlier is not None:
                return MergeResult(merged=True, commit=earlier.id)
            both, conflicts = merged(branch.onto.tree, onto.tree, branch.head.tree)
            if conflicts:
                return MergeResult(merged=False, conflicts=conflicts, onto=onto.id)
            made = self._made(both, note, onto, branch.head.id)

            async def work(folder: Path) -> str:
                if test is not None:
                    await test(folder, made.id)
                return await check(folder)

            red = await self._shown(both, work)
            if red:
                return MergeResult(merged=False, red=red, onto=onto.id)
            result.head = made
            return MergeResult(merged=True, commit=made.id, onto=onto.id)

    async def base_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(self._result.base.tree, work)

    async def start_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(changed(self._branch(story_id).onto.tree, changes, ()), work)

    async def story_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(changed(self._branch(story_id).head.tree, changes, ()), work)

    async def result_head(self) -> str:
        """See the port."""
        return self._result.head.id

    async def content_of(self, commit: str) -> str:
        """See the port."""
        return f"{hash(frozenset(self._trees[commit].items())):x}"

    async def result_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(self._result.head.tree, work)

    def _branch(self, story_id: str) -> _Branch:
        if story_id not in self._branches:
            raise WorkspaceError(f"{story_id} has no branch in sprint {self.sprint}")
        return self._branches[story_id]

    async def _shown(self, tree: Tree, work: Callable[[Path], Awaitable[T]]) -> T:
        """Runs `work` on a folder with these files, removed afterwards."""
        if self.folder is None:
            return await work(Path("/nonexistent"))
        place = await asyncio.to_thread(_temporary, self.folder)
        try:
            await self._lay_out(place, tree)
            return await work(place)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def _lay_out(self, place: Path, tree: Tree) -> None:
        if self.folder is not None:
            await asyncio.to_thread(_fill, place, tree)


def _temporary(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=folder, prefix=".tree-"))


def _fill(place: Path, contents: Tree) -> None:
    if place.is_symlink():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write_below(place, [(path, text.encode()) for path, text in contents.items()])


def _stories(commits: Iterable[_Commit]) -> tuple[MergedStory, ...]:
    subjects: dict[str, list[str]] = {}
    for commit in commits:
        if commit.note is not None:
            subjects.setdefault(commit.note.story, []).append(commit.note.subject)
    return tuple(MergedStory(story=story, subjects=tuple(told)) for story, told in subjects.items())


def _patches(old: Tree, new: Tree) -> str:
    return "".join(_patch(path, old.get(path), new.get(path)) for path in sorted({*old, *new}))


def _patch(path: str, old: str | None, new: str | None) -> str:
    """Returns the difference of one file (None: absent), with the headers that git writes."""
    if old == new:
        return ""
    head = [f"diff --git a/{path} b/{path}"]
    head += ["new file mode 100644"] if old is None else ["deleted file mode 100644"] if new is None else []
    names = ["/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}"]
    if "\0" in f"{old}{new}":
        head.append(f"Binary files {names[0]} and {names[1]} differ")
    elif old or new:
        shown = [f"{name}\t" if " " in name else name for name in names]
        head += difflib.unified_diff(_lines(old or ""), _lines(new or ""), shown[0], shown[1], lineterm="")
    return "".join(f"{line}\n" for line in head)


def _lines(text: str) -> list[str]:
    """Returns lines as git counts them: a last one that no line feed ends has its mark below."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
