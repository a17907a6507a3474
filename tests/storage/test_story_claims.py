"""Stories that several daemons share, on a real Postgres: who may take one, and what counts over all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest
from anyio import CapacityLimiter

from orchestrator.app.runtime import SharedTurns
from orchestrator.core.errors import SprintLocked
from orchestrator.storage.leases import Lease
from orchestrator.storage.story_claims import StoryClaims, StoryRow
from tests.postgres import PostgresServer


@asynccontextmanager
async def daemon(url: str, name: str) -> AsyncIterator[StoryClaims]:
    async with Lease(url, f"serve-{name}", folder=name, lost=print) as lease:
        claims = StoryClaims(lease)
        await asyncio.to_thread(claims.prepare)
        yield claims


def forget(url: str, name: str) -> None:
    """Makes a daemon look as if it had not been seen for long."""
    with psycopg.connect(url) as server:
        gone = "UPDATE orchestrator_daemons SET seen = seen - interval '1 hour' WHERE executor_id = %s"
        server.execute(gone, (f"serve-{name}",))


def row(claims: StoryClaims, story: str = "S/1") -> StoryRow:
    return claims.look().stories[story]


async def test_a_story_is_run_by_the_one_that_took_it_until_that_gives_it_back_or_is_gone(postgres: str) -> None:
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(daemon(postgres, name)) for name in ("one", "two")]
        assert one.offer("S/1", "S", '{"story": 1}', 4)
        assert one.offer("S/1", "S", "again", 0), "one that is there needs no room"
        assert two.claim("S/1") == '{"story": 1}'
        assert one.claim("S/1") is None
        assert two.claim("S/1") == '{"story": 1}', "a repeated call after a lost answer"
        assert (row(one).is_held, row(one).is_mine, row(two).is_mine) == (True, False, True)
        one.give_back("S/1")  # not one's own
        assert row(one).is_held
        two.give_back("S/1")
        assert one.claim("S/1") is not None
        forget(postgres, "one")
        assert two.claim("S/1") is not None
        with pytest.raises(SprintLocked):
            one.wait("S/1")
        two.end("S/1")
        assert row(two).state == "ended"
        two.delete("S/1")
        assert two.look().stories == {}


async def test_one_that_is_to_be_interrupted_goes_to_the_holder_of_its_sprint_alone(postgres: str) -> None:
    async with AsyncExitStack() as stack:
        holder, worker, other = [
            await stack.enter_async_context(daemon(postgres, name)) for name in ("holder", "worker", "other")
        ]
        holder.offer("S/1", "S", "{}", 4)
        worker.claim("S/1")
        holder.cut("S/1")
        assert not holder.claim_cut("S/1"), "it still runs"
        assert row(worker).cut
        worker.give_back("S/1")
        assert other.claim("S/1") is None
        assert holder.claim_cut("S/1")
        assert row(holder).cut, "it is not run here either"
        holder.give_back("S/1", cut=False)
        assert other.claim("S/1") == "{}"
        # A holder that has just begun takes what nobody runs, also what another one had wanted interrupted.
        other.cut("S/1")
        forget(postgres, "other")
        holder.claim_sprint("S")
        assert (row(holder).is_mine, row(holder).cut) == (True, False)


async def test_stories_and_calls_are_counted_over_all_that_live(postgres: str) -> None:
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(daemon(postgres, name)) for name in ("one", "two")]
        assert [one.offer(f"S/{number}", "S", "{}", 2) for number in range(3)] == [True, True, False]
        assert one.claim("S/0")
        assert two.claim("S/1")
        assert (one.look().is_behind, one.look().others) == (True, (1,))
        two.wait("S/1")  # for a person: its place is free
        assert one.offer("S/2", "S", "{}", 2)
        assert not two.return_("S/1", 2)
        one.end("S/0")
        assert two.return_("S/1", 2)
        assert row(one, "S/1").state == "at work"

        assert [one.begin_call("a", 3), one.begin_call("b", 3), two.begin_call("c", 3)] == [True] * 3
        assert not two.begin_call("d", 3)
        assert one.begin_call("b", 3), "a repeated call after a lost answer"
        for _ in range(2):
            one.end_calls(["a"])
        assert two.begin_call("d", 3)
        forget(postgres, "two")  # its two calls count no more
        assert [one.begin_call("e", 2), one.begin_call("f", 2)] == [True, False]


async def enter(turns: SharedTurns) -> None:
    async with turns:
        pass


async def test_an_outage_at_the_end_of_a_call_takes_no_place_for_ever(postgres_server: PostgresServer) -> None:
    url = postgres_server.fresh()
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(daemon(url, name)) for name in ("one", "two")]
        first, second = (SharedTurns(CapacityLimiter(1), claims) for claims in (one, two))
        async with first:
            waits = asyncio.create_task(enter(second))  # it may come before `first` does again
            await asyncio.sleep(0.5)
            assert not waits.done()
            await asyncio.to_thread(postgres_server.stop)
        await asyncio.to_thread(postgres_server.start)
        async with asyncio.timeout(20):
            await enter(first)  # the one that ended is counted no more
            await waits
