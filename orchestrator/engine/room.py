"""A full disk is waited for: it ends no story, and costs nothing that was paid for."""

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import TypeVar

from orchestrator.errors import OrchestratorError

T = TypeVar("T")
Full = Callable[[str], Awaitable[None]]
"""Is told what could not be done."""
IsFull = Callable[[], Awaitable[bool]]
"""Whether there is no room now."""
PATIENCE_S = 3600.0
"""How long: somebody has to notice, and to make room."""
_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


async def nobody_told(_what: str) -> None:
    """For those whom nobody listens to."""


async def never() -> bool:
    """For what says by itself that there was no room."""
    return False


async def with_room(
    work: Callable[[], Awaitable[T]], full: Full, is_full: IsFull = never, patience_s: float = PATIENCE_S
) -> T:
    """What `work` returns; it is done again, as after a crash, once there is room on the disk.

    Where none is left, neither an error nor a result counts: programs that cannot write fail in ways of their own, and
    tests with them. `full` is awaited when that happens first. After the patience what came last counts.
    """
    until, told = time.monotonic() + patience_s, False
    while True:
        why = ""
        try:
            result = await work()
        except (OSError, OrchestratorError) as error:
            said_so = isinstance(error, OSError) and error.errno in _FULL
            if time.monotonic() >= until or not (said_so or await is_full()):
                raise
            why = str(error)
        else:
            if time.monotonic() >= until or not await is_full():
                return result
        if not told:
            await full(why or "nothing can be written")
            told = True
        await _room(is_full, until)


async def _room(is_full: IsFull, until: float) -> None:
    for pause in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
        await asyncio.sleep(pause)
        if time.monotonic() >= until or not await is_full():
            return
