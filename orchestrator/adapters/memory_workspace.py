"""The `Workspace` port without git: for tests of the loops and for benchmarks."""

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from orchestrator.adapters.safe_files import write_below
from orchestrator.domain.backlog_text import id_problem
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.gitfacts import Branch, CommitNote, DiffEntry, MergeResult
from orchestrator.errors import WorkspaceError

T = TypeVar("T")
Tree = Mapping[str, str]
_ABSENT, _FILE = "000000", "100644"


@dataclass(frozen=True, slots=True)
class _Commit:
    id: str
    tree: Tree
    step: str = ""
    parent: "_Commit | None" = None


@dataclass(slots=True)
class _Branch:
    base: _Commit
    head: _Commit

    def find(self, step: str) -> _Commit | None:
        """The commit of this step between head and base."""
        commit: _Commit | None = self.head
        while commit is not None and commit is not self.base:
            if commit.step == step:
                return commit
            commit = commit.parent
        return None


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

    def __post_init__(self) -> None:
        start = _Commit(id=_digest("", self.base_files, ""), tree=dict(self.base_files))
        self._result = _Branch(start, start)

    @property
    def result_branch(self) -> str:
        """Name of the branch that gathers the merged stories."""
        return f"orchestrator/{self.sprint}/result"

    @property
    def result(self) -> Tree:
        """Files of the result branch."""
        return self._result.head.tree

    async def open(self, story_id: str) -> Branch:
        """See the port."""
        problem = id_problem(story_id)
        if problem is not None:
            raise WorkspaceError(f"{story_id!r} cannot name a branch: {problem}")
        branch = self._branches.setdefault(story_id, _Branch(self._result.head, self._result.head))
        await self._lay_out(self.root(story_id), branch.head.tree)
        return Branch(name=f"orchestrator/{self.sprint}/{story_id}", base=branch.base.id, head=branch.head.id)

    def root(self, story_id: str) -> Path:
        """See the port."""
        return (self.folder or Path("/nonexistent")) / story_id

    async def head(self, story_id: str) -> str:
        """The commit the story's branch stands at."""
        return self._branch(story_id).head.id

    async def remove(self, story_id: str) -> None:
        """Forget the story's branch and remove its worktree; a missing one is fine."""
        self._branches.pop(story_id, None)
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

    async def schemas(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port; a tree of texts holds no database."""
        return {}

    async def read_base(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """See the port."""
        tree = self._branch(story_id).base.tree
        return {path: tree[path] for path in dict.fromkeys(paths) if path in tree}

    async def write(self, story_id: str, changes: Sequence[FileChange], removed: Sequence[str] = ()) -> None:
        """See the port."""
        await self._lay_out(self.root(story_id), _with(self._branch(story_id).head.tree, changes, removed))

    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        """See the port."""
        branch = self._branch(story_id)
        earlier = branch.find(note.step)
        if earlier is not None:
            return earlier.id
        tree = _with(branch.head.tree, changes, removed)
        if tree != branch.head.tree:
            branch.head = _Commit(_digest(branch.head.id, tree, note.message), tree, note.step, branch.head)
        return branch.head.id

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        """See the port."""
        branch = self._branch(story_id)
        old, new = branch.base.tree, branch.head.tree
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

    async def diff_stat(self, story_id: str) -> str:
        """See the port."""
        return "\n".join(f" {entry.path} | {entry.status}" for entry in await self.diff(story_id))

    async def merge(self, story_id: str, note: CommitNote, check: Callable[[Path], Awaitable[str]]) -> MergeResult:
        """See the port."""
        async with self._merging:
            branch, result = self._branch(story_id), self._result
            earlier = result.find(note.step)
            if earlier is not None:
                return MergeResult(merged=True, commit=earlier.id)
            base, ours, theirs = branch.base.tree, result.head.tree, branch.head.tree
            changed = [path for path in {*base, *theirs} if base.get(path) != theirs.get(path)]
            merged = dict(ours)
            for path in changed:
                merged.pop(path, None)
                if path in theirs:
                    merged[path] = theirs[path]
            conflicts = [path for path in changed if ours.get(path) not in {base.get(path), theirs.get(path)}]
            if conflicts:
                return MergeResult(merged=False, conflicts=tuple(sorted(conflicts)))
            red = await self._shown(merged, check)
            if red:
                return MergeResult(merged=False, red=red)
            result.head = _Commit(_digest(result.head.id, merged, note.message), merged, note.step, result.head)
            return MergeResult(merged=True, commit=result.head.id)

    async def base_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(self._result.base.tree, work)

    async def result_head(self) -> str:
        """See the port."""
        return self._result.head.id

    async def result_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """See the port."""
        return await self._shown(self._result.head.tree, work)

    def _branch(self, story_id: str) -> _Branch:
        branch = self._branches.get(story_id)
        if branch is None:
            raise WorkspaceError(f"{story_id} has no branch in sprint {self.sprint}")
        return branch

    async def _shown(self, tree: Tree, work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work` on a folder with these files, removed afterwards."""
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


def _with(tree: Tree, changes: Sequence[FileChange], removed: Sequence[str]) -> dict[str, str]:
    """The tree with the changes applied.

    Raises WorkspaceError when a file would also have to be a folder, or one to be removed is not there.
    """
    gone = next((path for path in removed if path not in tree), None)
    if gone is not None:
        raise WorkspaceError(f"{gone} cannot be removed: it is not on the branch")
    made: dict[str, str] = {**tree, **{change.path: change.content for change in changes}}
    made = {path: text for path, text in made.items() if path not in removed}
    for path in made:
        parts = path.split("/")
        blocked = next((above for n in range(1, len(parts)) if (above := "/".join(parts[:n])) in made), None)
        if blocked is not None:
            raise WorkspaceError(f"{path} cannot be written: {blocked} is no folder on the branch")
    return made


def _digest(parent: str, tree: Tree, message: str) -> str:
    content = "\0".join([parent, message, *(f"{path}\0{tree[path]}" for path in sorted(tree))])
    return hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()
