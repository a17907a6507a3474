"""A person's plan as the architect reads it: held against its text, sent back, and read by rules when that fails."""

import json
from typing import Any

import pytest

from orchestrator.core.calls.exchange import GivenPlan
from orchestrator.personas.mike import Mike
from orchestrator.settings import Policies
from tests.personas.desks import Bench, bench, brief

PLAN = """\
# Prices

This plan lets customers see prices with their currency. We use babel 2.14 for that.

### Task 1: Prices

- Create: `shop/prices.py:1-20`
- Test: `tests/test_prices.py`

### Task 2.1: The page

**Files:** `shop/page.py`, `tests/test_page.py`; read `docs/style.md` first.

When task 1 is done.

### Task 3: Rates

Have `python -m shop.rates` write them. Run: `pytest -q`

{filling}
""".format(filling="All amounts are decimals. " * 8)
READ: dict[str, Any] = {
    "goal": "customers see prices with their currency",
    "tasks": [
        {"number": "1", "title": "Prices", "files": ["shop/prices.py"], "command": None, "depends_on": []},
        {"number": "2.1", "title": "The page", "files": ["shop/page.py"], "command": None, "depends_on": ["1"]},
        {"number": "3", "title": "Rates", "files": [], "command": "python -m shop.rates", "depends_on": []},
    ],
    "packages": ["babel==2.14"],
    "dev_packages": [],
}


def says(value: Any, **more: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"persona": "mike", "purpose": "plan_extract", "text": text, **more}


async def given(at: Bench, text: str = PLAN) -> GivenPlan:
    return await Mike(at.desk, brief()).extract_plan("plan.md", text)


def codes(plan: GivenPlan) -> list[str]:
    return [finding.code for finding in plan.findings]


def changed(task: int | None = None, **fields: Any) -> dict[str, Any]:
    value = json.loads(json.dumps(READ))
    (value if task is None else value["tasks"][task]).update(fields)
    return value  # type: ignore[no-any-return]


async def test_a_model_adds_what_rules_leave_open() -> None:
    at = bench(says(changed(packages=["babel"])))
    plan = await given(at)
    assert at.asked == ["plan_extract 1"]
    assert PLAN.strip() in at.segment(0, "task")
    assert codes(plan) == []
    tasks = plan.breakdown.tasks
    assert [task.files_to_create for task in tasks] == [("shop/prices.py",), ("shop/page.py",), ()]
    assert [task.dependencies for task in tasks] == [(), ("T-US-1-01",), ()]
    assert [task.command_to_run for task in tasks] == [None, None, "python -m shop.rates"]
    assert plan.breakdown.dependencies.dependencies == {"babel": "*"}
    assert (plan.path, plan.text) == ("plan.md", PLAN)
    (told,) = at.sink.named("plan_given")
    assert (told.data["plan_file"], told.data["task_count"]) == ("plan.md", 3)
    assert told.data["key_files"] == ["shop/prices.py", "shop/page.py"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (changed(goal="Customers will love our prices"), "does not stand in the plan"),
        (changed(tasks=READ["tasks"][:2]), "the plan has 3 tasks, numbered 1, 2.1, 3; the answer has 2"),
        (changed(tasks=[*READ["tasks"], READ["tasks"][0]]), "the answer has 4"),
        (changed(1, number="2"), "numbered 1, 2, 3"),
        (changed(1, files=["shop/pages.py"]), "`shop/pages.py` does not stand in the task"),
        (changed(1, files=["page.py"]), "`page.py` does not stand in the task"),
        (changed(2, files=["shop/page.py"]), "`shop/page.py` does not stand in the task"),
        (changed(2, command="python -m shop.prices"), "the command `python -m shop.prices` does not stand"),
        (changed(0, depends_on=["7"]), "it depends on 7, which is no task of the plan"),
        (changed(packages=["babel", "rich"]), "the package `rich` does not stand in the plan"),
        (changed(packages=["babel>=3"]), "the package `babel>=3` does not stand"),
    ],
)
async def test_what_does_not_stand_in_the_plan_is_sent_back(wrong: Any, code: str) -> None:
    at = bench(says(wrong), says(changed(packages=[])))
    plan = await given(at)
    assert at.asked == ["plan_extract 1", "plan_extract 2"]
    assert code in at.segment(1, "feedback")
    assert codes(plan) == []


async def test_tests_are_nobodys_files_here_and_other_spellings_are_understood() -> None:
    tasks = [
        {"task_id": "Task 1", "files_to_create": ["./shop/prices.py"]},
        {"id": 2.1, "files": ["shop/page.py", "tests/test_page.py"], "depends_on": [1]},
        {"number": 3, "paths": []},
    ]
    plan = await given(bench(says({"goal": "", "tasks": tasks})))
    assert plan.breakdown.tasks[1].files_to_create == ("shop/page.py",)
    assert plan.breakdown.tasks[1].dependencies == ("T-US-1-01",)
    assert codes(plan) == ["task_plan.unclear", "extract.test_file"]
    assert plan.breakdown.technical_notes == "Goal: Prices"
    assert [test.test for test in plan.breakdown.acceptance_tests] == ["`tests/test_prices.py`", "`tests/test_page.py`"]


@pytest.mark.parametrize(
    "reply", ["I cannot read this.", "{}", '{"goal": "x", "tasks": "none"}', json.dumps(READ)[:200]]
)
async def test_a_reading_that_cannot_be_used_falls_back_to_rules(reply: str) -> None:
    at = bench(*[says(reply)] * 3)
    plan = await given(at)
    assert [one for one in at.asked if "repair" not in one] == ["plan_extract 1", "plan_extract 2", "plan_extract 3"]
    assert [task.files_to_create for task in plan.breakdown.tasks] == [("shop/prices.py",), ("shop/page.py",)]
    assert "task_plan.read_by_rules" in codes(plan)
    assert not next(f for f in plan.findings if f.code == "task_plan.read_by_rules").severity.blocks


async def test_nobody_to_ask_and_a_plan_too_long_to_send_are_read_by_rules() -> None:
    at = bench()
    assert codes(await given(at)) == ["task_plan.unclear", "task_plan.read_by_rules"]
    at = bench(policies=Policies.model_validate({"context_tokens": 100}))
    assert "task_plan.read_by_rules" in codes(await given(at))
    assert at.asked == []


async def test_a_text_without_tasks_is_asked_about_once() -> None:
    at = bench(*[says({"goal": "x", "tasks": [{"number": "1", "files": []}]})] * 3)
    plan = await given(at, "Do it.")
    assert at.asked == ["plan_extract 1"]
    assert codes(plan)[:3] == ["task_plan.no_tasks", "task_plan.no_goal", "task_plan.read_by_rules"]
    assert plan.breakdown.tasks == ()


async def test_a_path_in_prose_that_a_model_could_read_is_no_finding_any_more() -> None:
    text = PLAN.replace("**Files:** `shop/page.py`, `tests/test_page.py`;", "Modify: the page, shop/page.py\n\nAlso")
    plan = await given(bench(says(changed(packages=[]))), text)
    assert codes(plan) == ["task_plan.path"]  # `the page` beside it names no file
    text = PLAN.replace("**Files:** `shop/page.py`, `tests/test_page.py`;", "Modify: the page in shop/page.py\n\nAlso")
    plan = await given(bench(says(changed(packages=[]))), text)
    assert codes(plan) == []
    assert plan.breakdown.tasks[1].files_to_create == ("shop/page.py",)
