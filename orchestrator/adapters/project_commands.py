"""What people say in `environment.setup` and `environment.build` is run, and what it makes is put into each tree."""

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.leftovers import leftovers, named
from orchestrator.adapters.python_project import files_below, put_back
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.testing import CommandResult
from orchestrator.settings.environment import EnvironmentSettings

Command = Callable[[Path, str, bool], Awaitable[CommandResult]]
"""(folder, shell command, whether it has the network of the fetch step) → what came of it."""
_BEGUN = ".begun-"
_TOLD = 4000
"""Characters kept of what a command printed at its end."""


class ProjectCommands:
    """Setup runs once on the base commit and is kept in `folder`; build runs in each tree when its files changed.

    Both make files that no commit has; those are copied into the tree where they are missing. What they change in
    files of the commit is not kept.
    """

    def __init__(self, folder: Path, settings: EnvironmentSettings, base: BaseCommit | None) -> None:
        self._folder, self._settings, self._base = folder, settings, base
        self._built: dict[Path, str] = {}
        self._lock = asyncio.Lock()

    async def prepare(self, root: Path, command: Command) -> str:
        """Make the tree ready; why it cannot be, "" when it is. Calls for one tree come one after the other."""
        if self._settings.setup and self._base is not None:
            made = await self._set_up(self._base, command)
            if isinstance(made, str):
                return made
            await asyncio.to_thread(put_back, made, root)
        return await self._build(root, command) if self._settings.build else ""

    async def _set_up(self, base: BaseCommit, command: Command) -> Path | str:
        """The folder of what setup made; why there is none."""
        content = [base.commit, self._settings.model_dump(mode="json", include={"setup", "env", "hosts", "python"})]
        place = self._folder / hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
        async with self._lock:
            if await asyncio.to_thread(place.is_dir):
                return place
            begun = await asyncio.to_thread(_begin, self._folder)
            try:
                root = await base.checkout(begun, "tree")
                before = await asyncio.to_thread(files_below, root)
                if told := await _run(root, "environment.setup", self._settings.setup, command, fetch=True):
                    return told
                await asyncio.to_thread(_keep_new, root, before, begun / "made")
                await asyncio.to_thread(_put, begun / "made", place)
            finally:
                await asyncio.to_thread(remove_tree, begun)
        return place

    async def _build(self, root: Path, command: Command) -> str:
        kept = self._folder / f"built-{os.getpid()}" / hashlib.sha256(str(root).encode()).hexdigest()[:32]
        made = await asyncio.to_thread(files_below, kept)
        digest = await asyncio.to_thread(_digest, root, made)
        if self._built.get(root) != digest:
            for path in made:  # what is out of date must not be taken for new
                await asyncio.to_thread((root / path).unlink, missing_ok=True)
            before = await asyncio.to_thread(files_below, root)
            if told := await _run(root, "environment.build", self._settings.build, command, fetch=False):
                return told
            await asyncio.to_thread(remove_tree, kept)
            await asyncio.to_thread(_keep_new, root, before, kept)
            self._built[root] = digest
        await asyncio.to_thread(put_back, kept, root)
        return ""


async def _run(root: Path, setting: str, lines: Sequence[str], command: Command, *, fetch: bool) -> str:
    for line in lines:
        result = await command(root, line, fetch)
        if not result.ok:
            how = f"was ended: {result.limit}" if result.limit else f"ended with exit code {result.exit_code}"
            return f"{setting}: `{line}` {how}\n{result.output[-_TOLD:]}"
    return ""


def _begin(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for left in leftovers(folder, _BEGUN):
        remove_tree(left)
    begun = folder / f"{named(_BEGUN)}{os.urandom(4).hex()}"
    begun.mkdir()
    return begun


def _keep_new(root: Path, before: set[str], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in files_below(root) - before:
        source, copy = root / path, target / path
        if source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


def _put(made: Path, place: Path) -> None:
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():  # else another process was first
            raise


def _digest(root: Path, made: set[str]) -> str:
    """Changes with the tree's files, but for tests and what a build made."""
    found = hashlib.sha256()
    for path in sorted(files_below(root) - made):
        if not is_test_file(path) and not (root / path).is_symlink():
            found.update(f"\0{path}\0".encode() + (root / path).read_bytes())
    return found.hexdigest()
