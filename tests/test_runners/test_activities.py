"""What is told while it lasts: installs, tests, commands, and what a merge or an install waits for."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.core.event import listening
from orchestrator.environments.kept import KeptFolders
from tests.test_runners.test_custom_runner import BAD, GOOD, runner_in, tree


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What goes on, in the order in which it begins."""
    seen: list[str] = []

    @asynccontextmanager
    async def listener(what: str) -> AsyncIterator[None]:
        seen.append(what)
        yield

    with listening(listener):
        yield seen


async def test_runs_of_tests_and_commands_are_told_as_what_they_are(tmp_path: Path, told: list[str]) -> None:
    root = tree(tmp_path, {"t/good.sh": GOOD, "t/bad.sh": BAD})
    runner = runner_in(tmp_path, "sh run", "out/*.xml")
    await runner.run(root, files=["t/good.sh"], key="k")
    await runner.run(root, key="k")
    await runner.command(root, "true  # a command\nof two lines", key="k")
    assert told == [
        "running the tests of t/good.sh",
        "running the whole suite",
        "running true # a command of two lines",
    ]


async def test_an_install_is_told_once_and_who_needs_the_same_waits_for_it(tmp_path: Path, told: list[str]) -> None:
    kept, waits = KeptFolders(tmp_path), asyncio.Event()
    waiting = "waiting for another one that is installing flask"

    async def build(_scratch: Path, _place: Path) -> None:
        await waits.wait()

    async def ensure() -> None:
        await kept.ensure("digest", build, lambda _: False, what="installing flask")

    both = asyncio.gather(ensure(), ensure())
    while told.count(waiting) < 2:
        await asyncio.sleep(0)
    waits.set()
    await both
    await ensure()
    assert [what for what in told if what != waiting] == ["installing flask"]
