"""What people's commands of `environment.build` make in a tree: again whenever the tree's files have changed."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.generated_files import files_below, paths_in, put_back, take_new
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.testing import CommandResult

Run = Callable[[Path, str], Awaitable[CommandResult]]
"""Runs a command in a tree with its environment, without a network."""


class ProjectBuild:
    """Keeps what the commands made in each tree in `folder`, on the file system of the trees.

    Only new files count: what a command changes in the repository's own files goes with the tree's next reset.
    """

    def __init__(self, folder: Path, commands: Sequence[str]) -> None:
        self._folder, self._commands = folder.absolute(), commands
        self._built: dict[Path, str] = {}

    async def ensure(self, root: Path, run: Run) -> str:
        """Have in `root` what the commands make of it; "" when it is there, else the failed one's output and its end.

        Calls for one tree come one after the other.
        """
        if not self._commands:
            return ""
        kept = self._folder / hashlib.sha256(str(root).encode()).hexdigest()[:32]
        made = await asyncio.to_thread(paths_in, kept)
        digest = await asyncio.to_thread(_digest, root, made)
        if self._built.get(root) != digest:
            before = await asyncio.to_thread(_without, root, made)
            for command in self._commands:
                result = await run(root, command)
                if not result.ok:
                    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
                    return f"{result.output.rstrip()}\nenvironment.build: `{command}` failed ({how})".lstrip()
            await asyncio.to_thread(remove_tree, kept)
            await asyncio.to_thread(take_new, root, before, kept)
            self._built[root] = digest
        if await asyncio.to_thread(kept.is_dir):
            await asyncio.to_thread(put_back, kept, root)
        return ""


def _without(root: Path, made: set[str]) -> set[str]:
    """All paths, after what an earlier build made is taken away: what is out of date must not be taken for new."""
    for path in sorted(made, reverse=True):
        place = root / path
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    return paths_in(root)


def _digest(root: Path, made: set[str]) -> str:
    """Changes with the tree's files, but for tests and what a build made."""
    found = hashlib.sha256()
    for path in sorted(files_below(root) - made):
        if not is_test_file(path) and not (root / path).is_symlink():
            found.update(f"\0{path}\0".encode() + (root / path).read_bytes())
    return found.hexdigest()
