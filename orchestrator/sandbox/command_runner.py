"""Runs commands in limits, with an environment built from nothing, and leaves no process behind.

What a command writes is watched: many files, none of them too large, fill a disk as well.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TypeVar

from orchestrator.core.errors import ConfigError
from orchestrator.core.event import acquired
from orchestrator.core.suite import Access, CommandResult
from orchestrator.files.atomic_file import leftovers, let_go, make_folder
from orchestrator.files.disk import disk_use
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.sandbox.launched import MARK, Ended, Launch, run_launched
from orchestrator.sandbox.services import Services
from orchestrator.sandbox.tier import Command, Confined, Sandbox
from orchestrator.settings.model import CommandSettings

_LOOK_EVERY_S = 0.25  # statvfs is cheap
_COUNT_EVERY = 20  # counting a tree is not


class DiskWatch:
    """Sets `stop` when the folders hold more than `most` bytes together, or too many files to count.

    It looks often at what is left of the disk, which is cheap, and counts when much of that went, else every few
    seconds; and when the block ends, for what was written since.
    """

    def __init__(self, folders: Sequence[Path], most: int, stop: asyncio.Event) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._most = most
        self._stop = stop
        self._left = 0
        """Bytes of the disk that were free when the folders were counted last."""
        self.told = ""
        """Why this watch ended the command; empty when it did not."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches while the block runs."""
        self._left = await asyncio.to_thread(_free, self._folders)
        task = asyncio.create_task(self._watch(), name="disk watch")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # our own cancellation
                await task
            if not self.told:
                await asyncio.to_thread(self._look, count=True)

    async def _watch(self) -> None:
        round_ = 0
        while not self.told:
            await asyncio.sleep(_LOOK_EVERY_S)
            round_ += 1
            await asyncio.to_thread(self._look, count=round_ % _COUNT_EVERY == 0)
        self._stop.set()

    def _look(self, *, count: bool) -> None:
        left = _free(self._folders)
        if not count and self._left - left < self._most // 8:
            return
        self._left = left
        held = disk_use(*self._folders, most=self._most)
        if held > self._most:
            self.told = f"ended with {held // 2**20} MB in its folders; commands.disk_mb is {self._most // 2**20}"


def _free(folders: Sequence[Path]) -> int:
    left = []
    for folder in folders:
        with contextlib.suppress(OSError):  # a folder may not exist
            found = os.statvfs(folder)
            left.append(found.f_bavail * found.f_frsize)
    return min(left, default=0)


T = TypeVar("T")
MB = 1024 * 1024

FILE_MB = 1024
"""Largest file a command may write."""
OUTPUT_KEPT = 256 * 1024
"""Bytes of what a command prints that are kept, its head and its tail."""
OPEN_FILES = 4096  # per process; build tools open many
NOT_STARTED = 127  # a shell's code for a missing program
_SCRATCH = "orchestrator-"


class LimitedCommandRunner:
    """CommandRunner: clean environment, limits, watchdog, the whole tree killed at the end, all within `sandbox`.

    `path` becomes PATH. `lock_fds` are descriptors of file locks that must stay held as long as a command may still
    run, even when this process dies. `slots` bounds how many run at once. `network` is the way of what fetches;
    everything else gets `variables` and `services`. Several may run at once; cancelling a run ends its whole tree
    before the cancellation goes on.
    """

    def __init__(
        self,
        settings: CommandSettings,
        path: str,
        lock_fds: tuple[int, ...] = (),
        slots: AbstractAsyncContextManager[object] | None = None,
        *,
        sandbox: Sandbox,
        network: FetchNetwork | None = None,
        services: Services | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._path = path
        self._lock_fds = lock_fds
        self._slots = slots
        self._sandbox = sandbox
        self._network, self._services = network or FetchNetwork({}), services or Services()
        self._variables = variables or {}

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        scratch: Path | None = None,
        access: Access | None = None,
    ) -> CommandResult:
        """See `ports.CommandRunner.run`. What cannot be started is exit code 127 with the reason as output."""
        if not argv:
            return CommandResult(argv=(), exit_code=NOT_STARTED, output="there is no command\n")
        async with contextlib.AsyncExitStack() as stack:
            if self._slots is not None:
                what = "waiting for one of the places that concurrency.commands allows"
                await stack.enter_async_context(acquired(self._slots, what))
            folder = await stack.enter_async_context(scratch_folder()) if scratch is None else scratch
            stop = asyncio.Event()
            command = self._command(tuple(argv), cwd, folder, env, access or Access())
            job = asyncio.ensure_future(self._run(command, timeout_s, stop))
            try:
                return await asyncio.shield(job)
            except asyncio.CancelledError:
                stop.set()
                await _settled(job)
                raise

    def _command(
        self, argv: tuple[str, ...], cwd: Path, scratch: Path, env: Mapping[str, str] | None, access: Access
    ) -> Command:
        more = {**({} if access.fetch else self._variables), **(env or {})}
        return Command(argv, cwd.absolute(), scratch, self._env(cwd, scratch, more), access)

    def _env(self, cwd: Path, scratch: Path, extra: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": self._path,
            "HOME": str(scratch),
            "TMPDIR": str(scratch),
            "USER": "command",
            "LOGNAME": "command",
            "LANG": "C.UTF-8",
            "CI": "1",
            "HUSKY": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            # Keeps git in the command from finding a repository that happens to lie around the tree.
            "GIT_CEILING_DIRECTORIES": str(cwd.absolute().parent),
            **extra,
            MARK: uuid.uuid4().hex,
        }

    async def _run(self, command: Command, timeout_s: float | None, stop: asyncio.Event) -> CommandResult:
        started = time.monotonic()
        seen_at: Path | None = None
        watch = DiskWatch((command.tree, command.scratch), self._settings.disk_mb * MB, stop)
        try:
            async with self._with_network(command) as (joined, told):
                async with in_threads(self._sandbox.confined(joined)) as confined, watch.running():
                    seen_at = confined.seen_at
                    ended = await run_launched(self._launch(joined, confined, timeout_s), stop)
                if ended.exit_code != 0 and told:
                    ended = ended._replace(note="\n".join(filter(None, (ended.note, *told))))
        except (OSError, ValueError, ConfigError) as error:
            reason = getattr(error, "strerror", None) or error
            ended = Ended(NOT_STARTED, None, None, "", f"{command.argv[0][:500]!r} could not be started: {reason}")
        if watch.told and ended.limit is None:
            ended = ended._replace(exit_code=None, signal=None, limit="disk", note=watch.told)
        return CommandResult(
            argv=command.argv,
            exit_code=ended.exit_code,
            output=_with_note(ended),
            limit=ended.limit,
            duration_s=round(time.monotonic() - started, 3),
            seen_at=seen_at,
        )

    def _with_network(self, command: Command) -> AbstractAsyncContextManager[tuple[Command, list[str]]]:
        """Returns the command, and a list that fills with what it could not reach."""
        network = self._network if command.access.fetch else self._services
        return network.joined(command, own_loopback=self._sandbox.own_loopback)

    def _launch(self, command: Command, confined: Confined, timeout_s: float | None) -> Launch:
        settings = self._settings
        return Launch(
            argv=confined.argv,
            cwd=command.cwd,
            env=confined.env,
            mark=command.env[MARK],
            policy={
                "timeout_s": timeout_s or settings.timeout_s,
                "memory_mb": settings.memory_mb,
                "processes": settings.processes,
                "file_mb": min(FILE_MB, settings.disk_mb + 1),  # more than that: it is the disk's limit that is named
                "open_files": OPEN_FILES,
                **confined.policy,
            },
            lock_fds=self._lock_fds,
            fds=confined.fds,
            kept=OUTPUT_KEPT,
            killed=settings.output_killed_kb * 1024,
        )


@contextlib.asynccontextmanager
async def in_threads(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enters and leaves the blocking context `manager` in threads."""
    value = await asyncio.to_thread(manager.__enter__)
    try:
        yield value
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def _with_note(ended: Ended) -> str:
    if not ended.note:
        return ended.output
    gap = "" if not ended.output or ended.output.endswith("\n") else "\n"
    return f"{ended.output}{gap}[{ended.note}]\n"


async def _settled(job: "asyncio.Future[CommandResult]") -> None:
    """Waits for `job`, however often the waiting itself is cancelled."""
    while not job.done():
        with contextlib.suppress(asyncio.CancelledError):  # the tree must end before a cancellation continues
            await asyncio.wait({job})
    if not job.cancelled():
        job.exception()  # retrieved, so that asyncio does not report the unused result


@contextlib.asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """Yields a fresh folder outside every tree, removed at the end whatever was done to its permissions."""
    folder = await asyncio.to_thread(make_folder, _SCRATCH)
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(remove_tree, folder))


def remove_old_scratch(parent: Path) -> None:
    """Removes the scratch folders of processes that were killed from the folder for temporary files. Blocks."""
    for folder in leftovers(parent, _SCRATCH):
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Removes a folder and all below it, following no link; what resists even as its owner is left behind."""
    let_go(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    for parent, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):  # the command may have deleted it
            os.chmod(parent, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
