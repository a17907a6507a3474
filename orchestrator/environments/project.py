"""What people's commands make in trees: `environment.setup` once per base, `environment.build` from a tree's own files.

Commands of `setup` run on a checkout of the base commit, so that no story changes what they do. Files that commands
make beside those of the repository are kept elsewhere, and put back.
"""

import asyncio
import errno
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

from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import CommandResult
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.environments.kept import KeptFolders
from orchestrator.environments.python_installer import installer_for
from orchestrator.files.safe_files import open_folder, open_root, walk_files
from orchestrator.git.checkout import commands_for
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.sandbox.fetch_sources import npm_variables
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings, SandboxSettings

_SKIPPED = ("node_modules", "__pycache__", "build", "dist", ".egg-info")
States = Mapping[str, tuple[int, ...]]
"""Of the files of a tree, each with what changes with its content."""


def _is_made(folder: str) -> bool:
    """Returns whether it is a hidden folder, or one of packages, caches and builds."""
    return folder.startswith(".") or folder.endswith(_SKIPPED)


def paths_in(root: Path) -> set[str]:
    """Returns all files, folders and links below `root`, without what is git's own."""
    found = set[str]()
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        inner[:] = [name for name in inner if place or name != ".git"]
        found.update(place + name for name in (*inner, *names) if place or name != ".git")
    return found


def take_new(root: Path, before: Collection[str], kept: Path) -> None:
    """Moves what is in `root` and was not `before` to its path below `kept`, on the same file system."""
    for folder, inner, names in os.walk(root):
        place = _prefix(folder, root)
        for name in (*inner, *names):
            if place + name not in before and (place or name != ".git"):
                (kept / place).mkdir(parents=True, exist_ok=True)
                _make_movable(root / place / name)
                os.rename(root / place / name, kept / place / name)
        inner[:] = [name for name in inner if place + name in before]


def _make_movable(path: Path) -> None:
    """Lets it be moved: a folder that its owner may not write, such as Go's of modules, cannot change its parent."""
    told = path.lstat()
    if stat.S_ISDIR(told.st_mode):
        path.chmod(stat.S_IMODE(told.st_mode) | stat.S_IRWXU)


def put_back(kept: Path, root: Path, *, folders: bool = True) -> None:
    """Copies what is kept into `root`, but for what is there already; nothing is written through a link of the tree.

    Without `folders`, none is made for it.
    """
    root_fd = open_root(root)
    try:
        for folder, inner, names in os.walk(kept):
            place = _prefix(folder, kept)
            links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
            try:
                fd = open_folder(root_fd, place.rstrip("/"), made=[] if folders else None)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise
                continue  # no folder stands there, or something else does
            try:
                for name in (*links, *names):
                    _copy(os.path.join(folder, name), name, fd)
            finally:
                os.close(fd)
    finally:
        os.close(root_fd)


def _copy(source: str, name: str, folder: int) -> None:
    """A file is renamed when it is whole: half of one that a kill left there would be taken for what is there."""
    told = os.lstat(source)
    if stat.S_ISLNK(told.st_mode):
        with suppress(FileExistsError):
            os.symlink(os.readlink(source), name, dir_fd=folder)
    elif stat.S_ISREG(told.st_mode) and not _is_there(name, folder):
        flags, half = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, f".{secrets.token_hex(6)}"
        fd = os.open(half, flags, told.st_mode & 0o777 | 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as target, open(source, "rb") as content:
            shutil.copyfileobj(content, target)
            target.flush()
            # Its own time: make must not take it to be newer than the source that a story has changed.
            os.utime(fd, ns=(told.st_atime_ns, told.st_mtime_ns))
        os.rename(half, name, src_dir_fd=folder, dst_dir_fd=folder)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def file_states(root: Path, skipped: Callable[[str], bool] = _is_made, *, hidden: bool = False) -> States:
    """Returns the paths of a project's files, without those in `skipped` folders and, unless asked for, `hidden` ones.

    As far as a bounded walk gets; no link is followed.
    """
    found: dict[str, tuple[int, ...]] = {}
    for place, names in walk_files(root, skipped):
        for name in names:
            with suppress(OSError):
                state = os.lstat(root / place / name)
                if hidden or not name.startswith("."):
                    found[place + name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def _prefix(folder: str, root: Path) -> str:
    """Of the paths in `folder`: "" for the root's own."""
    place = os.path.relpath(folder, root)
    return "" if place == "." else f"{place}/"


KEY = "environment.setup"
"""Of the environment that the commands have."""
_FILES = "files"
_NOT_FOUND = 127
"""A shell's exit code for a program that is not there."""
_NOT_THERE = re.compile(r"(?:^|: )([\w.+/-]+): (?:command )?not found", re.MULTILINE)


class Run(Protocol):
    """Runs a command in a tree with its environment; with `fetch`, variables, it reaches what installers reach."""

    async def __call__(
        self, root: Path, command: str, *, timeout_s: float | None = None, fetch: Mapping[str, str] | None = None
    ) -> CommandResult:
        """At most `timeout_s`, else as long as any command."""
        ...


class ProjectSetup:
    """Keeps what the commands made in `folder`/<digest>. Without a base, or on an empty one, nothing is to be done."""

    def __init__(
        self,
        folder: Path,
        base: BaseCommit | None,
        own: EnvironmentSettings,
        commands: CommandSettings,
        rules: SandboxSettings,
        variables: Mapping[str, str],
    ) -> None:
        """`variables` are the machine's, from which installers get their settings and nothing else is taken."""
        self._kept, self._base, self._own = KeptFolders(folder.absolute()), base, own
        self._variables, self._registry = variables, rules.registries.npm
        self._installer = installer_for(variables, commands, rules)
        self._timeout_s = commands.install_timeout_s

    async def ensure(self, root: Path, run: Run) -> str:
        """Has in `root` what the commands made; returns "", else the failed one's output and how it ended."""
        if not self._own.setup or self._base is None or not (tree := await self._base.tree_id()):
            return ""
        made = await self._kept.ensure(self._digest(tree), partial(self._make, self._base, run), lambda _: False)
        if isinstance(made, str):
            return made
        await asyncio.to_thread(put_back, made / _FILES, root)  # there is no folder where the commands made nothing
        return ""

    async def _make(self, base: BaseCommit, run: Run, begun: Path, _place: Path) -> str | None:
        """Returns how a command failed, if one did."""
        try:
            env = await asyncio.to_thread(self._environment)
        except ConfigError as error:
            return f"environment.setup: {error}"
        async with base.checkout(begun) as tree:
            begins = await run(tree, ":")
            if not begins.ok:
                return told_failure("setup", ":", begins)
            before = await asyncio.to_thread(paths_in, tree)  # with what the project's own build has made
            for command in self._own.setup:
                result = await run(tree, command, timeout_s=self._timeout_s, fetch=env)
                if not result.ok:
                    return told_failure("setup", command, result)
            await asyncio.to_thread(take_new, tree, before, begun / _FILES)
        return None

    def _environment(self) -> dict[str, str]:
        """Returns where uv, pip and npm fetch from, and what people set. Blocks; raises ConfigError."""
        npm = {} if self._registry is None else {"NPM_CONFIG_REGISTRY": self._registry}
        return {**npm_variables(self._variables), **self._installer.for_commands(), **npm, **self._own.env}

    def _digest(self, tree: str) -> str:
        own = self._own.model_dump(mode="json", exclude={"base", "base_timeout_s", "hosts"})
        content = json.dumps([tree, own, sys.version, platform.machine()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def told_failure(setting: str, command: str, result: CommandResult) -> str:
    """Returns what a command of the setting printed, then how it ended."""
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    lacking = _NOT_THERE.search(result.output) if result.exit_code == _NOT_FOUND else None
    more = f"; this machine has no `{lacking[1]}`: install it" if lacking else ""
    # Last, for only the end of what is printed is shown.
    return f"{result.output.rstrip()}\nenvironment.{setting}: `{command}` failed ({how}){more}".lstrip()


_BUILT = "built.json"
"""The tag and the paths of the sources, when the commands ran the last time."""


class ProjectBuild:
    """Runs the commands where files have changed since; what they made is kept in `folder`/<key> and put back."""

    def __init__(self, folder: Path, commands: Sequence[str], timeout_s: float) -> None:
        self._folder, self._commands, self._timeout_s = folder.absolute(), tuple(commands), timeout_s
        self._locks: dict[str, asyncio.Lock] = {}

    def has_work(self, root: Path) -> bool:
        """Returns whether there is any command for the tree. Blocks."""
        return bool(self._commands or commands_for(root))

    async def ensure(self, root: Path, key: str, run: Run) -> str:
        """Has in `root` what the commands make of it; returns "", else the failed one's output and end.

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
        """Returns the paths that are there without the commands, and what changes with the files at them."""
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
