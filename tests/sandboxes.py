"""The tiers of this machine, for tests that run in each of them."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.sandbox.choose import try_tier
from orchestrator.sandbox.plain import PlainSandbox
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.sections import SandboxSettings

PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
TIERS = (Tier.NAMESPACES, Tier.LANDLOCK, Tier.PLAIN)
CONFINED = TIERS[:2]


def sandbox(tier: Tier, path: str = PATH) -> Sandbox:
    """The tier, or the test that asked for it is skipped with the reason why it is not there."""
    box = _tried(tier, path)
    return pytest.skip(f"{tier}: {box}") if isinstance(box, str) else box


def best(path: str = PATH) -> Sandbox:
    """The strongest tier that is there."""
    return next(box for box in (_tried(tier, path) for tier in TIERS) if not isinstance(box, str))


def plain() -> Sandbox:
    """The tier for tests of something else."""
    return sandbox(Tier.PLAIN)


@cache
def _tried(tier: Tier, path: str) -> Sandbox | str:
    if tier is Tier.PLAIN:
        return PlainSandbox()
    with ThreadPoolExecutor(1) as pool:  # also from within a test that has a loop
        return pool.submit(lambda: asyncio.run(try_tier(tier, SandboxSettings(), path))).result()
