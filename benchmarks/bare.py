"""The same calls as steps of the durable engine's library alone: what nobody who stands on it can go below."""

import asyncio
import tempfile
from pathlib import Path

from dbos import DBOS, DBOSConfig

from benchmarks import databases
from benchmarks.measure import Meter, metered


async def _drive(stories: int, calls: int, latency_ms: int, turns: int) -> Meter:
    lanes = asyncio.Semaphore(turns)

    async def call(number: int) -> int:
        async with lanes:
            await asyncio.sleep(latency_ms / 1000)
        return number

    async def story(_number: int) -> int:
        return sum([await DBOS.run_step_async(None, call, number) for number in range(calls)])

    workflow = DBOS.workflow(name="story")(story)
    DBOS.launch()
    with metered() as meter:
        handles = [await DBOS.start_workflow_async(workflow, number) for number in range(stories)]
        await asyncio.gather(*(handle.get_result() for handle in handles))
    return meter


def run(stories: int, calls: int, latency_ms: int, turns: int, server: str | None) -> Meter:
    """One workflow per story, one step per call, in this process, which must hold no other engine."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, databases.fresh(server) as database:
        url = database or f"sqlite:///{Path(folder) / 'bare.sqlite'}"
        config: DBOSConfig = {"name": "bare", "system_database_url": url, "log_level": "CRITICAL"}
        DBOS(config=config)
        try:
            return asyncio.run(_drive(stories, calls, latency_ms, turns))
        finally:
            DBOS.destroy()
