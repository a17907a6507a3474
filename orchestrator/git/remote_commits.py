"""`state.remote`: another git repository that keeps the commits of sprints, in place of the database."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.core.errors import RepositoryError
from orchestrator.git.mirror import Mirror, checked_id
from orchestrator.git.remote_access import RemoteAddress, is_address, remote_address
from orchestrator.git.remote_repository import FETCH, PUSH, RemoteRepositories
from orchestrator.settings import Environment, Settings

_TOP = "refs/orchestrator/state"
_AT_ONCE = 500
"""Refs in one call of git: a command line has an end."""


class RemoteCommits:
    """Refs `refs/orchestrator/state/SPRINT/OBJECT` in the repository at `address`, one per object that a ref names.

    A ref named after its object is never moved: a process that was taken for dead and wakes up takes no commit away.
    Every method raises RepositoryError, or RepositoryUnreachable where the same may succeed later.
    """

    def __init__(self, address: RemoteAddress, remotes: RemoteRepositories) -> None:
        self._address, self._remotes = address, remotes

    def __str__(self) -> str:
        """Returns the address, which holds no secret."""
        return str(self._address)

    async def held(self, sprint: str) -> set[str]:
        """Returns the objects that are kept for the sprint."""
        await asyncio.to_thread(self._remotes.folder.mkdir, parents=True, exist_ok=True)
        found = await self._remotes.listed(self._address, f"{_top(sprint)}/*")
        return {name.rpartition("/")[2] for _, name in found}

    async def push(self, mirror: Mirror, sprint: str, oids: Collection[str]) -> None:
        """Keeps these objects of the mirror, and all that they refer to."""
        await self._push(mirror, [f"{oid}:{_top(sprint)}/{oid}" for oid in sorted(oids)])

    async def fetch(self, mirror: Mirror, sprint: str, oids: Collection[str]) -> None:
        """Gets these objects, and all that they refer to, into the mirror."""
        for names in _portions([f"{_top(sprint)}/{oid}" for oid in sorted(oids)]):
            await self._remotes.talk(self._address, mirror, ["fetch", *FETCH], [self._address.url, *names])

    async def forget(self, sprint: str, oids: Collection[str]) -> None:
        """Deletes the refs of these objects; a repository where nothing can be deleted keeps them."""
        formats = {"sha256" if len(oid) == 64 else "sha1" for oid in oids}
        for name in formats:
            # git pushes out of a repository only, also where nothing goes but names.
            empty = Mirror(self._remotes.folder / f"empty-{name}.git", object_format=name)
            try:
                await empty.prepare()
                with suppress(RepositoryError):
                    await self._push(empty, [f":{_top(sprint)}/{oid}" for oid in sorted(oids)])
            finally:
                empty.close()

    async def delete(self, sprint: str) -> None:
        """Deletes all refs of the sprint."""
        await self.forget(sprint, await self.held(sprint))

    async def _push(self, mirror: Mirror, names: Sequence[str]) -> None:
        for some in _portions(names):
            words, targets = ["push", *PUSH], [self._address.url, *some]
            said = await self._remotes.talk(self._address, mirror, words, targets, ok=(0, 1))
            refused = [line.rpartition("\t")[2] for line in said.text.splitlines() if line.startswith("!")]
            if said.code:
                raise RepositoryError(f"{self} did not take the commits of a sprint {' '.join(refused[:1])}".rstrip())


def open_remote_commits(settings: Settings, environment: Environment) -> RemoteCommits | None:
    """Returns what `state.remote` names, None when it names nothing. Raises RepositoryError for what is no address."""
    named = settings.state.remote
    if named is None:
        return None
    remotes = RemoteRepositories(environment.home / "repositories", environment.variables, settings.remote)
    if is_address(named):
        return RemoteCommits(remote_address(named), remotes)
    path = environment.base_dir / Path(named).expanduser()
    return RemoteCommits(RemoteAddress(url=str(path), protocol="file"), remotes)


def _top(sprint: str) -> str:
    return f"{_TOP}/{checked_id(sprint)}"


def _portions(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]
