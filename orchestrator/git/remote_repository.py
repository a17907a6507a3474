"""Remote repositories: a bare copy in the state folder that follows one branch, and pushes of results.

Only we use the copy: nothing is checked out of it, it has no hooks, filters or submodules and only our configuration,
and it can be recreated at any time. A push is never forced."""

import asyncio
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential

from orchestrator.core.errors import RepositoryError, RepositoryUnreachable, WorkspaceError
from orchestrator.core.secrets import redact
from orchestrator.git.command import GitOutput
from orchestrator.git.mirror import Mirror, remove_locks
from orchestrator.git.remote_access import RemoteAddress, let_in, remote_error
from orchestrator.settings.sections import RemoteSettings

T = TypeVar("T")
_MB = 1024 * 1024
_LOOK_S = 1.0
"""Seconds between two checks of a fetch's size."""
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DETACHED = "detached"
"""Our name for a detached remote HEAD."""
_PACKS = 50
"""Number of packs from which on they are combined."""
FETCH = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--quiet")
PUSH = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-recurse-submodules", "--no-signed", "--no-thin")


@dataclass(frozen=True, slots=True)
class _Head:
    """The remote ref that is followed."""

    branch: str
    ref: str
    """The ref to fetch."""
    commit: str


class RemoteRepositories:
    """Copies of remote repositories in `folder`; the credentials are in `variables`.

    Every method raises RepositoryError, or its subclass RepositoryUnreachable after `settings.max_attempts` failed
    connections; no message contains a secret.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str], settings: RemoteSettings) -> None:
        self.folder, self._variables = folder.absolute(), variables
        self._settings = settings
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def path(self, address: RemoteAddress) -> Path:
        """Returns the path of the copy, which may not exist yet."""
        return self.folder / f"{address.slug}.git"

    async def refresh(self, address: RemoteAddress) -> Path:
        """Clones or fetches, and returns the bare repository; its HEAD is the current commit of the followed branch.

        A damaged copy is cloned again. A copy that could not be updated keeps its old state.
        """
        async with self._locks[address.slug]:
            await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
            head, path = await self._head(address), self.path(address)
            new = not await asyncio.to_thread(path.exists)
            try:
                await self._follow(address, head)
            except (RepositoryError, WorkspaceError) as error:
                kept = not new and isinstance(error, RepositoryUnreachable | _TooMuch)
                if kept:
                    await asyncio.to_thread(remove_locks, path)  # and half a pack, which may have filled the disk
                    raise
                await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
                if new:
                    raise
                # The remote has just answered, so the copy is at fault: a crash or a full disk broke it.
                await self._follow(address, head)
            return path

    async def check_push(
        self, address: RemoteAddress, mirror: Path, commit: str, branch: str, *, begun: bool = False
    ) -> None:
        """Raises RepositoryError unless `branch` of the remote repository could now be created at, or fast-forwarded
        to, `commit` of the repository at `mirror`.

        If work has `begun`, the branch may also contain the commit already: it was pushed, and others continued it.
        """
        here = Mirror(mirror)
        refused = await self._push(address, here, commit, branch, "--dry-run")
        if refused and not (begun and await self._holds(address, here, commit, branch)):
            raise _unpushed(address, branch, refused)

    async def push(self, address: RemoteAddress, mirror: Path, commit: str, branch: str) -> None:
        """Creates or fast-forwards `branch` of the remote repository to `commit` of the repository at `mirror`.

        Does nothing if the branch contains the commit already. Leaves a diverged branch unchanged and raises
        RepositoryError with advice.
        """
        here = Mirror(mirror)
        refused = await self._push(address, here, commit, branch)
        if refused and not await self._holds(address, here, commit, branch):
            by_hand = ["git", f"--git-dir={mirror}", "push", address.url, f"{commit}:refs/heads/{branch}-2"]
            raise _unpushed(address, branch, refused, shlex.join(by_hand))

    async def _head(self, address: RemoteAddress) -> _Head:
        wanted = f"refs/heads/{address.branch}" if address.branch else "HEAD"
        lines = await self.listed(address, "--symref", wanted)
        symbolic = next((what[5:] for what, name in lines if name == "HEAD" and what.startswith("ref: ")), "")
        commit = next((what for what, name in lines if name == wanted and _OID.fullmatch(what)), "")
        if not commit:
            # A login page also yields an empty list, so this must not count as an empty repository.
            there = any(name.startswith("refs/heads/") for _, name in await self.listed(address, "--heads"))
            what = f"there is no branch {address.branch}" if address.branch else "its HEAD is no branch that exists"
            told = f"{what}; name one: {address.url}#BRANCH" if there else "there is no commit in it; push a first one"
            raise RepositoryError(f"{address}: {told}")
        if address.branch or symbolic.startswith("refs/heads/"):
            branch = address.branch or symbolic.removeprefix("refs/heads/")
            return _Head(branch, f"refs/heads/{branch}", commit)
        return _Head(_DETACHED, "HEAD", commit)

    async def listed(self, address: RemoteAddress, *args: str) -> list[tuple[str, str]]:
        """Returns the output of `ls-remote` as (commit, name)."""
        options = [arg for arg in args if arg.startswith("--")]
        names = [arg for arg in args if not arg.startswith("--")]
        said = await self.talk(address, Mirror(self.folder), ["ls-remote", *options], [address.url, *names])
        found = (line.partition("\t") for line in said.text.splitlines())
        return [(what, name) for what, _, name in found]

    async def _follow(self, address: RemoteAddress, head: _Head) -> None:
        if len(head.commit) == 64:
            raise RepositoryError(f"{address} has objects of the format sha256: only SHA-1 can be worked on")
        copy = Mirror(self.path(address))
        try:
            await copy.prepare()
            ref = f"refs/heads/{head.branch}"
            known = await copy.refs("refs/heads/")
            if ref not in known or known[ref].commit != head.commit:
                await self.talk(address, copy, ["fetch", *FETCH], [address.url, f"+{head.ref}:{ref}"])
            await copy.git("symbolic-ref", "HEAD", ref)
            gone = [name for name in known if name != ref]
            if gone:
                await copy.update(*(f"delete {name}" for name in gone))
            if len(await asyncio.to_thread(lambda: [*copy.path.glob("objects/pack/*.pack")])) > _PACKS:
                await copy.git("repack", "-a", "-d", "--keep-unreachable", "--quiet")
        finally:
            copy.close()

    async def _push(self, address: RemoteAddress, here: Mirror, commit: str, branch: str, *more: str) -> str:
        """Returns why the remote, or git for it, refused the branch; "" when it did not."""
        target = f"refs/heads/{branch}"
        fit = await here.git("check-ref-format", target, ok=(0, 1))
        if fit.code or branch.startswith("-") or branch == "HEAD":
            raise RepositoryError(f"{branch!r} is no name for a branch")
        words = ["push", *PUSH, *more]
        said = await self.talk(address, here, words, [address.url, f"{commit}:{target}"], ok=(0, 1))
        if said.code and not any(line.startswith("!") for line in said.text.splitlines()):
            raise RepositoryError(f"{commit} could not be pushed to {address.url}: {redact(said.refusal)}")
        return redact(said.refusal) if said.code else ""

    async def _holds(self, address: RemoteAddress, here: Mirror, commit: str, branch: str) -> bool:
        """Returns whether the remote branch is at the commit or ahead of it: others continued from our push."""
        try:
            [(tip, _)] = await self.listed(address, f"refs/heads/{branch}")
            await self.talk(address, here, ["fetch", *FETCH], [address.url, f"refs/heads/{branch}"])
            return (await here.git("merge-base", "--is-ancestor", commit, tip, ok=(0, 1, 128))).code == 0
        except (RepositoryError, WorkspaceError, ValueError):  # unknown counts as no
            return False

    async def talk(
        self,
        address: RemoteAddress,
        where: Mirror,
        words: Sequence[str],
        names: Sequence[str],
        ok: Collection[int] = (0,),
    ) -> GitOutput:
        """Runs `git <words> -- <names>` at `where`, and retries while the connection fails."""
        policy = self._settings
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(RepositoryUnreachable),
            stop=stop_after_attempt(policy.max_attempts),
            wait=wait_exponential(multiplier=policy.wait_initial_s, max=60),
            reraise=True,
        )
        return await retrying(self._once, address, where, words, names, ok)

    async def _once(
        self, address: RemoteAddress, where: Mirror, words: Sequence[str], names: Sequence[str], ok: Collection[int]
    ) -> GitOutput:
        program = "receive-pack" if words[0] == "push" else "upload-pack"
        async with let_in(address, self.folder, self._variables) as access:
            work = where.git(
                *words,
                *access.option(program),
                "--",
                *names,
                ok=ok,
                protocols=address.protocol,
                settings=(*access.settings, "fetch.unpackLimit=1"),  # the growth of a pack can be observed
                variables=access.variables,
            )
            try:
                return await self._within(address, where.path if words[0] == "fetch" else None, work)
            except WorkspaceError as error:
                raise remote_error(error.message, address, access) from None

    async def _within(self, address: RemoteAddress, filled: Path | None, work: Awaitable[T]) -> T:
        """Returns the result of `work`; ends it when it takes too long, or makes the repository `filled` too large."""
        doing = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                while not (await asyncio.wait({doing}, timeout=_LOOK_S))[0]:
                    if filled is not None:
                        await asyncio.to_thread(self._require_room, address, filled)
                return doing.result()
        except TimeoutError:
            limit = self._settings.timeout_s
            raise _TooMuch(f"{address} took longer than remote.timeout_s ({limit:g} s)") from None
        finally:
            doing.cancel()
            await asyncio.wait({doing})

    def _require_room(self, address: RemoteAddress, repository: Path) -> None:
        limit = self._settings.max_mb
        if sum(map(_size, repository.glob("objects/pack/*"))) > limit * _MB:
            raise _TooMuch(f"{address} is larger than remote.max_mb ({limit} MB)")


class _TooMuch(RepositoryError):
    """A limit of ours ended it; another clone would exceed it again."""


def _size(path: Path) -> int:
    with suppress(OSError):  # deleted during the walk
        return path.lstat().st_size
    return 0


def _unpushed(address: RemoteAddress, branch: str, refused: str, command: str = "") -> RepositoryError:
    why = "has gone its own way" if re.search(r"fetch first|non-fast-forward|stale", refused) else "was refused"
    told = f"branch {branch} of {address.url} {why} ({refused})"
    return RepositoryError(told + (f"; get the result with: {command}" if command else "; name another branch"))
