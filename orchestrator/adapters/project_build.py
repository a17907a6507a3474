"""What people's commands of `environment.build`, then recorded ones of tasks, make from a tree's own sources."""

import asyncio
import hashlib
import json
import os
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.checkout import commands_for
from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.generated_files import paths_in, put_back, take_new
from orchestrator.adapters.project_setup import Run, told_failure

_FILES = "files"
_BUILT = "built.json"
"""The tag and the paths of the sources, when the commands ran the last time."""


class ProjectBuild:
    """Runs the commands where files have changed since; what they made is kept in `folder`/<key> and put back."""

    def __init__(self, folder: Path, commands: Sequence[str], timeout_s: float) -> None:
        self._folder, self._commands, self._timeout_s = folder.absolute(), tuple(commands), timeout_s
        self._locks: dict[str, asyncio.Lock] = {}

    def has_work(self, root: Path) -> bool:
        """Whether there is any command for the tree. Blocks."""
        return bool(self._commands or commands_for(root))

    async def ensure(self, root: Path, key: str, run: Run) -> str:
        """Have in `root` what the commands make of it; "" when it is there, else the failed one's output and end.

        As in a worktree of one's own, they find what they made before. A recorded one that fails stops nothing: it may
        have been for one time only, and what it no longer makes, the tests miss.
        """
        recorded = await asyncio.to_thread(commands_for, root)
        place = self._folder / key
        async with self._locks.setdefault(key, asyncio.Lock()):
            before, tag = await asyncio.to_thread(self._look, root, place, recorded)
            built, sources = await asyncio.to_thread(_read, place / _BUILT)
            if not sources <= before:  # nobody knows what was made of the one that is gone
                await asyncio.to_thread(remove_tree, place / _FILES)
            await asyncio.to_thread(put_back, place / _FILES, root)
            if built == tag:
                return ""
            await asyncio.to_thread(_write, place / _BUILT, "", before)
            for command in self._commands:
                result = await run(root, command, timeout_s=self._timeout_s)
                if not result.ok:
                    return told_failure("build", command, result)
            for command in recorded:
                await run(root, command, timeout_s=self._timeout_s)
            await asyncio.to_thread(_keep, root, before, place, tag)
        return ""

    def _look(self, root: Path, place: Path, recorded: Sequence[str]) -> tuple[set[str], str]:
        """The paths that are there without the commands, and what changes with the files at them."""
        (place / _FILES).mkdir(parents=True, exist_ok=True)
        before = paths_in(root) - paths_in(place / _FILES)
        return before, _digest(root, before, (*self._commands, *recorded))


def _digest(root: Path, paths: Collection[str], commands: Sequence[str]) -> str:
    """By their sizes and times, as make does."""
    found = hashlib.sha256(json.dumps(commands).encode())
    for path in sorted(paths):
        told = os.lstat(root / path)
        if not stat.S_ISDIR(told.st_mode):
            found.update(f"\0{path}\0{told.st_size}\0{told.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _keep(root: Path, before: Collection[str], place: Path, tag: str) -> None:
    remove_tree(place / _FILES)
    (place / _FILES).mkdir()
    take_new(root, before, place / _FILES)
    put_back(place / _FILES, root)
    _write(place / _BUILT, tag, before)


def _write(path: Path, tag: str, sources: Collection[str]) -> None:
    path.write_text(json.dumps([tag, sorted(sources)]), encoding="utf-8")


def _read(path: Path) -> tuple[str, set[str]]:
    with suppress(FileNotFoundError, ValueError):  # half of one that a kill left tells nothing
        tag, sources = json.loads(path.read_text(encoding="utf-8"))
        return tag, set(sources)
    return "", set()
