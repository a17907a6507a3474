"""The tiers of this machine, for tests that run in each of them."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.sandbox.choose import available
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.sections import SandboxSettings

PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
TIERS = (Tier.NAMESPACES, Tier.LANDLOCK, Tier.PLAIN)
CONFINED = TIERS[:2]


def sandbox(tier: Tier, path: str = PATH) -> Sandbox:
    """The tier, or the test that asked for it is skipped with the reason why it is not there."""
    found, reasons = _available(path)
    box = next((one for one in found if one.facts.tier is tier), None)
    return box if box is not None else pytest.skip(f"{tier}: {reasons.get(tier)}")


def best(path: str = PATH) -> Sandbox:
    """The strongest tier that is there."""
    return _available(path)[0][0]


def plain() -> Sandbox:
    """The tier for tests of something else."""
    return sandbox(Tier.PLAIN)


@cache
def _available(path: str) -> tuple[tuple[Sandbox, ...], dict[Tier, str]]:
    with ThreadPoolExecutor(1) as pool:  # also from within a test that has a loop
        return pool.submit(lambda: asyncio.run(available(SandboxSettings(), path))).result()
