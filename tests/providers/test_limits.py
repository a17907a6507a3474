"""Limits of services, known ahead: 50 callers and a service that enforces its limits, in simulated time."""

import asyncio
import itertools
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.core.errors import ServiceAway, TransientProviderError
from orchestrator.providers.limits import Limiter, seconds_until

CALLERS, LATENCY_S = 50, 2.0


class SimulatedTime(asyncio.SelectorEventLoop):
    """An event loop whose waits take no time."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self._now = 0.0
        select = self._selector.select

        def at_once(timeout: float | None = None) -> Any:
            self._now += timeout or 0.0
            return select(0)

        self._selector.select = at_once  # type: ignore[method-assign]

    def time(self) -> float:
        return self._now


def simulated(work: Callable[[SimulatedTime], Coroutine[Any, Any, None]]) -> float:
    loop = SimulatedTime()
    try:
        loop.run_until_complete(work(loop))
        return loop.time()
    finally:
        loop.close()


@dataclass
class Counted:
    refused: int = 0
    done: int = 0


async def drive(
    loop: SimulatedTime, calls: int, counted: Counted, take: Callable[[], float], headers: Callable[[], dict[str, str]],
    *, end: Callable[[], None] = lambda: None, tokens: int = 4000,
) -> None:  # fmt: skip
    """`calls` calls by 50 callers, each of which asks again after the time that a refusal names."""
    limiter, left = Limiter(loop.time), list(range(calls))

    async def caller() -> None:
        while left:
            left.pop()
            done = False
            while not done:
                try:
                    async with limiter.admitted(tokens) as call:
                        if wait := take():
                            counted.refused += 1
                            limiter.refused(call, headers(), wait)
                            raise TransientProviderError("slow", kind="rate_limit", retry_after_s=wait)
                        limiter.answered(call, headers())
                        await asyncio.sleep(LATENCY_S)
                        limiter.finished(500)
                        end()
                        counted.done += 1
                        done = True
                except ServiceAway as error:
                    await error.until()
                except TransientProviderError as error:
                    await asyncio.sleep(error.retry_after_s or 0)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


def test_a_service_that_tells_nothing_is_asked_as_much_as_it_takes() -> None:
    counted, calls, most, busy = Counted(), 2000, 12, [0]

    async def work(loop: SimulatedTime) -> None:
        def take() -> float:
            if busy[0] >= most:
                return 1.0
            busy[0] += 1
            return 0.0

        def end() -> None:
            busy[0] -= 1

        await drive(loop, calls, counted, take, dict, end=end)

    took = simulated(work)
    assert counted.done == calls
    assert counted.refused < calls * 0.15
    assert took < calls / most * LATENCY_S / 0.7


def test_one_refusal_closes_the_door_for_all_for_the_time_that_was_asked_for() -> None:
    begun: list[float] = []

    async def work(loop: SimulatedTime) -> None:
        limiter = Limiter(loop.time)

        async def call() -> None:
            async with limiter.admitted(10):
                begun.append(loop.time())

        async with limiter.admitted(10) as first:
            limiter.refused(first, {}, 20.0)
        await asyncio.gather(*(call() for _ in range(5)))

    simulated(work)
    assert begun == [pytest.approx(20.0)] * 5


def test_while_nobody_is_answered_one_call_at_a_time_tries_and_no_other_begins() -> None:
    begun: list[float] = []
    done: list[float] = []
    gone_s, back_s, at_once = 10.0, 250.0, 8

    async def work(loop: SimulatedTime) -> None:
        limiter, left, lanes = Limiter(loop.time), list(range(400)), asyncio.Semaphore(at_once)

        async def caller() -> None:
            failed = 0
            while left:
                left.pop()
                try:
                    async with lanes, limiter.admitted(100):
                        begun.append(loop.time())
                        away = gone_s <= loop.time() < back_s
                        await asyncio.sleep(15.0 if away else LATENCY_S)
                        if away:
                            raise TransientProviderError("gone", kind="connection")
                    done.append(loop.time())
                except ServiceAway as error:
                    left.append(1)
                    await error.until()
                except TransientProviderError:
                    left.append(1)
                    failed += 1
                    await asyncio.sleep(1)
            assert failed <= 2, "no caller uses up its attempts"

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    took = simulated(work)
    tries = [at for at in begun if gone_s + 20 < at < back_s]
    assert len([at for at in begun if gone_s <= at <= gone_s + 20]) <= 2 * at_once
    assert all(later - at >= 15 for at, later in itertools.pairwise(tries))
    assert 4 <= len(tries) <= 9, "pauses grow to a minute"
    assert min(at for at in done if at > back_s) <= back_s + 60 + 15 + LATENCY_S
    assert took <= max(tries) + 60 + 15 + 400 / at_once * LATENCY_S


def test_a_service_that_is_away_is_not_tried_without_a_pause_whatever_the_settings_say() -> None:
    async def work(loop: SimulatedTime) -> None:
        limiter = Limiter(loop.time, pause_s=0, longest_s=0)
        for _ in range(3):
            with pytest.raises(TransientProviderError) as caught:
                async with limiter.admitted(10):
                    raise TransientProviderError("gone", kind="connection")
        assert isinstance(caught.value, ServiceAway)
        await caught.value.until()
        async with limiter.admitted(10):
            pass
        assert not limiter.circuit.is_open

    assert simulated(work) > 0


@pytest.mark.parametrize(("text", "seconds"), [
    ("1s", 1), ("6m0s", 360), ("1h2m3.5s", 3723.5), ("20ms", 0.02), ("2m59.56s", 179.56), ("2026-11-27T12:00:30Z", 30),
    ("2026-11-27T11:59:00+00:00", 0), ("2026-11-27T12:00:30", None), ("", None), ("soon", None), ("12", None),
])  # fmt: skip
def test_times_of_reset_are_read_as_both_vendors_write_them(text: str, seconds: float | None) -> None:
    assert seconds_until(text, datetime(2026, 11, 27, 12, tzinfo=UTC)) == (
        None if seconds is None else pytest.approx(seconds)
    )
