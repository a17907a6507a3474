"""The loops that a story's policies bound: how often they go round, and that nothing in them waits."""

import asyncio
import time
from typing import Any

import pytest

from orchestrator.core.command import Loop
from orchestrator.settings import Policies

POLICIES = Policies.model_validate(
    {
        "answer": {"max_attempts": 1},
        "plan": {"max_iterations": 3},
        "build": {"max_attempts": 4},
        "review": {"max_iterations": 5},
        "test": {"max_attempts": 6},
    }
)


@pytest.mark.parametrize(
    ("name", "rounds"), [(Loop.ANSWER, 2), (Loop.PLAN, 3), (Loop.BUILD, 4), (Loop.REVIEW, 5), (Loop.TEST, 6)]
)
async def test_a_loop_ends_with_its_budget_and_its_last_result(name: Loop, rounds: int) -> None:
    asked: list[int] = []
    sent_back: list[int] = []

    async def once() -> int:
        asked.append(len(asked) + 1)
        return asked[-1]

    async def send_back(state: Any) -> None:
        sent_back.append(state.outcome.result())

    began = time.monotonic()
    assert await POLICIES.loop(name, lambda _: True, before_next=send_back)(once) == rounds
    assert asked == [*range(1, rounds + 1)]
    assert sent_back == asked[:-1]
    assert time.monotonic() - began < 1


async def test_a_good_result_an_error_and_a_cancellation_end_a_loop_at_once() -> None:
    async def good() -> str:
        return "good"

    async def bad() -> str:
        raise ValueError

    async def cut() -> str:
        raise asyncio.CancelledError

    assert await POLICIES.loop(Loop.TEST, lambda said: said != "good")(good) == "good"
    for body, error in ((bad, ValueError), (cut, asyncio.CancelledError)):
        with pytest.raises(error):
            await POLICIES.loop(Loop.TEST, lambda _: True)(body)


async def test_a_loop_may_count_what_is_left_itself() -> None:
    left = 3

    async def spend() -> int:
        nonlocal left
        left -= 2
        return left

    assert await POLICIES.loop(Loop.ANSWER, lambda _: True, left=lambda: left)(spend) == -1
