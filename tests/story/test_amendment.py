"""The plan grows: the architect is asked about what it forgot the moment it is named, bounded, recorded."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.contract import ArchitectureContract, Installed, InstalledPackages
from orchestrator.core.sprint import StoryStatus, TaskStatus
from tests.story.test_story import A, Stand, codes, good, provider, report, statuses
from tests.support import suite_text

MORE = {**good(), "money.py": "import rich\n\nROUND = rich\n"}


def prepared(folder: Path, delivered: dict[str, str], answer: Any = None, *, tasks: int = 1) -> Stand:
    stand = Stand(folder, base={"README.md": "x\n"})
    stand.team.plan(A, *([f"us_1{'_' * number}.py"] for number in range(tasks)))
    for _ in range(3):
        stand.team.deliver(A, 1, delivered)
    if answer is not None:
        stand.team.say("mike", A, "amendment", answer)
    stand.team.suite(A, suite_text(A))
    return stand


def grant(files: list[str], packages: Any, reason: str = "it is needed") -> dict[str, Any]:
    return {"files": files, "dependencies": packages, "reason": reason}


async def test_what_is_granted_is_declared_and_the_same_delivery_judged_again(tmp_path: Path) -> None:
    stand = prepared(tmp_path, MORE, grant(["money.py", "other.py"], {"rich": "13", "left-pad": "1"}))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, statuses(outcome)) == (StoryStatus.DONE, {f"T-{A}-01": TaskStatus.DONE})
    assert stand.asked == ["breakdown 1", "delivery 1", "amendment 1", "suite 1"], "no other delivery is paid"
    assert stand.workspace.result["requirements.txt"] == "rich>=13\n"
    assert "money.py" in stand.workspace.result
    left_out = [f.message for f in outcome.findings if f.code == "contract.amendment"]
    assert len(left_out) == 2, left_out
    event = next(event for event in stand.sink.events if event.name == "contract_amended")
    contract = ArchitectureContract.model_validate(event.data["contract"])
    (amendment,) = contract.amendments
    assert (amendment.files, amendment.packages) == (("money.py", "requirements.txt"), {"rich": "13"})
    assert (amendment.by, amendment.reason, amendment.task_id) == ("mike", "it is needed", f"T-{A}-01")
    prompt = stand.step.prompts[2]
    assert prompt.key.task is None
    assert all(text in prompt.text for text in ("- money.py", "- rich", "`money.py` is outside the plan"))


@pytest.mark.parametrize(
    "answer",
    [grant([], {}), grant(["money.py"], []), grant([], ["rich"]), grant(["../money.py"], {"rich": "1"}), "no JSON"],
)
async def test_what_is_not_granted_is_told_with_its_reason_and_not_asked_again(tmp_path: Path, answer: Any) -> None:
    stand = prepared(tmp_path, MORE, answer)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert codes(outcome) & {"contract.file", "contract.import"}
    assert await stand.workspace.files(A) == ("README.md",)
    assert stand.asked == ["breakdown 1", "delivery 1", "amendment 1", "delivery 2", "delivery 3"]
    assert "not granted" in stand.step.prompts[3].text


async def test_a_developer_that_heard_no_does_without(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base={"README.md": "x\n"})
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, {"us_1.py": "import rich\n\n\ndef value():\n    return rich and 1\n"})
    stand.team.say("mike", A, "amendment", grant([], {}, "print is enough"))
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE
    assert "it is not granted: print is enough" in stand.step.prompts[3].text


async def test_a_new_test_beside_the_tasks_files_is_left_out_and_asks_nobody(tmp_path: Path) -> None:
    delivered = {**good(), "tests/test_x.py": "from us_1 import value\n\n\ndef test_x():\n    assert value()\n"}
    stand = prepared(tmp_path, delivered, grant(list(delivered), {}))
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE
    assert "delivery.left_out" in {finding.code for finding in outcome.findings}
    assert not [asked for asked in stand.asked if asked.startswith("amendment")]


@pytest.mark.parametrize(
    "delivered",
    [
        {**good(), "conftest.py": "X = 1\n"},
        {**good(), "readme.md": "x"},
        {**good(), "logo.png": "x"},
        {**good(), "README.md/x.py": "x = 1\n"},
        {**good(), **{f"more{number}.py": "x = 1\n" for number in range(41)}},
    ],
    ids=lambda delivered: list(delivered)[-1],
)
async def test_what_no_amendment_could_allow_is_not_asked_for(tmp_path: Path, delivered: dict[str, str]) -> None:
    stand = prepared(tmp_path, delivered, grant(list(delivered), {}))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert not [asked for asked in stand.asked if asked.startswith("amendment")]


async def test_a_story_asks_as_often_as_the_setting_says(tmp_path: Path) -> None:
    stand = prepared(tmp_path, MORE, grant(["money.py"], ["rich"]), tasks=2)
    for _ in range(3):
        stand.team.deliver(A, 2, {"us_1_.py": "X = 1\n", "second.py": "X = 1\n"})
    outcome = await stand.run(await provider(stand.team, tmp_path), amendment={"max_per_story": 1})
    assert outcome.status is StoryStatus.FAILED
    assert stand.asked.count("amendment 1") == 1
    assert "amendment 2" not in stand.asked
    assert "contract.file" in codes(outcome)


async def test_a_web_story_that_forgot_three_packages_ends_as_done(tmp_path: Path) -> None:
    """FastAPI brings pydantic; httpx is asked for by name, python-multipart where the tests fail for it."""
    app = "import httpx\nfrom fastapi import FastAPI\nfrom pydantic import BaseModel\n\n\ndef value():\n    return 1\n"
    installed = InstalledPackages(
        python={
            "fastapi": Installed(modules=("fastapi",), requires=("pydantic",)),
            "pydantic": Installed(modules=("pydantic",)),
        }
    )
    need = 'RuntimeError: Form data requires "python-multipart" to be installed.\npip install python-multipart\n'
    stand = Stand(
        tmp_path,
        base={"requirements.txt": "fastapi\n"},
        stories=[report(failed=["test_us_1"], message=need)],
        installed=installed,
    )
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, {"us_1.py": app})
    stand.team.say("mike", A, "amendment", grant([], {"httpx": ">=0.27"}))
    stand.team.say("mike", A, "amendment", grant([], {"python-multipart": "*"}))
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "amendment 1", "suite 1", "amendment 2"]
    assert stand.workspace.result["requirements.txt"] == "fastapi\nhttpx>=0.27\npython-multipart\n"
    assert "contract.transitive" in codes(outcome), "pydantic is fine, and better declared"


@pytest.mark.parametrize(("pushed", "status"), [(True, StoryStatus.NEEDS_ATTENTION), (False, StoryStatus.DONE)])
async def test_a_pipeline_is_a_persons_question_before_it_is_pushed(
    tmp_path: Path, pushed: bool, status: StoryStatus
) -> None:
    stand = Stand(tmp_path)
    workflow = ".github/workflows/test.yml"
    stand.team.plan(A, ["us_1.py", workflow])
    jobs = "jobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n"
    stand.team.deliver(A, 1, {**good(), workflow: f"on: [push]\n{jobs}"})
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path), pushed=pushed)
    assert (outcome.status, statuses(outcome)) == (status, {f"T-{A}-01": TaskStatus.DONE})
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]
    assert ("contract.ci" in {f.code for f in outcome.findings if f.severity.blocks}) == (
        status is not StoryStatus.DONE
    )
