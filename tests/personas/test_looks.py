"""Every persona may ask to be shown files before it answers: that costs a call, and no attempt."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import AmendmentBrief, FailureBrief, MergeBrief, SuiteBrief, TaskBrief
from orchestrator.core.command import Verdict
from orchestrator.core.contract import ArchitectureContract, Surface
from orchestrator.core.delivery import ReviewBrief
from orchestrator.core.finding import Finding, minor
from orchestrator.core.suite import TestSuite
from orchestrator.personas.alex import Alex
from orchestrator.personas.jordan import Jordan
from orchestrator.personas.mike import Mike
from orchestrator.personas.reviewer import Reviewer
from orchestrator.personas.session import Desk
from orchestrator.personas.shown import Shown
from orchestrator.settings import Policies
from tests.answers.reviews import CLEAN
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.simulated import report
from tests.support import breakdown, delivery, suite

TREE = {"shop.py": "def shop() -> str:\n    return 'a shop'\n", "bank.py": "def bank() -> None: ...\n"}
PLAN = Breakdown.model_validate(breakdown(STORY, ["app.py"]))
TASK = PLAN.tasks[0]
CONTENT = "from app import A\n\n\ndef test_a():\n    assert A == 1\n"
SUITE = TestSuite(test_file="tests/test_us_1.py", test_content=CONTENT, expected_names=("test_a",))
CONTRACT = ArchitectureContract(
    story_id=STORY,
    base_commit="",
    baseline_files=(),
    declared_files=("app.py",),
    task_files={TASK.task_id: ("app.py",)},
    baseline_dependencies=(),
    declared_dependencies=(),
)
WORK = TaskBrief(
    task=TASK, breakdown=PLAN, surface=SURFACE, allowed_dependencies=(), modified_files={}, files=("app.py", *TREE)
)
DELIVERED = json.dumps(delivery(STORY, 1, {"app.py": "A = 1\n"}))
FAULT = {"failure_analysis": [{"file": "app.py", "function": "", "issue": "A is 2", "fix": "make it 1"}]}


async def agrees(_: object) -> list[Finding]:
    return []


async def look(paths: Sequence[str]) -> Mapping[str, str]:
    return {path: TREE[path] for path in paths if path in TREE}


async def plans(desk: Desk) -> bool:
    return (await Mike(desk, brief()).breakdown(Surface(commit="", files=tuple(TREE)), "", None)).breakdown is not None


async def amends(desk: Desk) -> bool:
    asked = AmendmentBrief(
        task=TASK, breakdown=PLAN, surface=SURFACE, contract=CONTRACT, files=("rates.py",), packages=(), findings=()
    )
    return (await Mike(desk, brief()).amendment(asked)).amendment is not None


async def builds(desk: Desk) -> bool:
    return (await Alex(desk, brief()).deliver(WORK, agrees, look)).accepted


async def merges(desk: Desk) -> bool:
    return (await Alex(desk, brief()).merge(MergeBrief(work=WORK), agrees, look)).accepted


async def reviews(desk: Desk) -> bool:
    return (
        await Reviewer(desk, brief()).review(
            ReviewBrief(task=TASK, contract=CONTRACT, surface=SURFACE, diff="+A = 1\n")
        )
    ).approved


async def writes_tests(desk: Desk) -> bool:
    asked = SuiteBrief(breakdown=PLAN, surface=SURFACE, files={"app.py": "A = 1\n"})
    return (await Jordan(desk, brief()).suite(asked, agrees)).suite is not None


async def analyses(desk: Desk) -> bool:
    red = report(failed=["test_a"])
    return bool(
        (
            await Jordan(desk, brief()).analyse(
                FailureBrief(suite=SUITE, surface=SURFACE, report=red, files={}, task_files={})
            )
        ).instructions
    )


Turn = Callable[[Desk], Awaitable[bool]]
TURNS: list[Any] = [
    pytest.param(plans, "mike", "breakdown", json.dumps(breakdown(STORY, ["app.py"])), id="plan"),
    pytest.param(
        amends,
        "mike",
        "amendment",
        json.dumps({"files": ["rates.py"], "dependencies": {}, "reason": "x"}),
        id="amendment",
    ),
    pytest.param(builds, "alex", "delivery", DELIVERED, id="delivery"),
    pytest.param(merges, "alex", "merge", DELIVERED, id="merge"),
    pytest.param(reviews, "reviewer", "review", CLEAN, id="review"),
    pytest.param(writes_tests, "jordan", "suite", json.dumps(suite(STORY, CONTENT)), id="suite"),
    pytest.param(analyses, "jordan", "analysis", json.dumps(FAULT), id="analysis"),
]


def at_desk(persona: str, purpose: str, *texts: str, looks: int = 2) -> Bench:
    task = TASK.task_id if persona in {"alex", "reviewer"} else None
    # One attempt each: a look that cost one would end the turn.
    policies = Policies.model_validate({"answer": {"max_attempts": 0}, "build": {"max_attempts": 1}, "looks": looks})
    says = [{"persona": persona, "purpose": purpose, "task": task, "text": text} for text in texts]
    at = bench(*says, policies=policies)
    return replace(at, desk=replace(at.desk, look=look))


def shown(at: Bench) -> list[dict[str, Any]]:
    return [event.data for event in at.sink.events if event.name == "files_shown"]


@pytest.mark.parametrize(("turn", "persona", "purpose", "answer"), TURNS)
async def test_a_look_is_answered_with_the_files_and_costs_no_attempt(
    turn: Turn, persona: str, purpose: str, answer: str
) -> None:
    at = at_desk(persona, purpose, "READ shop.py", answer)
    assert await turn(at.desk)
    assert at.asked == [f"{purpose} 1", f"{purpose} 2"]
    before, after = (prompt.text for prompt in at.step.prompts)
    assert "READ" in before
    assert "return 'a shop'" not in before
    assert "return 'a shop'" in after
    assert [(one["files"], one["only"], one["verdict"]) for one in shown(at)] == [(["shop.py"], True, Verdict.SHOWN)]


async def test_a_revision_of_a_plan_shows_the_files_that_were_asked_for() -> None:
    plan = json.dumps(breakdown(STORY, ["app.py"]))
    at = at_desk("mike", "breakdown", "READ shop.py", plan, "READ bank.py", plan, plan)
    mike, surface = Mike(at.desk, brief()), Surface(commit="", files=tuple(TREE))
    planned = await mike.breakdown(surface, "", None)
    await mike.breakdown(surface, mike.revision(planned, [minor("gate.comment", "round to cents")]), None)
    await mike.breakdown(surface, "", None)
    held = [[name for name in ("a shop", "def bank") if name in prompt.text] for prompt in at.step.prompts]
    assert held == [[], ["a shop"], ["a shop"], ["a shop", "def bank"], []]


@pytest.mark.parametrize("end", ["\n", " "])
async def test_a_file_that_is_longer_than_the_room_is_shown_part_after_part(end: str) -> None:
    text = "".join(f"line {number}{end}" for number in range(4000))

    async def look(_paths: Sequence[str]) -> Mapping[str, str]:
        return {"long.py": text, "short.py": "A = 1\n"}

    shown = Shown({}, look, 8000, looks=9)
    seen = ""
    for number in range(6):
        await shown.show(["long.py", "short.py"] if not number else ["long.py"], [])
        seen += shown.slots["shown_files"]
        assert ("left out" in seen) == ("long.py" not in shown.in_full)
        ends = f"line 3999{end}" in shown.slots["shown_files"]
        to_its_end = ends and f"line 0{end}" not in shown.slots["shown_files"]
        assert ("asked for again, its next part is shown" in shown.slots["shown_files"]) is not to_its_end
    assert [number for number in range(4000) if f"line {number}{end}" not in seen] == []
    assert "A = 1" in shown.slots["shown_files"]
    await shown.show(["short.py"], [])
    assert "`short.py` is shown in full already." in shown.slots["shown_files"]


async def test_what_is_asked_for_first_is_shown_whole_and_the_rest_at_least_in_part() -> None:
    """The architect of a story of tomlkit asked for five files: the changelog and the old tests left no room for the
    sources named before them."""
    sizes = {"container.py": 7000, "types.py": 500, "items.py": 16000, "CHANGELOG.md": 7000, "test_document.py": 7000}
    tree = {path: f"{path}\n" + f"{'word ' * 19}\n" * (4 * size // 96) for path, size in sizes.items()}

    async def all_of(paths: Sequence[str]) -> Mapping[str, str]:
        return {path: tree[path] for path in paths}

    shown = Shown({}, all_of, 24_000, looks=3, parts_of=lambda path, _text: f"parts of {path}\n" + "a b \n" * 500)
    assert await shown.show([*sizes], ()) == (*sizes,)
    assert shown.in_full == {"container.py", "types.py"}
    text = shown.slots["shown_files"]
    assert all(f"parts of {path}" in text for path in ("items.py", "CHANGELOG.md", "test_document.py"))


async def test_a_look_too_many_is_an_attempt_and_no_repair_is_asked_for() -> None:
    at = at_desk("jordan", "analysis", *["READ shop.py"] * 3)
    assert not await analyses(at.desk)
    assert at.asked == ["analysis 1", "analysis 2", "analysis 3"]
    given_up = next(event for event in at.sink.events if event.name == "answer_given_up")
    assert "no look is left" in given_up.message


async def test_a_change_of_a_file_that_was_not_shown_stands_where_it_fits() -> None:
    edit = """# Shop

## Rationale

A name.

## Action Plan

### `EDIT`

- **File Path:** [shop.py](/shop.py)

#### FIND:

```python
    return 'a shop'
```

#### REPLACE:

```python
    return 'the shop'
```
"""
    at = at_desk("alex", "delivery", edit)
    found = await Alex(at.desk, brief()).deliver(WORK, agrees, look)
    assert found.accepted
    assert at.asked == ["delivery 1"]
    assert found.delivery is not None
    assert found.delivery.files[0].content == TREE["shop.py"].replace("a shop", "the shop")


async def test_a_task_that_comes_back_shows_the_files_that_were_asked_for() -> None:
    at = at_desk("alex", "delivery", "READ shop.py", DELIVERED, DELIVERED)
    alex = Alex(at.desk, brief())
    for _ in range(2):
        assert (await alex.deliver(WORK, agrees, look)).accepted
    assert ["a shop" in prompt.text for prompt in at.step.prompts] == [False, True, True]


async def test_a_file_that_never_has_room_is_told_so() -> None:
    async def look(_paths: Sequence[str]) -> Mapping[str, str]:
        return {"cli.rst": "word " * 40_000}

    shown = Shown({}, look, 8000, looks=9, in_part=False)
    await shown.show(["cli.rst"], [])
    told = "`cli.rst` is not shown: it is too long to be shown whole, whatever is pruned"
    assert shown.slots["shown_files"] == f"{told}; `READ cli.rst#L1-L200` shows lines of it."
