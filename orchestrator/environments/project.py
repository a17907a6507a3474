"""What people's commands make in trees: `environment.setup` once per base, `environment.build` from a tree's own files.

Commands of `setup` run on a checkout of the base commit, so that no story changes what they do. Files that commands
make beside those of the repository are kept elsewhere, and put back.
"""

import asyncio
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from orchestrator.core.errors import ConfigError, says_full
from orchestrator.core.event import activity
from orchestrator.core.suite import CommandResult
from orchestrator.core.value import shortened
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.environments.kept import KeptFolders
from orchestrator.environments.python_installer import installer_for
from orchestrator.files.safe_files import open_folder, open_root, walk_files
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.sandbox.fetch_sources import npm_variables
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings, SandboxSettings

_SKIPPED = ("node_modules", "__pycache__", "build", "dist", ".egg-info")
States = Mapping[str, tuple[int, ...]]
"""Fingerprints of a tree's files, by path."""


def _is_made(folder: str) -> bool:
    """Returns whether it is a hidden folder, or one for packages, caches or builds."""
    return folder.startswith(".") or folder.endswith(_SKIPPED)


def paths_in(root: Path) -> set[str]:
    """Returns all files, folders and links below `root`, without `.git`."""
    found = set[str]()
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        inner[:] = [name for name in inner if place or name != ".git"]
        found.update(place + name for name in (*inner, *names) if place or name != ".git")
    return found


def take_new(root: Path, before: Collection[str], kept: Path) -> None:
    """Moves everything in `root` that is not in `before` to its path below `kept`, on the same file system."""
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        for name in (*inner, *names):
            if place + name not in before and (place or name != ".git"):
                (kept / place).mkdir(parents=True, exist_ok=True)
                _make_movable(root / place / name)
                os.rename(root / place / name, kept / place / name)
        inner[:] = [name for name in inner if place + name in before]


def _make_movable(path: Path) -> None:
    """Makes a folder writable so that it can be moved; Go's module folders, for example, are read-only."""
    told = path.lstat()
    if stat.S_ISDIR(told.st_mode):
        path.chmod(stat.S_IMODE(told.st_mode) | stat.S_IRWXU)


def put_back(kept: Path, root: Path, *, folders: bool = True) -> None:
    """Copies the kept files into `root` without overwriting; never writes through a link of the tree.

    Without `folders`, makes no folder for them.
    """
    root_fd = open_root(root)
    try:
        for folder, inner, names in os.walk(kept):
            place = _prefix(folder, kept)
            links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
            try:
                fd = open_folder(root_fd, place.rstrip("/"), made=[] if folders else None)
            except OSError as error:
                if says_full(error):
                    raise
                continue  # there is no such folder, or something else has its name
            try:
                for name in (*links, *names):
                    _copy(os.path.join(folder, name), name, fd)
            finally:
                os.close(fd)
    finally:
        os.close(root_fd)


def _copy(source: str, name: str, folder: int) -> None:
    """Copies a file under a temporary name and renames it: half a file left by a kill would never be completed."""
    told = os.lstat(source)
    if stat.S_ISLNK(told.st_mode):
        with suppress(FileExistsError):  # an existing file is never overwritten
            os.symlink(os.readlink(source), name, dir_fd=folder)
    elif stat.S_ISREG(told.st_mode) and not _is_there(name, folder):
        flags, half = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, f".{secrets.token_hex(6)}"
        fd = os.open(half, flags, told.st_mode & 0o777 | 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as target, open(source, "rb") as content:
            shutil.copyfileobj(content, target)
            target.flush()
            # Keeps the modification time: make must not take it for newer than a source that a story has changed.
            os.utime(fd, ns=(told.st_atime_ns, told.st_mtime_ns))
        os.rename(half, name, src_dir_fd=folder, dst_dir_fd=folder)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def file_states(root: Path, skipped: Callable[[str], bool] = _is_made, *, hidden: bool = False) -> States:
    """Returns a project's files with their fingerprints, without `skipped` folders and, by default, `hidden` ones.

    The walk is bounded and follows no link.
    """
    found: dict[str, tuple[int, ...]] = {}
    for place, names in walk_files(root, skipped):
        for name in names:
            with suppress(OSError):  # deleted during the walk
                state = os.lstat(root / place / name)
                if hidden or not name.startswith("."):
                    found[place + name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def _prefix(folder: str, root: Path) -> str:
    """Returns the prefix of the paths in `folder`: "" for the root."""
    place = os.path.relpath(folder, root)
    return "" if place == "." else f"{place}/"


KEY = "environment.setup"
"""Key of the environment in which the commands run."""
_FILES = "files"
_NOT_FOUND = 127
"""A shell's exit code for a missing program."""
_NOT_THERE = re.compile(r"(?:^|: )([\w.+/-]+): (?:command )?not found", re.MULTILINE)


class Run(Protocol):
    """Runs a command in a tree with its environment; with `fetch` (variables), it may reach registries."""

    async def __call__(
        self, root: Path, command: str, *, timeout_s: float | None = None, fetch: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Runs it for at most `timeout_s`; the default is every command's time limit."""
        ...


class ProjectSetup:
    """Keeps the files that the commands made in `folder`/<digest>. Does nothing without a base or on an empty one."""

    def __init__(
        self,
        folder: Path,
        base: BaseCommit | None,
        own: EnvironmentSettings,
        commands: CommandSettings,
        rules: SandboxSettings,
        variables: Mapping[str, str],
    ) -> None:
        """`variables` are the machine's; only the installers' settings are taken from them."""
        self._kept, self._base, self._own = KeptFolders(folder.absolute()), base, own
        self._variables, self._registry = variables, rules.registries.npm
        self._installer = installer_for(variables, commands, rules)
        self._timeout_s = commands.install_timeout_s

    async def ensure(self, root: Path, run: Run) -> str:
        """Puts the files that the commands made into `root`; returns "", or the failed command's output and end."""
        if not self._own.setup or self._base is None or not (tree := await self._base.tree_id()):
            return ""
        make, what = partial(self._make, self._base, run), "running the commands of environment.setup"
        made = await self._kept.ensure(self._digest(tree), make, lambda _: False, what=what)
        if isinstance(made, str):
            return made
        await asyncio.to_thread(put_back, made / _FILES, root)  # the folder is missing when the commands made nothing
        return ""

    async def _make(self, base: BaseCommit, run: Run, scratch: Path, _place: Path) -> str | None:
        """Returns how a command failed, or None."""
        try:
            env = await asyncio.to_thread(self._environment)
        except ConfigError as error:
            return f"environment.setup: {error}"
        async with base.checkout(scratch) as tree:
            begins = await run(tree, ":")
            if not begins.ok:
                return told_failure("setup", ":", begins)
            before = await asyncio.to_thread(paths_in, tree)  # includes what the project's own build has made
            for command in self._own.setup:
                result = await run(tree, command, timeout_s=self._timeout_s, fetch=env)
                if not result.ok:
                    return told_failure("setup", command, result)
            await asyncio.to_thread(take_new, tree, before, scratch / _FILES)
        return None

    def _environment(self) -> dict[str, str]:
        """Returns the variables for uv, pip and npm, and those of the settings. Blocks; raises ConfigError."""
        npm = {} if self._registry is None else {"NPM_CONFIG_REGISTRY": self._registry}
        return {**npm_variables(self._variables), **self._installer.for_commands(), **npm, **self._own.env}

    def _digest(self, tree: str) -> str:
        own = self._own.model_dump(mode="json", exclude={"base", "base_timeout_s", "hosts"})
        content = json.dumps([tree, own, sys.version, platform.machine()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def told_failure(setting: str, command: str, result: CommandResult) -> str:
    """Returns the output of a command of the setting, then how it ended."""
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    lacking = _NOT_THERE.search(result.output) if result.exit_code == _NOT_FOUND else None
    more = f"; this machine has no `{lacking[1]}`: install it" if lacking else ""
    # Comes last because only the end of the text is shown.
    return f"{result.output.rstrip()}\nenvironment.{setting}: `{command}` failed ({how}){more}".lstrip()


_BUILT = "built.json"
"""Records the tag and the paths of the sources of the last run of the commands."""


class ProjectBuild:
    """Runs the commands when files have changed; keeps what they made in `folder`/<key> and puts it back."""

    def __init__(self, folder: Path, commands: Sequence[str], timeout_s: float) -> None:
        self._folder, self._commands, self._timeout_s = folder.absolute(), tuple(commands), timeout_s
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def has_work(self) -> bool:
        """Whether there is any command."""
        return bool(self._commands)

    async def ensure(self, root: Path, key: str, run: Run) -> str:
        """Builds in `root`, or puts the kept files back; returns "", or the failed command's output and end.

        The commands find their earlier results, as in a developer's worktree.
        """
        place = self._folder / key
        async with self._locks.setdefault(key, asyncio.Lock()):
            before, tag = await asyncio.to_thread(self._look, root, place)
            built, sources = await asyncio.to_thread(_read, place / _BUILT)
            if not sources <= before:  # it is unknown which files came from a deleted source
                await asyncio.to_thread(remove_tree, place / _FILES)
            await asyncio.to_thread(put_back, place / _FILES, root)
            if built == tag:
                return ""
            await asyncio.to_thread(_write, place / _BUILT, "", before)
            for command in self._commands:
                async with activity(f"building: {shortened(command)}"):
                    result = await run(root, command, timeout_s=self._timeout_s)
                if not result.ok:
                    return told_failure("build", command, result)
            await asyncio.to_thread(_keep, root, before, place, tag)
        return ""

    def _look(self, root: Path, place: Path) -> tuple[set[str], str]:
        """Returns the paths that exist without the commands, and a digest of those files."""
        (place / _FILES).mkdir(parents=True, exist_ok=True)
        before = paths_in(root) - paths_in(place / _FILES)
        return before, _digest(root, before, self._commands)


def _digest(root: Path, paths: Collection[str], commands: Sequence[str]) -> str:
    """Returns a digest of sizes and modification times, by which make decides as well."""
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
    with suppress(FileNotFoundError, ValueError):  # a kill may leave half a file, which is ignored
        tag, sources = json.loads(path.read_text(encoding="utf-8"))
        return tag, set(sources)
    return "", set()
