"""How the daemon's components are, looked at no more often than there is need."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from orchestrator.server.served import Served

ANSWER_S = 5.0
"""Seconds that the components get to say how they are."""
FRESH_S = 1.0
"""Anybody may ask: the components are looked at so often at most."""


class Readiness:
    """What the components said last; those who ask at once share one look."""

    def __init__(self, served: Served, *, fresh_s: float = FRESH_S) -> None:
        self._served, self._fresh_s = served, fresh_s
        self._look: asyncio.Task[Mapping[str, str]] | None = None
        self._until = 0.0

    async def components(self) -> Mapping[str, str]:
        """Component → "" while it is fine, else why it is not."""
        loop = asyncio.get_running_loop()
        if self._look is None or (self._look.done() and loop.time() >= self._until):
            self._look = loop.create_task(self._looked(), name="readiness")
            self._until = loop.time() + self._fresh_s
        return await asyncio.shield(self._look)

    async def _looked(self) -> Mapping[str, str]:
        try:
            found = dict(await asyncio.wait_for(self._served.readiness(), ANSWER_S))
        except TimeoutError:
            found = {"components": f"they did not answer within {ANSWER_S:g} s"}
        phase = self._served.state().phase
        return {"daemon": "" if phase == "ready" else f"it is {phase}", **found}

    async def close(self) -> None:
        """No look is under way any more."""
        if self._look is not None:
            self._look.cancel()
            with suppress(asyncio.CancelledError):
                await self._look
