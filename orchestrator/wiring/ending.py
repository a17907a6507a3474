"""What a daemon does that has been told to end: it is given up where a database that is away would hold it for ever."""

import asyncio
from collections.abc import Coroutine
from typing import Any

LAST_S = 2.0
"""Seconds that each last deed gets."""


async def within(work: Coroutine[Any, Any, object], since: asyncio.Event | None = None) -> None:
    """Do `work`, but give it up some seconds after `since` was set, or from now on. Raises what it raises."""
    task = asyncio.ensure_future(work)
    told = asyncio.ensure_future(since.wait() if since is not None else asyncio.sleep(0))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({task}, timeout=LAST_S)
    finally:
        for one in (told, task):
            one.cancel()
        await asyncio.gather(told, task, return_exceptions=True)
    if not task.cancelled():
        task.result()
