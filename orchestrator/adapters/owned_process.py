"""A program of ours in a process of its own that lives no longer than this one: it ends when its stdin does."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from orchestrator.cli.main import main; main()"
_PLACE = Path(__file__).resolve().parent.parent.parent
_KEPT = 4000
"""Bytes of what it said last."""


class OwnedProcess:
    """`async with OwnedProcess(words, environment, patience_s) as process:` runs a command of this program.

    Left early, as when cancelled, it is told to end, and killed with all that it has started once `patience_s` are
    over. After a kill -9 of this process it finds its stdin at an end, which its command has to look for.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], patience_s: float) -> None:
        """`environment` is complete."""
        self._words, self._environment, self.patience_s = words, environment, patience_s
        self._said = b""
        self._begun: asyncio.subprocess.Process | None = None

    @property
    def _process(self) -> asyncio.subprocess.Process:
        assert self._begun is not None
        return self._begun

    async def __aenter__(self) -> "OwnedProcess":
        """Raises OSError, ValueError when it cannot be started."""
        self._begun = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _PROGRAM, str(_PLACE), *self._words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=dict(self._environment),
            start_new_session=True,  # what a terminal sends is for us
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process.returncode is None:
                self._send(signal.SIGTERM, alone=True)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.patience_s):
                        await self.ended()
        finally:
            if self._process.returncode is None:
                self.kill()
                await self._process.wait()

    async def ended(self) -> tuple[int, str]:
        """Its exit code (negative: the signal that ended it), and the last of what it said on stderr."""
        stream = self._process.stderr
        assert stream is not None
        while chunk := await stream.read(_KEPT):
            self._said = (self._said + chunk)[-_KEPT:]
        return await self._process.wait(), self._said.decode("utf-8", "replace")

    def kill(self) -> None:
        """At once, with all that it has started; one that has not begun yet is whoever's that begins it."""
        if self._begun is not None:
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals, *, alone: bool = False) -> None:
        with suppress(ProcessLookupError, PermissionError):
            # It leads its group, whose number is its own until it was collected.
            (os.kill if alone else os.killpg)(self._process.pid, number)
