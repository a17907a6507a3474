"""How many are at it side by side while the number changes."""

import asyncio

from orchestrator.engine.dispatcher import Lanes


class Crowd:
    """People who enter and stay until they are told to go."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.inside: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._go: dict[str, asyncio.Event] = {}

    async def come(self, names: str) -> None:
        for name in names:
            self._go[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._be(name))
        await self.settle()

    async def _be(self, name: str) -> None:
        async with self.lanes:
            self.inside.append(name)
            try:
                await self._go[name].wait()
            finally:
                self.inside.remove(name)

    async def leave(self, names: str) -> str:
        for name in names:
            self._go[name].set()
        return await self.settle()

    async def settle(self) -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "".join(self.inside)


async def test_fewer_at_once_lets_those_inside_end_and_nobody_in_before_the_number_is_kept() -> None:
    crowd = Crowd(Lanes(5))
    await crowd.come("abcdefgh")
    assert await crowd.settle() == "abcde"
    crowd.lanes.resize(1)
    assert await crowd.leave("abcd") == "e"
    assert await crowd.leave("e") == "f"
    crowd.lanes.resize(3)
    assert await crowd.settle() == "fgh"
    assert await crowd.leave("fgh") == ""


async def test_whoever_goes_away_keeps_no_place() -> None:
    crowd = Crowd(Lanes(1))
    await crowd.come("abcd")
    crowd.tasks["b"].cancel()
    # c is let in, and goes away before it has noticed.
    crowd._go["a"].set()
    await asyncio.sleep(0)
    crowd.tasks["c"].cancel()
    assert await crowd.settle() == "d"
    assert await crowd.leave("d") == ""
    await crowd.come("e")
    assert await crowd.leave("") == "e"
    await crowd.leave("e")
