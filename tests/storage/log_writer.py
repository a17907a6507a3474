"""`python -m tests.storage.log_writer URL NAME ROUNDS`: writes into an event log, five events at once."""

import asyncio
import sys
from datetime import UTC, datetime

from orchestrator.core.event import Event
from orchestrator.storage.event_store import EventStore

AT_ONCE = 5


async def main(url: str, name: str, rounds: int) -> None:
    async with EventStore(url) as store:
        for number in range(rounds):
            await asyncio.gather(*(store.emit(_event(f"{name}{number}-{one}")) for one in range(AT_ONCE)))


def _event(name: str) -> Event:
    return Event(id=f"S/A:{name}", time=datetime.now(UTC), name="told", message=name, sprint="S", story="A")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
