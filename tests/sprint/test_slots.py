"""Slots of a sprint: never more held than there are, whatever stories do and when they are cancelled."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.sprint.slots import Slots


@pytest.mark.parametrize("at_once", [1, 3])
@given(seed=st.integers(0, 10_000))
def test_never_more_are_held_than_there_are(at_once: int, seed: int) -> None:
    asyncio.run(_busy(at_once, random.Random(seed)))


async def _busy(at_once: int, chance: random.Random) -> None:
    slots, working, most = Slots(at_once), 0, 0

    async def story(name: str) -> None:
        nonlocal working, most
        for _ in range(chance.randint(0, 3)):
            working += 1
            most = max(most, working)
            for _ in range(chance.randint(0, 3)):
                await asyncio.sleep(0)
            working -= 1
            async with slots.given_back(name):
                for _ in range(chance.randint(0, 3)):
                    await asyncio.sleep(0)
        slots.release(name)

    waiting, running = [f"S{number}" for number in range(7)], set[asyncio.Task[None]]()
    while waiting or running:
        while waiting and slots.free:
            name = waiting.pop()
            slots.take(name)
            running.add(asyncio.create_task(story(name)))
        await asyncio.sleep(0)
        running = {task for task in running if not task.done()}
    assert most <= at_once
    assert slots.free
