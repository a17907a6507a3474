"""The one request to extend a contract: made where the story would fail without it, bounded, recorded."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.status import StoryStatus, TaskStatus
from tests.sprint.test_story import A, Stand, codes, good, provider, statuses
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


async def test_what_is_granted_is_recorded_and_the_last_delivery_judged_anew(tmp_path: Path) -> None:
    stand = prepared(tmp_path, MORE, grant(["money.py", "other.py"], {"rich": "13", "left-pad": "1"}))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, statuses(outcome)) == (StoryStatus.DONE, {f"T-{A}-01": TaskStatus.DONE})
    assert stand.asked == ["breakdown 1", "delivery 1", "delivery 2", "delivery 3", "amendment 1", "suite 1"]
    assert "money.py" in stand.workspace.result
    left_out = [f.message for f in outcome.findings if f.code == "contract.amendment"]
    assert len(left_out) == 2, left_out
    event = next(event for event in stand.sink.events if event.name == "contract_amended")
    contract = ArchitectureContract.model_validate(event.data["contract"])
    assert contract.hash == contract.digest()
    (amendment,) = contract.amendments
    assert (amendment.files, amendment.dependencies) == (("money.py",), ("rich",))
    assert (amendment.by, amendment.reason, amendment.task_id) == ("mike", "it is needed", f"T-{A}-01")
    prompt = stand.step.prompts[4]
    assert prompt.key.task is None
    assert all(text in prompt.text for text in ("- money.py", "- rich", "`money.py` is outside the contract"))


@pytest.mark.parametrize(
    "answer",
    [
        grant([], {}),
        grant(["money.py"], []),
        grant([], ["rich"]),
        grant(["../money.py"], {"rich": "1"}),
        "no JSON at all",
    ],
)
async def test_what_is_not_granted_fails_the_story_for_what_it_did(tmp_path: Path, answer: Any) -> None:
    stand = prepared(tmp_path, MORE, answer)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert codes(outcome) & {"contract.file", "contract.import"}
    assert await stand.workspace.files(A) == ("README.md",)


@pytest.mark.parametrize(
    "delivered",
    [
        {**good(), "tests/test_x.py": "def test_x():\n    assert 1\n"},
        {**good(), "readme.md": "x"},
        {**good(), "logo.png": "x"},
        {**good(), "README.md/x.py": "x = 1\n"},
        {**good(), **{f"more{number}.py": "x = 1\n" for number in range(4)}},
        {**good(), "money.py": "def f(:"},
    ],
    ids=lambda delivered: list(delivered)[-1],
)
async def test_what_no_amendment_could_allow_is_not_asked_for(tmp_path: Path, delivered: dict[str, str]) -> None:
    stand = prepared(tmp_path, delivered, grant(list(delivered), {}))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert not [asked for asked in stand.asked if asked.startswith("amendment")]


async def test_a_story_asks_once(tmp_path: Path) -> None:
    stand = prepared(tmp_path, MORE, grant(["money.py"], ["rich"]), tasks=2)
    for _ in range(3):
        stand.team.deliver(A, 2, {"us_1_.py": "X = 1\n", "second.py": "X = 1\n"})
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.FAILED
    assert stand.asked.count("amendment 1") == 1
    assert "amendment 2" not in stand.asked
    assert "contract.file" in codes(outcome)
