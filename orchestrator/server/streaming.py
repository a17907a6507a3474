"""Telling one client for as long as it listens."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive


async def until_gone(telling: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Until all is told, or the client has left, which cuts it. Raises what `telling` raises."""
    tell, left = asyncio.create_task(telling), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({tell, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        tell.cancel()
        left.cancel()
        await asyncio.gather(tell, left, return_exceptions=True)
    if not tell.cancelled():
        tell.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
