"""Hostile actions in every tier of this machine: what each must come to stands in one table."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from textwrap import dedent

import psutil
import pytest

from orchestrator.core.suite import Tier
from orchestrator.sandbox.namespaces import NamespaceSandbox, find_bwrap, forms
from orchestrator.sandbox.tier import Sandbox
from tests.sandbox.battery import CASES, HEAVY, expected_of, run_battery
from tests.sandboxes import PATH, TIERS, sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no tier was tried elsewhere")


@pytest.mark.parametrize("tier", TIERS)
async def test_every_action_comes_to_what_the_table_says(tier: Tier) -> None:
    count, wrong = await run_battery(sandbox(tier), PATH)
    assert wrong == []
    assert count >= (89 if tier is not Tier.PLAIN else 15)


def weaker() -> dict[str, Sandbox]:
    """What the tiers come to on machines that offer less than this one."""
    bwrap = find_bwrap()
    if bwrap is None:
        return {}
    return {f"/proc: {form.proc}": NamespaceSandbox(form, PATH) for form in forms(bwrap)}


@pytest.mark.parametrize("name", ["/proc: True", "/proc: False"])
async def test_the_forms_of_weaker_machines_hold_what_they_say(name: str) -> None:
    sandbox(Tier.NAMESPACES)  # skipped where it is not there
    box = (await asyncio.to_thread(weaker))[name]
    assert (await run_battery(box, PATH))[1] == []
    assert box.facts.missing or box.facts.tier is Tier.NAMESPACES


def test_the_table_is_large_and_a_tier_answers_for_what_it_does_not_say_it_lacks() -> None:
    hostile = [case.name for case in CASES if not case.works] + [case.name for case in HEAVY]
    assert len(hostile) == len(set(hostile)) >= 60
    full, same = sandbox(Tier.NAMESPACES).facts, sandbox(Tier.LANDLOCK).facts
    assert len(expected_of(full)) == len(CASES)
    assert {case.without for case in CASES} - {case.without for case in expected_of(same)} <= set(same.missing)


def test_what_is_laid_out_for_a_probe_does_not_outlive_us_when_we_are_killed() -> None:
    program = """
        import contextlib, os
        from tests.sandbox.battery import sleeping_process
        with contextlib.ExitStack() as stack:
            print(sleeping_process(stack).pid, flush=True)
            os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(done.stdout)).wait(timeout=30)
