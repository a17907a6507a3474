"""The git side of one sprint, on real git (port `Workspace`)."""

import asyncio
import secrets
import shlex
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from orchestrator.core.delivery import Branch, CommitNote, DiffEntry, FileChange, MergeResult, Sides
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.event import acquired, activity
from orchestrator.core.ports import CheckMerge, CommitStore, TestMerge
from orchestrator.files.safe_files import prune, write_below
from orchestrator.git import commits, merges, repository
from orchestrator.git.checkout import Checkout
from orchestrator.git.command import require_git
from orchestrator.git.kept_commits import KeptCommits, kept
from orchestrator.git.merge_queue import MergeQueue, Place
from orchestrator.git.mirror import KINDS, RESULT, Mirror, SprintRefs, checked_id, pack_loose

T = TypeVar("T")
READ_LIMIT = 1024 * 1024
"""Size limit in bytes; `read` leaves larger files out."""


class GitWorkspace:
    """Branches in the mirror, worktrees in `folder` (one per story of this sprint).

    `base` is the commit the sprint starts from, "" for an empty tree; a sprint begun earlier keeps its own.
    `lock_fds` are the caller's locked files: they stay locked until every git process of ours has ended. Two calls for
    the same story wait for each other. Call `prepare` first and `close` or `release` last.

    With a `store` no method returns before that has every commit which its result stands on; `prepare` takes from it
    what the mirror lacks. Other machines may work on other stories of the sprint then; inside `merge_turn` none
    of them merges.
    """

    def __init__(
        self,
        *,
        mirror: Path,
        folder: Path,
        sprint: str,
        base: str,
        lock_fds: tuple[int, ...] = (),
        store: CommitStore | None = None,
        merge_turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._mirror = Mirror(mirror.absolute(), lock_fds=lock_fds)
        self._folder = folder.absolute()
        self._sprint, self._refs = sprint, SprintRefs(self._mirror, sprint)
        self._kept = None if store is None else KeptCommits(self._mirror, self._refs, sprint, store)
        self._base = base
        self._queue, self._merge_turn = MergeQueue(), merge_turn
        self._stories: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def result_branch(self) -> str:
        """Name of the branch with the merged stories."""
        return self._refs.branch(RESULT)

    @property
    def base(self) -> str:
        """Base commit of the sprint, once `prepare` has run."""
        return self._base

    async def content_of(self, commit: str) -> str:
        """Id of the commit's tree; see the port."""
        return await commits.tree_of(self._mirror, commit)

    @property
    def fetch_command(self) -> str:
        """Command that fetches the result into the user's repository."""
        return shlex.join(["git", "fetch", str(self._mirror.path), self.result_branch])

    @kept
    async def prepare(self, source: Path | None = None) -> None:
        """Prepares mirror and result branch, and removes leftovers of a killed run of this sprint.

        `source` is the user's repository: needed the first time, unless the base is "". The caller holds the sprint's
        lock. Idempotent. Raises RepositoryError (base cannot be copied), WorkspaceError.
        """
        await require_git()
        await self._mirror.prepare()
        base_ref, result_ref = self._refs.ref("base", RESULT), self._refs.ref("heads", RESULT)
        await asyncio.to_thread(self._clear_locks)
        if self._kept is not None:
            await self._kept.restore()
        refs = await self._mirror.refs(base_ref, self._refs.ref("heads", ""))
        if base_ref not in refs and self._base:
            await self._fetch_base(source, base_ref)
            refs |= await self._mirror.refs(base_ref)
        self._base = refs[base_ref].commit if base_ref in refs else await self._start()
        creations = [f"create {name} {self._base}" for name in (base_ref, result_ref) if name not in refs]
        if creations:
            await self._mirror.update(*creations)
        ours = {*(name.rpartition("/")[2] for name in refs), ".state", ".trash"}
        await asyncio.to_thread(prune, self._folder, ours)

    async def _fetch_base(self, source: Path | None, base_ref: str) -> None:
        if source is None:
            raise WorkspaceError("the sprint's base commit is not in the mirror, and no repository was given")
        await self._mirror.fetch(await asyncio.to_thread(source.absolute), self._base, base_ref)

    async def _start(self) -> str:
        empty = await commits.empty_tree(self._mirror)
        return await commits.commit_tree(self._mirror, empty, (), f"Start of sprint {self._sprint}\n")

    def close(self) -> None:
        """Releases this process's lock on the mirror."""
        self._mirror.close()

    async def release(self) -> None:
        """Closes it, and packs what the sprint has left in the mirror where no other one is at work in it."""
        self.close()
        with suppress(WorkspaceError):  # packed after the next sprint
            await pack_loose(self._mirror.path)

    def root(self, story_id: str) -> Path:
        """Returns the folder of the story's worktree, which `open` creates."""
        return self._folder / checked_id(story_id)

    @kept
    async def open(self, story_id: str) -> Branch:
        """Creates the story's branch at the result branch, and its worktree; completes or reuses existing ones."""
        name = checked_id(story_id)
        base_ref, head_ref = self._refs.ref("base", name), self._refs.ref("heads", name)
        async with self._stories[name]:
            await self._mirror.mend()
            result_ref = await self._fetch_result()
            refs = await self._mirror.refs(base_ref, head_ref, result_ref)
            if result_ref not in refs:
                raise WorkspaceError(f"sprint {self._sprint} has no result branch: prepare it first")
            if head_ref in refs and base_ref not in refs:
                # Only an interrupted removal leaves this state: complete it, then start over.
                await self._mirror.update(f"delete {head_ref}")
                del refs[head_ref]
            base = refs.get(base_ref, refs[result_ref]).commit
            head = refs[head_ref].commit if head_ref in refs else base
            missing = [(base_ref, base), (head_ref, head)]
            creations = [f"create {ref} {commit}" for ref, commit in missing if ref not in refs]
            if creations:
                await self._mirror.update(*creations)
            await self._checkout(name).set_to(head)
        return Branch(name=self._refs.branch(name), base=base, head=head)

    async def take_over(self, story_id: str) -> None:
        """Gets the branch of a story that another machine has had, and what was merged meanwhile."""
        if self._kept is not None:
            await self._kept.fetch(*self._names(story_id), taken=True)
            await self._fetch_result()

    async def settle(self) -> None:
        """Waits until nothing of cancelled calls is on its way to the store any more."""
        if self._kept is not None:
            await self._kept.settle()

    async def head(self, story_id: str) -> str:
        """Returns the commit of the story's branch. Raises WorkspaceError when there is no such branch."""
        return (await self._refs.ends(story_id))[1].commit

    @kept
    async def remove(self, story_id: str) -> None:
        """Deletes the story's branch, its recorded base and its worktree, if they exist."""
        name = checked_id(story_id)
        async with self._stories[name]:
            # The base is deleted first, in its own step, so that `open` can recognise an interrupted removal.
            names = self._names(name)
            if self._kept is not None:
                await self._kept.fetch(*names, taken=True)
            refs = await self._mirror.refs(*names)
            for ref in names:
                if ref in refs:
                    await self._mirror.update(f"delete {ref}")
            await self._checkout(name).remove()

    async def leave(self, story_id: str) -> None:
        """Removes the story's worktree; see the port."""
        self._queue.leave(story_id)
        async with self._stories[checked_id(story_id)]:
            await self._checkout(story_id).remove()

    @kept
    async def remove_result(self) -> None:
        """Deletes the result branch and the sprint's recorded base, so that `prepare` starts over."""
        names = (self._refs.ref("heads", RESULT), self._refs.ref("base", RESULT))
        present = await self._mirror.refs(*names)
        await self._mirror.update(*(f"delete {name}" for name in names if name in present))

    async def reset(self, story_id: str) -> None:
        """Makes the worktree equal to its branch again, byte for byte."""
        async with self._stories[story_id]:
            await self._reset(story_id)

    async def _reset(self, story_id: str) -> None:
        await self._mirror.mend()
        _, head = await self._refs.ends(story_id)
        await self._checkout(story_id).set_to(head.commit)

    async def files(self, story_id: str) -> tuple[str, ...]:
        """Returns paths of all tracked files of the branch, sorted; links are among them, submodules are not."""
        return await self.files_at(await self.head(story_id))

    async def read(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Returns text of those `paths` that are regular UTF-8 files of at most READ_LIMIT bytes on the branch."""
        return await self.read_at(await self.head(story_id), paths) if paths else {}

    async def obstacles(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Returns why no text can be written at those of `paths`; see the port."""
        return await commits.obstacles(self._mirror, await self.head(story_id), paths, limit=READ_LIMIT)

    async def read_base(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Like `read`, at the commit that `diff` starts from."""
        return await self.read_at((await self._refs.own_part(story_id))[0], paths) if paths else {}

    async def files_at(self, tree: str) -> tuple[str, ...]:
        """Like `files`, of a commit or of the tree of `sides`."""
        entries = await commits.tree_entries(self._mirror, tree)
        return tuple(sorted(commits.shown(path) for path, entry in entries.items() if entry.mode != 0o160000))

    async def read_at(self, tree: str, paths: Sequence[str]) -> dict[str, str]:
        """Like `read`, from a commit or the tree of `sides`."""
        return await commits.read_texts(self._mirror, tree, paths, limit=READ_LIMIT)

    async def write(self, story_id: str, changes: Sequence[FileChange], removed: Sequence[str] = ()) -> None:
        """Resets the worktree, then does all or nothing in it; see the port. Raises WorkspaceError."""
        contents = list(commits.encoded(changes).items())
        async with self._stories[story_id]:
            await self._reset(story_id)
            await asyncio.to_thread(write_below, self.root(story_id), contents, removed)

    async def ignored(self, story_id: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Returns those of `paths` that git ignores; see the port."""
        return await self._checkout(story_id).ignored(paths) if paths else ()

    @kept
    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        """Commits exactly these contents; the worktree stays as it is. See the port for repeated steps."""
        async with self._stories[story_id]:
            await self._mirror.mend()
            base, head = await self._refs.ends(story_id)
            earlier = await commits.find_step(self._mirror, base.commit, head.commit, note.step)
            if earlier is not None:
                return earlier
            tree = await commits.build_tree(self._mirror, head.commit, changes, removed)
            if tree == head.tree:
                return head.commit
            made = await commits.commit_tree(self._mirror, tree, (head.commit,), commits.message_of(note))
            await self._mirror.update(f"update {head.name} {made} {head.commit}")
            return made

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        """Raw diff of the story's own work; see the port."""
        return await commits.raw_diff(self._mirror, *await self._refs.own_part(story_id))

    async def patch(self, story_id: str, since: str, paths: Sequence[str]) -> str:
        """Returns the changes of these `paths` since that commit, as a unified diff; see the port."""
        head = await self.head(story_id)
        return await commits.patch(self._mirror, since, head, paths) if paths and since != head else ""

    async def diff_stat(self, story_id: str) -> str:
        """Returns the output of `git diff --stat` for the same difference, for people."""
        return await commits.diff_stat(self._mirror, *await self._refs.own_part(story_id))

    @kept
    async def sides(self, story_id: str, onto: str) -> Sides:
        """Merges the branch with a commit of the result branch as far as git can, without moving a branch."""
        _, head = await self._refs.ends(story_id)
        made = await merges.sides(self._mirror, onto, head.commit, limit=READ_LIMIT)
        if self._kept is not None:
            await self._kept.hold(story_id, made.tree)
        return made

    @kept
    async def take_in(self, story_id: str, onto: str, changes: Sequence[FileChange], note: CommitNote) -> str:
        """Merges a commit of the result branch into the story's branch; see the port."""
        async with self._stories[story_id]:
            await self._mirror.mend()
            return await merges.take_in(self._mirror, await self._refs.ends(story_id), onto, changes, note)

    async def test_merge(self, story_id: str, note: CommitNote, test: TestMerge[bool]) -> bool:
        """Tests what `merge` would make of the branch, and keeps the story's place for it; see the port."""
        await self._mirror.mend()
        head = await self.head(story_id)
        with self._queue.joined(story_id, head) as place:
            while True:
                _, conflicts, made = await self._build_merge(place, note)
                if conflicts:
                    return False
                if await self.content_of(made) == await self.content_of(head):
                    await self.reset(story_id)
                    fine = await self._queue.run(place, test(self.root(story_id), made))
                else:
                    fine = await self._shown(made, partial(self._test_place, place, test))
                if place.onto is not None:
                    if fine:
                        self._queue.keep(place)
                    return bool(fine)

    async def _test_place(self, place: Place, test: TestMerge[bool], folder: Path) -> bool | None:
        return await self._queue.run(place, test(folder, place.commit))

    @kept
    async def merge(
        self, story_id: str, note: CommitNote, check: CheckMerge, test: TestMerge[None] | None = None
    ) -> MergeResult:
        """Merges the branch into the result branch; see the port. Nothing moves unless `check` returns ""."""
        await self._mirror.mend()
        await self._fetch_result()
        start, result = await self._refs.ends(RESULT)
        head = await self.head(story_id)
        earlier = await merges.merge_of(self._mirror, start.commit, result.commit, head)
        if earlier is not None:
            return MergeResult(merged=True, commit=earlier)
        with self._queue.joined(story_id, head) as place:
            while True:
                ended = await self._try_merge(place, note, check, test)
                if ended is not None:
                    return ended

    async def _try_merge(
        self, place: Place, note: CommitNote, check: CheckMerge, test: TestMerge[None] | None
    ) -> MergeResult | None:
        """Returns how the merge with those before it ended; None when that has to be done again, on another commit."""
        queue = self._queue
        onto, conflicts, made = await self._build_merge(place, note)

        async def wait() -> None:
            async with activity("waiting for the merges of stories before it"):
                await queue.until(lambda: place.onto is None or queue.is_first(place))

        async def work(folder: Path) -> MergeResult | None:
            if test is not None:
                await queue.run(place, test(folder, made))
            await wait()
            if place.onto is None:
                return None
            red = await check(folder)
            async with acquired(self._merge_turn(), "waiting for another machine's merge"):
                if (result := await self._result_commit()) != onto:
                    queue.move(result)
                    return None
                if red:
                    return MergeResult(merged=False, red=red, onto=onto)
                await self._mirror.update(f"update {self._refs.ref('heads', RESULT)} {made} {onto}")
                queue.merge(place)
                if self._kept is not None:
                    await self._kept.keep()  # before another machine's turn
            return MergeResult(merged=True, commit=made, onto=onto)

        if made:
            return await self._shown(made, work)
        await wait()
        return None if place.onto is None else MergeResult(merged=False, conflicts=conflicts, onto=onto)

    async def _build_merge(self, place: Place, note: CommitNote) -> tuple[str, tuple[str, ...], str]:
        """Builds the merge of a place with those before it, unless it stands.

        Returns the commit that it is built on, the paths in conflict, and the merge, "" when there are any.
        """
        queue = self._queue
        if queue.is_first(place):
            queue.move(await self._result_commit())
        if place.onto is not None:
            return place.onto, (), place.commit
        await queue.until(lambda: queue.onto(place) is not None)
        onto = queue.onto(place) or ""
        merged = await merges.merge_trees(self._mirror, onto, place.head)
        made = ""
        if not merged.conflicts:
            parents = (onto, place.head)
            made = await commits.commit_tree(self._mirror, merged.tree, parents, commits.message_of(note))
        queue.build(place, onto, made)
        return onto, merged.conflicts, made

    @kept
    async def merged_by(self, workflow_id: str) -> str | None:
        """Returns the commit on the result branch that this workflow made, or None."""
        if self._kept is not None:
            await self._kept.restore_once()
            await self._fetch_result()
        return await merges.merged_by(self._mirror, self._refs, workflow_id)

    async def base_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Runs `work(folder)` on a detached checkout of the sprint's base commit, removed afterwards."""
        return await self._shown(self._base, work)

    async def start_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """Runs `work(folder)` on the base of the story's own changes, with `changes` written; removed afterwards."""
        return await self._shown((await self._refs.own_part(story_id))[0], work, changes)

    async def story_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """Runs `work(folder)` on the story's branch, with `changes` written; removed afterwards."""
        return await self._shown((await self._refs.ends(story_id))[1].commit, work, changes)

    @kept
    async def result_head(self) -> str:
        """Returns the commit of the result branch."""
        return await self._result_commit()

    async def _result_commit(self) -> str:
        await self._fetch_result()
        return (await self._refs.ends(RESULT))[1].commit

    async def result_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Runs `work(folder)` on a detached checkout of the result branch, removed afterwards."""
        return await self._shown(await self.result_head(), work)

    async def _shown(self, commit: str, work: Callable[[Path], Awaitable[T]], changes: Sequence[FileChange] = ()) -> T:
        place = self._checkout(f"base-{secrets.token_hex(4)}")
        try:
            await place.set_to(commit)
            await asyncio.to_thread(write_below, place.root, list(commits.encoded(changes).items()))
            return await work(place.root)
        finally:
            await place.remove()

    async def check_push(self, user_repo: Path, branch: str) -> None:
        """Raises RepositoryError unless `branch` of the user's repository can be created or fast-forwarded."""
        await repository.check_push(self._mirror, await self._fetch_result(), user_repo, branch)

    async def push(self, user_repo: Path, branch: str) -> None:
        """Creates or fast-forwards `branch` of the user's repository to the result; errors as `publish.push`."""
        await repository.push(self._mirror, await self._fetch_result(), user_repo, branch)

    async def _fetch_result(self) -> str:
        """Gets what other machines have merged; returns the ref of the result branch."""
        name = self._refs.ref("heads", RESULT)
        if self._kept is not None:
            await self._kept.fetch(name)
        return name

    def _names(self, story_id: str) -> list[str]:
        """Returns the refs of a story."""
        return [self._refs.ref(kind, checked_id(story_id)) for kind in KINDS]

    def _checkout(self, name: str) -> Checkout:
        return Checkout(self._mirror, self._folder, name)

    def _clear_locks(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._refs.clear_locks()
