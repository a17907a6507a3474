"""Services of people that commands may reach: real servers on loopback, in every tier."""

import asyncio
import sys
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.services import Services
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import EnvironmentSettings
from tests.package_index import registry
from tests.sandboxes import PATH, TIERS, sandbox

ASKS = """import sys, urllib.request
for port in sys.argv[1:]:
    try:
        found = urllib.request.urlopen(f"http://127.0.0.1:{port}/x", timeout=5).read().decode()
        print(found[-3:], len(found))
    except OSError:
        print("closed")
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_only_what_is_named_can_be_reached(tier: Tier, tmp_path: Path) -> None:
    with (
        registry({"/x": b"one"}) as one,
        registry({"/x": b"two" * 500_000}) as two,
        registry({"/x": b"other"}) as other,
    ):
        services = Services((one.place, two.place))
        run = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier), services=services)
        ports = [server.place.rpartition(":")[2] for server in (one, two, two, other)]
        argv = [sys.executable, "-c", ASKS, *ports]
        first, second = await asyncio.gather(*(run.run(argv, cwd=tmp_path / name) for name in made(tmp_path)))
        two_twice = ["two", "1500000"] * 2
        last = ["her", "5"] if tier is Tier.PLAIN else ["closed"]
        assert first.output.split() == second.output.split() == ["one", "3", *two_twice, *last]
    assert asyncio.all_tasks() == {asyncio.current_task()}


def made(folder: Path) -> tuple[str, str]:
    for name in ("first", "second"):
        (folder / name).mkdir()
    return "first", "second"


async def test_one_that_does_not_answer_is_told(tmp_path: Path) -> None:
    with registry({"/x": b"one"}) as gone:
        pass
    services = Services((gone.place,))
    told = f"environment.services: `{gone.place}` does not answer: "
    [silent] = await services.unreachable()
    assert silent.startswith(told)
    run = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(Tier.NAMESPACES), services=services)
    code = f"import urllib.request; urllib.request.urlopen('http://{gone.place}/x')"
    failed = await run.run([sys.executable, "-c", code], cwd=tmp_path)
    assert failed.output.count(told) == 1
    assert failed.output.rstrip().endswith("]")


@pytest.mark.parametrize("wrong", [["localhost"], ["a:5432", "b:5432"], ["http://a:1"]])
def test_addresses_have_ports_of_their_own(wrong: list[str]) -> None:
    with pytest.raises(ValueError):
        EnvironmentSettings.model_validate({"services": wrong})
