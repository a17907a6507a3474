"""Remote repositories: a bare copy in the state folder that follows one branch, and pushes of results.

Only we use the copy: nothing is checked out of it, it has no hooks, filters or submodules and only our configuration,
and it can be recreated at any time. A push is never forced."""

import asyncio
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential

from orchestrator.core.errors import RepositoryError, RepositoryUnreachable, WorkspaceError
from orchestrator.core.secrets import redact
from orchestrator.git.command import GitOutput
from orchestrator.git.mirror import Mirror, remove_locks
from orchestrator.git.remote_access import RemoteAddress, let_in, remote_error

ATTEMPTS = 4
"""Tries of a clone, fetch or push whose connection fails; what the other side refuses is not tried again."""
LIMIT_S = 900.0
"""Of one try."""
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

    Every method raises RepositoryError, or its subclass RepositoryUnreachable after ATTEMPTS failed
    connections; no message contains a secret.
    """

    def __init__(
        self, folder: Path, variables: Mapping[str, str], *, wait_s: float = 2.0, limit_s: float = LIMIT_S
    ) -> None:
        """`wait_s` goes before the second try and doubles with each; `limit_s` is that of one try."""
        self.folder, self._variables = folder.absolute(), variables
        self._wait_s, self._limit_s = wait_s, limit_s
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
                kept = not new and isinstance(error, RepositoryUnreachable | _TooLong)
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
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(RepositoryUnreachable),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=self._wait_s, max=60),
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
                settings=access.settings,
                variables=access.variables,
            )
            try:
                async with asyncio.timeout(self._limit_s):
                    return await work
            except TimeoutError:
                raise _TooLong(f"{address} took longer than {self._limit_s:g} s") from None
            except WorkspaceError as error:
                raise remote_error(error.message, address, access) from None


class _TooLong(RepositoryError):
    """The limit ended it; another clone would take as long."""


def _unpushed(address: RemoteAddress, branch: str, refused: str, command: str = "") -> RepositoryError:
    why = "has gone its own way" if re.search(r"fetch first|non-fast-forward|stale", refused) else "was refused"
    told = f"branch {branch} of {address.url} {why} ({refused})"
    return RepositoryError(told + (f"; get the result with: {command}" if command else "; name another branch"))
