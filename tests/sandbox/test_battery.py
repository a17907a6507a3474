"""Hostile actions in every tier of this machine: what each must come to stands in one table."""

import asyncio
import sys

import pytest

from orchestrator.core.daemon import DoctorRow
from orchestrator.core.suite import Tier
from orchestrator.sandbox.battery import CASES, HEAVY, expected_of, run_battery
from orchestrator.sandbox.landlock import LandlockSandbox
from orchestrator.sandbox.namespaces import NamespaceSandbox, find_bwrap, forms
from orchestrator.sandbox.tier import Sandbox
from tests.sandboxes import PATH, TIERS, sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no tier was tried elsewhere")


def wrong(rows: tuple[DoctorRow, ...]) -> list[str]:
    return [f"{row.group}: {row.name}: {row.happened}" for row in rows if not row.ok]


@pytest.mark.parametrize("tier", TIERS)
async def test_every_action_comes_to_what_the_table_says(tier: Tier) -> None:
    rows = await run_battery(sandbox(tier), PATH)
    assert wrong(rows) == []
    assert len(rows) >= (90 if tier is not Tier.PLAIN else 20)
    assert not any(row.todo for row in rows)


def weaker() -> dict[str, Sandbox]:
    """What the tiers come to on machines that offer less than this one."""
    bwrap = find_bwrap()
    if bwrap is None:
        return {}
    mapped = {f"mapped, /proc: {form.proc}": NamespaceSandbox(form, PATH) for form in forms(bwrap) if form.mapped}
    return {**mapped, "same user": LandlockSandbox(PATH, as_user=False)}


@pytest.mark.parametrize("name", ["mapped, /proc: True", "mapped, /proc: False", "same user"])
async def test_the_forms_of_weaker_machines_hold_what_they_say(name: str) -> None:
    sandbox(Tier.NAMESPACES), sandbox(Tier.LANDLOCK)  # skipped where they are not there
    box = (await asyncio.to_thread(weaker))[name]
    assert wrong(await run_battery(box, PATH)) == []
    assert box.facts.missing or box.facts.tier is Tier.NAMESPACES


def test_the_table_is_large_and_names_each_action_once() -> None:
    hostile = [case.name for case in CASES if not case.works] + [case.name for case in HEAVY]
    assert len(hostile) == len(set(hostile)) >= 60
    assert {case.group for case in CASES} == {"files", "git", "processes", "network", "secrets", "resources", "work"}


def test_a_tier_answers_for_what_it_does_not_say_it_lacks() -> None:
    full, same = sandbox(Tier.NAMESPACES).facts, LandlockSandbox(PATH, as_user=False).facts
    assert len(expected_of(full)) == len(CASES)
    assert {case.without for case in CASES} - {case.without for case in expected_of(same)} <= set(same.missing)
