"""What the commit that a sprint begins at says about a project's environment, which no story can change."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from packaging.version import InvalidVersion, Version

from orchestrator.adapters.checkout import Checkout
from orchestrator.adapters.commits import read_texts, tree_entries
from orchestrator.adapters.git import run_git
from orchestrator.adapters.install_scripts import NAME
from orchestrator.adapters.mirror import Mirror
from orchestrator.adapters.python_test_setups import SETUPS
from orchestrator.domain.base import Value
from orchestrator.domain.file_kinds import is_manifest
from orchestrator.errors import WorkspaceError
from orchestrator.syntax import npm_lock, python_locks

_LOCKS = (npm_lock.is_lock, python_locks.is_lock)
_LIMIT = 8 * 1024 * 1024
"""Bytes of a file beyond which it is left out."""


class BaseFacts(Value):
    """What environments take from the base."""

    setups: dict[str, str] = {}
    """Texts of the files that say what a project's tests are run with (`SETUPS`), by path."""
    version: str = ""
    """The nearest tag's, for projects that take theirs from git; "" when there is none."""
    packages: frozenset[str] = frozenset()
    """What manifests and lock files name: packages, and whatever else looks like a name there."""

    def below(self, folder: str) -> dict[str, str]:
        """The texts of `folder` ("" for all) by their paths in it."""
        prefix = f"{folder}/" if folder else ""
        return {path.removeprefix(prefix): text for path, text in self.setups.items() if path.startswith(prefix)}


class BaseCommit:
    """Reads `commit` ("" for an empty tree) from the mirror, which has it, and tags from the people's repository."""

    def __init__(self, mirror: Path, commit: str, repository: Path) -> None:
        self._mirror, self._commit, self._repository = Mirror(mirror), commit, repository
        self._facts: BaseFacts | None = None
        self._once = asyncio.Lock()

    async def facts(self) -> BaseFacts:
        """The same at every call. Raises WorkspaceError when the mirror does not have the commit."""
        async with self._once:
            if self._facts is None:
                self._facts = await self._read() if self._commit else BaseFacts()
        return self._facts

    async def tree_id(self) -> str:
        """Names the base's files; "" for an empty tree. Raises WorkspaceError."""
        told = await self._mirror.git("rev-parse", "--verify", f"{self._commit}^{{tree}}") if self._commit else None
        return "" if told is None else told.text.strip()

    @asynccontextmanager
    async def checkout(self, parent: Path) -> AsyncIterator[Path]:
        """The base's files in a folder of `parent`, for as long as the block runs. Raises WorkspaceError."""
        place = Checkout(self._mirror, parent, "base")
        try:
            await place.set_to(self._commit)
            yield place.root
        finally:
            await place.remove()

    async def _read(self) -> BaseFacts:
        entries = await tree_entries(self._mirror, self._commit)
        setups = await self._texts(filter(SETUPS.search, entries))
        texts = await self._texts(path for path in entries if is_manifest(path) or any(one(path) for one in _LOCKS))
        packages = await asyncio.to_thread(lambda: {name for text in texts.values() for name in NAME.findall(text)})
        tag = ""
        with suppress(WorkspaceError):  # no tag, or the repository is not there any more
            told = await run_git(["describe", "--tags", "--abbrev=0", self._commit], cwd=self._repository)
            tag = told.text
        return BaseFacts(setups=setups, version=version_of(tag), packages=frozenset(packages))

    async def _texts(self, paths: Iterable[str]) -> dict[str, str]:
        return await read_texts(self._mirror, self._commit, [*paths], limit=_LIMIT)


def version_of(tag: str) -> str:
    """`v1.2.0`, `humanize-1.2.0` → 1.2.0; "" for a tag that ends with no version."""
    found = re.search(r"(?:^|[-_/.])v?(\d[^/_]*)$", tag)
    with suppress(InvalidVersion):
        return str(Version(found[1])) if found else ""
    return ""
