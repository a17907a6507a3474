"""What each tier adds to a command: the time from asking for `true` to its result."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Figure, Result
from orchestrator.core.suite import Tier
from orchestrator.sandbox.choose import try_tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.plain import PlainSandbox
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings

ROUNDS = 30
FILES = 5000
"""Of the larger tree: a user of its own is lent every file, and gives it back."""


async def _median_ms(box: Sandbox, path: str, tree: Path, argv: list[str]) -> float:
    runner = LimitedCommandRunner(CommandSettings(), path, sandbox=box)
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        result = await runner.run(argv, cwd=tree)
        taken.append((time.perf_counter() - started) * 1000)
        if not result.ok:
            raise RuntimeError(f"{argv[0]} ended with {result.exit_code}: {result.output}")
    return statistics.median(taken)


async def _measured(folder: Path) -> list[Figure]:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    small, large = folder / "small", folder / "large"
    small.mkdir()
    for number in range(FILES):
        file = large / f"{number // 100}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    started = time.perf_counter()
    tried = [await try_tier(tier, SandboxSettings(), path) for tier in (Tier.NAMESPACES, Tier.LANDLOCK)]
    boxes = [*(box for box in tried if not isinstance(box, str)), PlainSandbox()]
    figures = [Figure(name="self-tests of all tiers", value=(time.perf_counter() - started) * 1000, unit="ms")]
    for box in boxes:
        tier = box.facts.tier
        for name, tree in (("`true`", small), (f"`true` among {FILES} files", large)):
            value = await _median_ms(box, path, tree, ["true"])
            figures.append(Figure(name=f"{tier}: {name}", value=value, unit="ms"))
    return figures


def run() -> Result:
    """Measure every tier of this machine."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        figures = asyncio.run(_measured(Path(name).resolve()))
    return Result(name="sandbox", about=f"start-up per command by tier, median of {ROUNDS}", figures=tuple(figures))
