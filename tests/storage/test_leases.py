"""Of two daemons with one executor id one works, wherever they are, and a dead one is replaced."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orchestrator.core.errors import EventLogAway, SprintLocked
from orchestrator.storage.event_table import connected
from orchestrator.storage.leases import Lease
from tests.postgres import IMMEDIATE, PostgresServer

# A server that ends between the connection and SQLAlchemy's first statement on it leaves it to the collector, which may
# come in a later test.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. .function BaseConnection.__del__")
ROOT = Path(__file__).resolve().parents[2]
HOLDS = """
import asyncio, sys
from orchestrator.storage.leases import Lease

async def main():
    async with Lease(sys.argv[1], "daemon", folder="there", lost=print, ttl_s=1):
        print("held", flush=True)
        await asyncio.sleep(100)

asyncio.run(main())
"""


class Daemon:
    """A lease of a short life, and what it says."""

    def __init__(
        self, url: str, name: str = "daemon", *, folder: Path = Path("here"), ttl_s: float = 1.0, wait_s: float = 0.0,
        patience_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.said: list[str] = []
        self.gone = threading.Event()
        self.lost: list[str] = []
        times = {"ttl_s": ttl_s, "wait_s": wait_s, "patience_s": patience_s}
        self.lease = Lease(url, name, folder=str(folder), lost=self._lose, tell=self.said.append, **times)

    def _lose(self, why: str) -> None:
        self.lost.append(why)
        self.gone.set()


async def test_a_second_one_is_refused_waits_or_has_another_name(postgres: str) -> None:
    first, refused, waits = Daemon(postgres), Daemon(postgres, ttl_s=60), Daemon(postgres, wait_s=60, ttl_s=60)
    async with first.lease:
        with pytest.raises(SprintLocked, match=r"works as daemon .*pid [0-9]+, state folder here"):
            await refused.lease.__aenter__()
        async with Daemon(postgres, "another").lease:
            pass
        waiting = asyncio.create_task(waits.lease.__aenter__())
        while not waits.said:
            await asyncio.sleep(0.01)
    lease = await waiting
    await lease.__aexit__(None, None, None)
    assert first.lost == waits.lost == []
    async with refused.lease:
        pass


async def test_a_killed_one_is_replaced_and_one_that_stood_still_learns_of_it(postgres: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDS, postgres], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == b"held\n"
    process.kill()
    process.communicate()
    heir = Daemon(postgres, wait_s=60, ttl_s=1)
    async with heir.lease:
        thief = Daemon(postgres, wait_s=60, ttl_s=0.0)
        async with thief.lease:
            assert await asyncio.to_thread(heir.gone.wait, 60)
    assert heir.lost == ["another daemon has taken over as daemon"]
    assert thief.lost == []


async def test_a_database_that_is_away_costs_nobody_the_lease(postgres_server: PostgresServer) -> None:
    url = postgres_server.fresh()
    holder = Daemon(url, ttl_s=0.2)
    async with holder.lease:
        postgres_server.stop(IMMEDIATE)
        with pytest.raises(EventLogAway):
            await Daemon(url).lease.__aenter__()
        early = Daemon(url, "early", patience_s=60)
        entering = asyncio.create_task(early.lease.__aenter__())
        while not early.said:
            await asyncio.sleep(0.01)
        postgres_server.start()
        await (await entering).__aexit__(None, None, None)
        with pytest.raises(SprintLocked):
            await Daemon(url, ttl_s=30).lease.__aenter__()
        assert not holder.lost
    async with Daemon(url).lease:
        pass


async def test_of_two_daemons_one_works_on_a_sprint_and_a_stale_one_is_fenced(postgres: str) -> None:
    first, second = Daemon(postgres, "first", ttl_s=60), Daemon(postgres, "second", ttl_s=60)
    thief = Daemon(postgres, "thief", ttl_s=0.0)  # to it everybody is stale
    async with first.lease, second.lease, thief.lease:
        async with first.lease.holding("S1"):
            with pytest.raises(SprintLocked, match=r"first \(host .*pid [0-9]+\) works on S1"):
                async with second.lease.holding("S1"):
                    pass
            assert [one.lease.others() for one in (second, first)] == [{"S1"}, frozenset()]
            first.lease.expect_held("S1")
            async with second.lease.holding("S2"), thief.lease.holding("S1"):
                for what in (first.lease.expect_held, first.lease.expect_held):
                    with pytest.raises(SprintLocked, match="another daemon has taken over what first worked on"):
                        await asyncio.to_thread(what, "S1")
                second.lease.expect_held("S2")
        async with second.lease.holding("S1"):
            second.lease.expect_held("S1")
    assert (first.lost, second.lost) == (["another daemon has taken over what first worked on"], [])


async def test_until_a_write_has_ended_nobody_takes_its_sprint(postgres: str) -> None:
    first, thief = Daemon(postgres, "first", ttl_s=60), Daemon(postgres, "thief", ttl_s=0.0)
    order: list[str] = []

    async def take() -> None:
        async with thief.lease.holding("S1"):
            order.append("taken")

    async with first.lease, thief.lease, first.lease.holding("S1"):
        engine = await asyncio.to_thread(connected, postgres, writes=True)
        with engine.begin() as connection:
            first.lease.guard(connection, "S1")
            taking = asyncio.create_task(take())
            await asyncio.sleep(0.3)
            order.append("written")
        await taking
        engine.dispose()
    assert order == ["written", "taken"]
