"""Asks a reader in its own process, with a time limit per text; a reader that hangs or dies is started anew."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, ClassVar

from benchmarks.answers.install import ROOT, Bench
from benchmarks.answers.peers import OURS, Peer

START_S = 60.0


class Failure(StrEnum):
    """Why there is no reply."""

    SLOW = "time limit"
    DIED = "process died"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a reader said about one text."""

    value: Any = None
    cut: bool = False
    seconds: float = 0.0
    cpu: float = 0.0
    failure: Failure | None = None


class Missing(Exception):
    """This reader cannot be started; the message says why."""


class Reader:
    """A peer's process; use it in a `with` block."""

    _live: ClassVar[set[subprocess.Popen[bytes]]] = set()
    _stopped: ClassVar[bool] = False

    @classmethod
    def stop_all(cls) -> None:
        """End every reader, in whatever thread it is asked; none starts again."""
        cls._stopped = True
        for process in list(cls._live):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def __init__(self, peer: Peer, bench: Bench) -> None:
        self._peer = peer
        self._bench = bench
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> "Reader":
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _start(self) -> None:
        if Reader._stopped:
            raise Missing("stopped")
        if self._peer.package in self._bench.missing:
            raise Missing(self._bench.missing[self._peer.package])
        ours = self._peer.name == OURS.name
        self._rest = b""
        self._process = self._spawned(sys.executable if ours else str(self._bench.python))
        self._live.add(self._process)
        line = self._line(START_S)
        said = json.loads(line) if isinstance(line, bytes) else {"error": str(line)}
        if said["error"]:
            self._end()
            raise Missing(said["error"])

    def _spawned(self, python: str) -> subprocess.Popen[bytes]:
        """The system may be out of processes for a moment, when a reader with many threads has just been ended."""
        for wait_s in (0.5, 2.0, 5.0, None):
            try:
                return subprocess.Popen(
                    [python, "-m", "benchmarks.answers.worker", self._peer.name],
                    cwd=ROOT,
                    env=self._bench.environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            except BlockingIOError:
                if wait_s is None:
                    raise
                time.sleep(wait_s)
        raise AssertionError("the last round returns or raises")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):  # it died first
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self._live.discard(process)

    def ask(
        self, text: str, *, contract: str, items: str, limit_s: float, value: bool = True, repeat: int = 1
    ) -> Reply:
        """Read one text; a failure starts the process anew for the next one."""
        request = {"text": text, "contract": contract, "items": items, "value": value, "repeat": repeat}
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._line(limit_s)
        except BrokenPipeError:
            line = Failure.DIED
        if isinstance(line, Failure):
            self._end()
            return Reply(failure=line)
        return Reply(**json.loads(line))

    def _line(self, limit_s: float) -> bytes | Failure:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + limit_s
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return Failure.SLOW
            piece = os.read(pipe, 1 << 20)
            if not piece:
                return Failure.DIED
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line
