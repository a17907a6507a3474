"""The orchestrator's own bare repository: created file by file with our configuration, shared by all sprints.

Also: the names of a sprint's branches in it, and the cleanup of unneeded objects.
"""

import asyncio
import fcntl
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.core.story import id_problem
from orchestrator.git.command import GitOutput, remote_command, run_git
from orchestrator.git.objects import Commit, KeptAnswers, name_of, write_objects

_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
\tfilemode = true
\tlogAllRefUpdates = false
\tfilesRefLockTimeout = 5000
\tpackedRefsTimeout = 10000
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_ATTRIBUTES = """# Contents are kept byte for byte: no attribute of a tree has any effect here.
* !text !eol !crlf !ident !filter !working-tree-encoding !merge !diff !conflict-marker-size !whitespace !delta
"""
_NOT_OURS = ("hooks", "commondir", "gitdir", "config.worktree", "info/grafts", "objects/info/alternates")
"""Files that our repository never has and git would use: programs, other locations of objects and refs."""
_ORPHANS_S = 2.0
"""Seconds that startup waits for git children of a killed process to release their locks."""
_OTHER_SIDE = ("safe.directory=*", "uploadpack.allowAnySHA1InWant=true", "transfer.hideRefs=")
_RECEIVING = ("receive.denyCurrentBranch=refuse", "receive.denyNonFastForwards=true", "receive.denyDeletes=true")


_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Ref:
    """A ref with the commit it names and that commit's tree."""

    name: str
    commit: str
    tree: str


class Mirror:
    """The bare repository at `path`. Call `prepare` before anything else and `close` at the end."""

    def __init__(self, path: Path, *, lock_fds: Sequence[int] = ()) -> None:
        self.path = path
        self._lock_fds = tuple(lock_fds)
        self._shared_fd = -1
        self._refs = asyncio.Lock()
        self._trees: dict[str, str] = {}
        self.kept = KeptAnswers()
        self.made: dict[str, Commit] = {}
        """Latest commits of ours, by id."""

    async def prepare(self) -> None:
        """Creates the repository if it is missing, and removes leftovers of a killed process.

        Lock files are removed only while no other living process (or git child of a dead one) uses the mirror.
        """
        await asyncio.to_thread(self._prepare)

    def close(self) -> None:
        """Releases this process's lock on the mirror."""
        if self._shared_fd >= 0:
            os.close(self._shared_fd)
            self._shared_fd = -1

    def _prepare(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._shared_fd < 0:
            self._shared_fd = _open_lock(self.path)
        if self._alone():
            remove_locks(self.path)
            self._make()
        fcntl.flock(self._shared_fd, fcntl.LOCK_SH)
        self._make()
        self._mend()

    def _alone(self) -> bool:
        """Returns whether we hold the mirror exclusively; waits a little if orphaned git processes left locks."""
        deadline = time.monotonic() + _ORPHANS_S
        while True:
            with suppress(BlockingIOError):  # others use the mirror
                fcntl.flock(self._shared_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            # Waiting helps only if a killed process left locks that its git children may still hold.
            made = (self.path / "config").exists()
            if time.monotonic() > deadline or (made and not any(_leftovers(self.path))):
                return False
            time.sleep(0.05)

    def _make(self) -> None:
        config = self.path / "config"
        if config.exists():
            return
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        (self.path / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        _settle(config, _CONFIG)

    async def mend(self) -> None:
        """Restores our configuration if it was changed, and removes files that redirect git."""
        await asyncio.to_thread(self._mend)

    def _mend(self) -> None:
        for name, text in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES)):
            path = self.path / name
            with suppress(FileNotFoundError):  # missing: written below
                if not path.is_symlink() and path.read_bytes() == text.encode():
                    continue
            _settle(path, text)
        for name in _NOT_OURS:
            _remove(self.path / name)

    def shallow(self) -> str:
        """Returns the commits without parents here, one on a line. Blocks."""
        path = self.path / "shallow"
        return path.read_text(encoding="ascii") if path.exists() else ""

    def add_shallow(self, commits: str) -> None:
        """Adds commits whose parents nobody has. Blocks."""
        if lines := {*commits.split()} - {*self.shallow().split()}:
            _settle(self.path / "shallow", "".join(f"{one}\n" for one in sorted(lines | {*self.shallow().split()})))

    async def git(
        self,
        *args: str,
        stdin: bytes | IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        index: Path | None = None,
        work_tree: Path | None = None,
        ok: Collection[int] = (0,),
        protocols: str = "none",
        settings: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> GitOutput:
        """Runs git on the mirror (see `run_git`)."""
        fds = (*self._lock_fds, *((self._shared_fd,) if self._shared_fd >= 0 else ()))
        return await run_git(
            args,
            git_dir=self.path,
            work_tree=work_tree,
            index=index,
            stdin=stdin,
            stdout=stdout,
            ok=ok,
            protocols=protocols,
            settings=settings,
            variables=variables,
            pass_fds=fds,
        )

    async def read(self, *args: str, ids: Sequence[str]) -> GitOutput:
        """Runs git for an answer that the objects `ids` in `args` alone decide; keeps it when all are full ids."""
        if not all(_ID.fullmatch(name) for name in ids):
            return await self.git(*args)
        output = self.kept.get(args)
        if output is None:
            output = await self.git(*args)
            self.kept.put(args, output)
        return output

    async def refs(self, *names: str) -> dict[str, Ref]:
        """Returns the existing refs among the full `names` (or all below names ending with `/`), by name."""
        folders = not names or any(name.endswith("/") for name in names)
        read = None if folders else await asyncio.to_thread(self._loose_refs, names)
        if read is not None:
            return read
        output = await self.git("for-each-ref", "--format=%(refname) %(objectname) %(tree)", *names)
        found = (Ref(*line.split(" ")) for line in output.text.splitlines())
        refs = {ref.name: ref for ref in found}
        for ref in refs.values():
            self._note_tree(ref.commit, ref.tree)
        return refs

    def _note_tree(self, commit: str, tree: str) -> None:
        if len(self._trees) > 1000:
            self._trees.clear()
        self._trees[commit] = tree

    def known_tree(self, name: str) -> str:
        """Returns the tree of a commit if it is known, else `name` itself: a tree, a ref, or another commit."""
        return self._trees.get(name) or name  # "": a ref that names a tree

    def _loose_refs(self, names: Sequence[str]) -> dict[str, Ref] | None:
        """Reads refs from their files, which git replaces as a whole and which win over packed ones.

        Returns None when only git can tell: one may be packed, or the tree of a commit is not known.
        """
        found, absent = {}, False
        for name in names:
            try:
                commit = (self.path / name).read_text(encoding="ascii").removesuffix("\n")
            except FileNotFoundError:
                absent = True
                continue
            except (OSError, UnicodeDecodeError):  # a folder of refs, or damaged
                return None
            tree = self._trees.get(commit)
            if tree is None:
                return None
            found[name] = Ref(name, commit, tree)
        # Looked for last: git packs a ref before it removes its file.
        return None if absent and (self.path / "packed-refs").exists() else found

    async def write(self, objects: Sequence[tuple[str, str, bytes]]) -> None:
        """Writes objects (id, kind, content). Raises WorkspaceError."""
        try:
            await asyncio.to_thread(write_objects, self.path / "objects", objects)
        except OSError as error:
            raise WorkspaceError(f"an object could not be written to {self.path}: {error.strerror}") from error

    async def write_commit(self, commit: Commit) -> str:
        """Writes a commit of ours and returns its id."""
        content = commit.encode()
        oid = name_of("commit", content)
        await self.write([(oid, "commit", content)])
        self._note_tree(oid, commit.tree)
        if len(self.made) > 1000:
            self.made.clear()
        self.made[oid] = commit
        return oid

    def made_between(self, base: str, head: str) -> list[tuple[str, Commit]] | None:
        """Returns the commits after `base` on the way from `head` to it along first parents, newest first.

        Returns None when there is another one than the latest of ours on that way.
        """
        found = []
        while head != base:
            commit = self.made.get(head)
            if commit is None or not commit.parents:
                return None
            found.append((head, commit))
            head = commit.parents[0]
        return found

    async def update(self, *commands: str) -> None:
        """Applies `git update-ref --stdin` commands, all or none, in order.

        Raises WorkspaceError when an old value differs: another process moved the ref.
        """
        lines = "\n".join(["start", *commands, "prepare", "commit", ""])
        async with self._refs:
            await self.git("update-ref", "--stdin", stdin=lines.encode())

    async def fetch(self, source: Path, commit: str, ref: str) -> None:
        """Copies `commit` with its history from the repository at `source` (absolute) to `ref`. Raises RepositoryError.

        Ignores hooks and configuration of that repository; a shallow one stays shallow.
        """
        other = remote_command("upload-pack", _OTHER_SIDE)
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--update-shallow", "--quiet")
        where = (f"--upload-pack={other}", "--", str(source), f"{commit}:{ref}")
        try:
            await self.git("fetch", *options, *where, protocols="file")
            self.kept.clear()  # a shallow history may have grown
        except WorkspaceError as error:
            raise RepositoryError(f"commit {commit[:12]} could not be copied from {source}: {error.message}") from error

    async def push(self, target: Path, commit: str, branch: str, *, expected: str) -> None:
        """Sets `branch` of the repository at `target` (absolute) to `commit` if it still is at `expected` ("": absent).

        Raises WorkspaceError when it moved, is checked out there, cannot be fast-forwarded, or the other repository's
        settings refuse it; the message says which.
        """
        ref = f"refs/heads/{branch}"
        other = remote_command("receive-pack", (*_OTHER_SIDE, *_RECEIVING))
        options = ("--no-verify", "--porcelain", f"--force-with-lease={ref}:{expected}", f"--receive-pack={other}")
        where = ("--", str(target), f"{commit}:{ref}")
        answer = await self.git("push", *options, *where, protocols="file", ok=(0, 1, 128))
        if answer.code:
            raise WorkspaceError(f"branch {branch} of {target} could not be set to {commit[:12]}: {answer.refusal}")


def _settle(path: Path, text: str) -> None:
    """Writes a temporary file and renames it, so that no one ever sees half a file, even after a kill."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    path.parent.mkdir(exist_ok=True)
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _leftovers(folder: Path) -> Iterator[Path]:
    """Yields lock files (no ref can have such a name), incomplete objects, and our incomplete files."""
    for where, _, names in os.walk(folder):
        yield from (Path(where, name) for name in names if name.endswith(".lock"))
    yield from (folder / "objects").rglob("tmp_*")  # packs and objects that git had not finished
    yield from folder.glob("config.*.new")
    yield from folder.glob("info/attributes.*.new")


def remove_locks(folder: Path) -> None:
    """Removes every lock and temporary file of git below `folder`; the caller ensures that no one uses them."""
    for path in list(_leftovers(folder)):
        _remove(path)


def _open_lock(mirror: Path) -> int:
    """Opens the mirror's lock file: its users hold a shared lock, `tidy` an exclusive one."""
    return os.open(mirror.with_name(f"{mirror.name}.flock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@asynccontextmanager
async def _locked(mirror: Path, how: int) -> AsyncIterator[int | None]:
    """Yields the locked descriptor, to be passed to git; None when others hold the lock and `how` does not wait."""
    fd = _open_lock(mirror)
    try:
        try:
            await asyncio.to_thread(fcntl.flock, fd, how)
        except BlockingIOError:
            yield None
        else:
            yield fd
    finally:
        os.close(fd)


KINDS = ("base", "heads", "sides")
"""The kinds of refs that a sprint has."""
RESULT = "result"
"""The branch with the merged stories; no story has this name."""


def checked_id(identifier: str) -> str:
    """Returns the id of a sprint or a story if it can be part of a branch's name, else raises WorkspaceError."""
    problem = id_problem(identifier)
    if problem is not None:
        raise WorkspaceError(f"{identifier!r} cannot name a branch: {problem}")
    return identifier


class SprintRefs:
    """Refs of one sprint: `heads` are its branches, `base` the commits where they start, `sides` trees of merges."""

    def __init__(self, mirror: Mirror, sprint: str) -> None:
        self._mirror, self._sprint = mirror, checked_id(sprint)

    def branch(self, name: str) -> str:
        """Returns the name of a branch for people."""
        return f"orchestrator/{self._sprint}/{name}"

    def ref(self, kind: str, name: str) -> str:
        """Returns the full name of a ref; `name` may be "" for the folder of all."""
        top = "refs/heads/orchestrator" if kind == "heads" else f"refs/orchestrator/{kind}"
        return f"{top}/{self._sprint}/{name}"

    async def ends(self, name: str) -> tuple[Ref, Ref]:
        """Returns base and head of a story's branch, or of the result branch. Raises WorkspaceError without one."""
        if name != RESULT:
            checked_id(name)
        base_ref, head_ref = self.ref("base", name), self.ref("heads", name)
        refs = await self._mirror.refs(base_ref, head_ref)
        if len(refs) < 2:
            raise WorkspaceError(f"{name} has no branch in sprint {self._sprint}")
        return refs[base_ref], refs[head_ref]

    async def own_part(self, story_id: str) -> tuple[str, str]:
        """Returns the range of the story's own work: its head, and the last commit of the result that it merged.

        Only `take_in` makes merge commits on a story's branch, so the commits themselves are the record, and a kill
        cannot leave it half-written.
        """
        base, head = await self.ends(story_id)
        made = self._mirror.made_between(base.commit, head.commit)
        if made is not None:
            merges = (commit for _, commit in made if len(commit.parents) > 1)
            return next((commit.parents[1] for commit in merges), base.commit), head.commit
        walk = ("-1", "--first-parent", "--merges", "--format=%P", f"{base.commit}..{head.commit}")
        parents = (await self._mirror.read("log", *walk, ids=(base.commit, head.commit))).text.split()
        return (parents[1] if parents else base.commit), head.commit

    def clear_locks(self) -> None:
        """Removes leftovers of killed git processes; the caller holds the sprint's lock."""
        for kind in KINDS:
            remove_locks(Path(self._mirror.path / self.ref(kind, "")))


async def drop_branches(path: Path, sprint: str, stories: Collection[str], lock_fds: Sequence[int]) -> None:
    """Deletes branch and recorded base of these stories of one sprint, if they exist. Raises WorkspaceError."""
    if not await asyncio.to_thread((path / "config").exists):
        return
    mirror = Mirror(path, lock_fds=lock_fds)
    refs = SprintRefs(mirror, sprint)
    names = [refs.ref(kind, story) for story in stories for kind in KINDS]
    present = await mirror.refs(*names) if names else {}
    if present:
        await mirror.update(*(f"delete {name}" for name in present))


async def tidy(path: Path, *, drop_unreachable: bool) -> bool:
    """Packs the mirror's objects; returns False without doing so while it is in use. Raises WorkspaceError.

    `drop_unreachable` requires that no sprint is unfinished: a merge that waits for a person may refer to a tree only
    by its hash.
    """
    if not await asyncio.to_thread((path / "config").exists):
        return False
    if drop_unreachable:
        return await _alone(path, ("repack", "-a", "-d", "-q"), ("prune-packed", "-q"), ("prune", "--expire=now"))
    return await _alone(path, ("repack", "-a", "-d", "-q", "-k"), ("prune-packed", "-q"))


async def _alone(path: Path, *commands: Sequence[str]) -> bool:
    """Runs git on a mirror that nobody else uses; returns False without doing so while it is in use."""
    async with _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as fd:
        if fd is None:
            return False
        await asyncio.to_thread(remove_locks, path)
        for command in commands:
            await Mirror(path, lock_fds=(fd,)).git(*command)
    return True


LOOSE = 256
"""Objects in files of their own from which they are packed: each takes a block of the disk, 4 kB as a rule."""


async def pack_loose(path: Path) -> bool:
    """Packs the objects that refs lead to and that are files of their own, if they are many; returns False without
    doing so, also while the mirror is in use. Raises WorkspaceError.
    """
    if await asyncio.to_thread(lambda: sum(1 for _ in (path / "objects").glob("[0-9a-f][0-9a-f]/*"))) < LOOSE:
        return False
    return await _alone(path, ("repack", "-d", "-q"))
