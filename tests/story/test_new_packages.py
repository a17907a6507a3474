"""Packages that a plan brings are asked of their registry before code is paid for."""

from pathlib import Path

from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import NewPackages
from tests.simulated import SimulatedStep
from tests.story.test_story import A, Stand, codes, good, provider
from tests.support import suite_text

AWAY = "error: Failed to fetch: `http://127.0.0.1:9/simple/tiny/`\n  Caused by: tcp connect error: Connection refused"
GONE = NewPackages(refusal="Because tiny was not found in the package registry, your requirements are unsatisfiable.")
MANIFEST = {"requirements.txt": "attrs\n"}
BRINGS = {"dependencies": {"dependencies": {"tiny": "^1.0", "Attrs": "*"}, "devDependencies": {}}}


def planned(stand: Stand, *plans: bool) -> None:
    for brings in plans:
        stand.team.plan(A, ["us_1.py"], **(BRINGS if brings else {}))
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))


async def test_a_plan_that_insists_ends_the_story_before_code_is_paid_for(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=MANIFEST, packages=[GONE] * 9)
    planned(stand, *[True] * 4)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert "breakdown.unavailable_package" in codes(outcome)
    assert {asked.split()[0] for asked in stand.asked} == {"breakdown"}


async def test_a_script_that_nobody_allows_is_told_with_what_could_stand_in_its_place(tmp_path: Path) -> None:
    closed = NewPackages(closed=("tiny", "bcrypt"), listed=("auto",))
    stand = Stand(tmp_path, base=MANIFEST, packages=[closed] * 9)
    planned(stand, *[True] * 4)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    last = next(finding for finding in outcome.findings if finding.code == "environment.install_script")
    assert "`environment.install_scripts: [auto, tiny, bcrypt]`" in last.fix
    assert "Take a package that needs no install script" in _text(stand.step, "breakdown", 2)
    (tmp_path / "other").mkdir()
    wanted = "leads to the registries only; `github.com:443` is not among them: add it to environment.hosts"
    stand = Stand(
        tmp_path / "other", base=MANIFEST, packages=[NewPackages(failed=f"tiny: no compiler\n[{wanted}]")] * 9
    )
    planned(stand, *[True] * 4)
    outcome = await stand.run(await provider(stand.team, tmp_path / "other"))
    assert "environment.hosts" in codes(outcome)
    assert "`environment.hosts: [github.com]`" in _text(stand.step, "breakdown", 2)


async def test_a_registry_that_is_away_is_nobodys_fault_and_ends_it_at_once(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=MANIFEST, packages=[NewPackages(refusal=AWAY, base_too=True)])
    planned(stand, True)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, codes(outcome)) == (StoryStatus.NEEDS_ATTENTION, {"environment.registry"})
    assert stand.asked == ["breakdown 1"]


def _text(step: SimulatedStep, purpose: str, turn: int) -> str:
    return next(one.text for one in step.prompts if (one.key.purpose, one.turn) == (purpose, turn))
