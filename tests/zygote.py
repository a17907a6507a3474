"""Processes of the command line that begin where its modules are already imported.

A test that kills a run twenty times starts twenty interpreters, and each would spend a second on imports that never
differ. A zygote imports once, in a process of its own, and forks for each command: what runs is a process like any
other (own pid, session, folder, environment; signals reach it and nobody else), only its first second is missing.
Tests of the start itself (`python -m orchestrator`, the installed program) do without it.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    "orchestrator.cli.main", *(f"orchestrator.cli.{name}" for name in ("logs", "run", "serve", "show", "status")),
    "orchestrator.app.run", "orchestrator.engine.durable", "sqlalchemy.dialects.sqlite",
    "orchestrator.daemon.serve", "orchestrator.server.app", "orchestrator.server.listen",
)  # fmt: skip
"""Nothing of these does anything when it is imported (tests/test_imports.py)."""
REQUEST = 1 << 16
"""Bytes of the longest request."""


class Forked:
    """A command that was begun; the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, status: int, *written: IO[bytes]) -> None:
        """`written` are the files for stdout and stderr, unless these belong to whoever began it."""
        self.pid = pid
        self.returncode: int | None = None
        self._status, self._written = status, written
        self._texts: list[str] = []

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._wait(0.0)

    def send_signal(self, number: int) -> None:
        """Signal it, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; the exit code. Raises subprocess.TimeoutExpired."""
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("orchestrator", timeout or 0.0)
        return code

    def printed(self) -> str:
        """What it has written to stdout so far, the first page of it."""
        return os.pread(self._written[0].fileno(), 4096, 0).decode()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; what it has written to stdout and stderr. Raises subprocess.TimeoutExpired."""
        self.wait(timeout)
        for file in self._written[len(self._texts) :]:
            with file:
                file.seek(0)
                self._texts.append(file.read().decode(errors="replace"))
        return self._texts[0], self._texts[1]

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            told = os.read(self._status, 32)
            os.close(self._status)
            self.returncode = int(told) if told else -signal.SIGKILL
        return self.returncode


class Zygote:
    """The process that forks; one per process of the tests and source tree, which all that it forks ends with."""

    def __init__(self, source: Path, variables: Mapping[str, str]) -> None:
        """`source` holds the packages `orchestrator` and `tests` that its commands run; `variables` are of this process
        alone, for what the loader reads."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(source), "PYTHONWARNINGS": "default"}
        environment |= variables
        with theirs:
            command = [sys.executable, "-m", "tests.zygote"]
            self._process = subprocess.Popen(command, stdin=theirs, cwd=source, env=environment)

    def start(
        self, module: str, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: IO[bytes] | None = None
    ) -> Forked:
        """`python -m MODULE WORDS...` in its own session, with nothing to read on stdin; what it prints goes to `log`,
        else into files that are read at its end."""
        kept = [] if log else [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed when they were read
        out, err = (log, log) if log else kept
        status, told = os.pipe()
        request = json.dumps({"module": module, "words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
        assert len(request) < REQUEST
        socket.send_fds(self._ours, [request], [out.fileno(), err.fileno(), told])
        os.close(told)
        return Forked(int(self._ours.recv(32)), status, *kept)

    def close(self) -> None:
        """End the process, and what it forked."""
        self._ours.close()
        self._process.wait()


_ZYGOTES: dict[tuple[Path, frozenset[tuple[str, str]]], Zygote] = {}


def zygote(source: Path = ROOT, variables: Mapping[str, str] = MappingProxyType({})) -> Zygote:
    """Returns the one of this process for the sources in a folder."""
    key = source, frozenset(variables.items())
    if key not in _ZYGOTES:
        _ZYGOTES[key] = Zygote(source, variables)
    return _ZYGOTES[key]


def close_zygotes() -> None:
    """Ends all of this process."""
    while _ZYGOTES:
        _ZYGOTES.popitem()[1].close()


def main() -> None:
    """Serve requests on stdin until it is closed; returns in each forked child to run what was asked for."""
    for name in IMPORTED:
        importlib.import_module(name)
    for model in _models(BaseModel):
        model.model_rebuild()
    gc.freeze()
    asked = socket.socket(fileno=0)
    wake, woken = os.pipe()
    for fd in (wake, woken):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asked, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        _tell_of_the_dead(children)
        if asked not in ready:
            continue
        request, fds = b"", list[int]()
        with contextlib.suppress(ConnectionResetError):  # the tests were killed before they read the last pid
            request, fds, _, _ = socket.recv_fds(asked, REQUEST, 3)
        if not request:
            _end(children)
            asked.close()
            return  # as any program ends: a preloaded library may have something to put away
        out, err, told = fds
        if (pid := os.fork()) == 0:
            asked.detach()
            _become(json.loads(request), out, err)
        os.close(out)
        os.close(err)
        children[pid] = told
        with contextlib.suppress(BrokenPipeError):
            asked.send(str(pid).encode())


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("orchestrator."):
            yield model
        yield from _models(model)


def _end(children: Iterable[int]) -> None:
    """Nobody waits for them any more: a daemon would run on behind tests that were killed."""
    for pid in children:
        for kill in (os.killpg, os.kill):  # one that was forked just now leads no group yet
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)


def _tell_of_the_dead(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        told = children.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(told)


def _become(request: dict[str, object], out: int, err: int) -> None:
    """In the child: everything as in a fresh process, then the module; never returns."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd, wanted in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(fd, wanted)
    os.closerange(3, 1024)
    # The zygote's own were made for its files: what a pipe or a terminal cannot do they do not know.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open to the end, as all three
    sys.stdout = open(1, "w", 1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["env"])  # type: ignore[call-overload]
    sys.argv = [str(request["module"]), *request["words"]]  # type: ignore[misc]
    runpy.run_module(str(request["module"]), run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
