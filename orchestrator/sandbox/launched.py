"""One run of the launcher: start it, read what its command prints, take its verdict, make sure that nothing is left."""

import asyncio
import contextlib
import io
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class CappedOutput:
    """Head and tail of what is fed, which may be far too long: at most `kept` bytes (plus one chunk); counts all."""

    def __init__(self, kept: int) -> None:
        self._head_room = kept // 2
        self._tail_room = kept - kept // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        self.total += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Returns what was kept, as UTF-8 with bad bytes replaced; a line in the middle says how much is missing."""
        tail = b"".join(self._tail)[-self._tail_room :] if self._tail else b""
        missing = self.total - len(self._head) - len(tail)
        if missing <= 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        gap = f"\n[... {missing} bytes left out ...]\n"
        # A cut inside a character would show as replacement marks that the command never printed.
        return bytes(self._head).decode("utf-8", "ignore") + gap + tail.decode("utf-8", "ignore")


_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from orchestrator.sandbox.launcher import main; sys.exit(main())"
_PLACE = Path(__file__).resolve().parent.parent.parent
MARK = "ORCHESTRATOR_COMMAND"
"""Variable with a value unique per command: finds its processes should the launcher be killed from inside."""
END_GRACE_S = 40.0
"""A launcher needs at most 30 s to end a tree that resists; then it is itself ended."""
DRAIN_S = 1.0  # for output behind the end of the command
SWEEP_S = 5.0  # for processes of a lost launcher
CHUNK = 65536


class Ended(NamedTuple):
    """Result of a launched command. `exit_code` and `signal` are None when a limit or we ended it."""

    exit_code: int | None
    signal: int | None
    limit: str | None
    output: str
    note: str
    """Note for people besides the output, or ""."""


class Launch(NamedTuple):
    """Everything one run needs."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    """Complete, of the program that `argv` begins with."""
    mark: str
    """Unique per command, also in the command's own environment as MARK."""
    policy: Mapping[str, Any]
    """The launcher's limits (timeout_s, memory_mb, processes, file_mb, open_files) and what the tier adds."""
    lock_fds: tuple[int, ...]
    """Held open by the launcher."""
    fds: tuple[int, ...]
    """Handed on to the program that `argv` begins with."""
    kept: int
    """Bytes of output kept."""
    killed: int
    """Bytes of output that end the command."""


async def run_launched(launch: Launch, stop: asyncio.Event) -> Ended:
    """Runs to the end, or until `stop` is set; when this returns or raises, no process of the command is left.

    Raises OSError or ValueError when the launcher itself cannot be started (bad folder, unusable argument).
    """
    with contextlib.ExitStack() as stack:
        output_fd, output_end = _pipe(stack)
        verdict_fd, verdict_end = _pipe(stack)
        process = await _spawn(launch, output_end.fileno(), verdict_end.fileno())
        output_end.close()
        verdict_end.close()
        reader = _Reader(output_fd, CappedOutput(launch.kept), launch.killed, stop)
        with reader.attached():
            try:
                on_time = await _wait(process, stop, launch.policy["timeout_s"] + END_GRACE_S)
            finally:
                await _end(process)
                verdict = _read_verdict(verdict_fd)
                if verdict is None:
                    await asyncio.to_thread(_sweep, launch.mark)
            with contextlib.suppress(TimeoutError):
                # Bounded: a descriptor of this pipe may have been handed to a process that is none of the command's.
                await asyncio.wait_for(reader.finished.wait(), DRAIN_S)
    return _conclude(verdict, reader, on_time)


def _pipe(stack: contextlib.ExitStack) -> tuple[int, io.FileIO]:
    """Non-blocking end to read, and the other end as an object, because closing that twice is harmless."""
    read_end, write_end = os.pipe()
    stack.callback(os.close, read_end)
    os.set_blocking(read_end, False)
    return read_end, stack.enter_context(io.FileIO(write_end, "w"))


async def _spawn(launch: Launch, output_end: int, verdict_end: int) -> asyncio.subprocess.Process:
    policy = {
        **launch.policy,
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "parent": os.getpid(),
        "verdict_fd": verdict_end,
        "private_fds": list(launch.lock_fds),
    }
    text = json.dumps(policy).encode()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _PROGRAM, str(_PLACE)),
        stdin=asyncio.subprocess.PIPE,
        stdout=output_end,
        stderr=output_end,
        pass_fds=(verdict_end, *launch.lock_fds, *launch.fds),
        env={"PATH": launch.env.get("PATH", ""), MARK: launch.mark},
        cwd=launch.cwd,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    return process


class _Reader:
    """Takes the output as it comes; too much of it sets `stop`."""

    def __init__(self, fd: int, output: CappedOutput, killed: int, stop: asyncio.Event) -> None:
        self.fd, self.output, self.killed, self.stop = fd, output, killed, stop
        self.finished = asyncio.Event()
        self.overflow = False

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(self.fd, self._take)
        try:
            yield
        finally:
            loop.remove_reader(self.fd)

    def _take(self) -> None:
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            asyncio.get_running_loop().remove_reader(self.fd)
            self.finished.set()
            return
        self.output.feed(chunk)
        if self.output.total > self.killed and not self.overflow:
            self.overflow = True
            self.stop.set()


async def _wait(process: asyncio.subprocess.Process, stop: asyncio.Event, seconds: float) -> bool:
    """Until the launcher ends, `stop` is set or the time is over (a launcher that was stopped keeps no time)."""
    waits = [asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return bool(done)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Asks the launcher to end its tree, insist when it does not; safe when it is gone."""
    for number, seconds in ((signal.SIGTERM, END_GRACE_S), (signal.SIGKILL, None)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            # Not by `send_signal`, which looks whether it has ended and so takes that from asyncio's own watcher.
            os.kill(process.pid, number)
            os.kill(process.pid, signal.SIGCONT)
        with contextlib.suppress(TimeoutError):  # it does not end by itself: killed below
            await asyncio.wait_for(process.wait(), seconds)


def _read_verdict(fd: int) -> dict[str, int | str | None] | None:
    try:
        text = os.read(fd, CHUNK)
        verdict = json.loads(text) if text else None
    except (BlockingIOError, ValueError):  # the launcher was killed before it wrote all
        return None
    return verdict if isinstance(verdict, dict) else None


def _sweep(mark: str) -> None:
    """Kills every process that still carries the mark of a command whose launcher was lost (needs /proc)."""
    needle = f"{MARK}={mark}".encode()
    until = time.monotonic() + SWEEP_S
    while (found := list(_marked(needle))) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _marked(needle: bytes) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # A process that has ended but was not collected has an empty environment.
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def _conclude(verdict: dict[str, int | str | None] | None, reader: _Reader, on_time: bool) -> Ended:
    output = reader.output.text()
    if verdict is None:
        ended_by = "output" if reader.overflow else None if on_time else "timeout"
        return Ended(None, None, ended_by, output, "the process that supervises the command was killed from inside it")
    exit_code, number, limit = verdict.get("exit_code"), verdict.get("signal"), verdict.get("limit")
    if reader.overflow and limit is None:
        return Ended(None, None, "output", output, f"ended after {reader.output.total // 1024} kB of output")
    note = f"{verdict['survivors']} processes could not be killed" if verdict.get("survivors") else ""
    if isinstance(number, int):
        note = f"ended by signal {number} ({_signal_name(number)})"
    return Ended(
        exit_code if isinstance(exit_code, int) else None,
        number if isinstance(number, int) else None,
        limit if isinstance(limit, str) else None,
        output,
        note,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
