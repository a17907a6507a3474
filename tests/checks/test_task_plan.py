"""What a person's task plan must have, all told together, and the breakdown it comes to."""

import pytest

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.task_plan import (
    breakdown_of,
    check_length,
    check_planned,
    check_task_plan,
    is_placeholder,
)
from orchestrator.core.finding import Finding
from tests.answers.task_plans import WRITTEN

FILES = frozenset({"shop/page.py", "data", "app/main.py"})


def judged(text: str, known: frozenset[str] = frozenset()) -> list[Finding]:
    plan = read_task_plan(text, "plan.md").plan
    found = [*check_task_plan(plan, "US-1"), *check_length(text, plan.path, 200)]
    return [*found, *check_planned(plan, breakdown_of(plan, "US-1"), FILES, known)]


def codes(
    *tasks: str, head: str = "**Goal:** See prices with their currency", known: frozenset[str] = frozenset()
) -> list[str]:
    body = "\n\n".join([head, *(f"### Task {number}\n\n{text}" for number, text in enumerate(tasks, start=1))])
    return [finding.code for finding in judged(f"# Prices\n\n{body}\n\n{'Much is said. ' * 20}\n", known)]


def test_a_plan_becomes_a_breakdown_that_says_nothing_more() -> None:
    plan = read_task_plan(WRITTEN, "plan.md").plan
    built = breakdown_of(plan, "US-1")
    assert [(task.task_id, task.dependencies, task.command_to_run) for task in built.tasks] == [
        ("T-US-1-01", (), None),
        ("T-US-1-02", ("T-US-1-01",), "python -m shop.build_pages"),
        ("T-US-1-03", ("T-US-1-02", "T-US-1-01"), None),
    ]
    assert [task.description.partition("\n")[2] for task in built.tasks] == [
        task.text.partition("\n")[2] for task in plan.tasks
    ]
    assert [task.description.partition("\n")[0] for task in built.tasks[:2]] == [
        "Task 1: Prices and currencies",
        "Task 2.1: The page",
    ]
    assert built.dependencies.dependencies == {"babel": ">=2.14,<3", "python-dateutil": "*"}
    assert built.task_count == 3
    assert built.tech_stack == "Python 3.12, pytest"
    assert "One module of pure functions" in built.code_patterns
    assert not built.architectural_conflict.detected
    assert [finding.code for finding in judged(WRITTEN)] == ["breakdown.too_many_files"]


def test_all_that_is_missing_is_told_at_once_each_with_an_example() -> None:
    found = {finding.code: finding for finding in judged("# Plan\n\nDo it.\n")}
    assert set(found) == {"task_plan.no_tasks", "task_plan.too_short", "task_plan.no_goal"}
    assert all(finding.severity.blocks and finding.where.file == "plan.md" for finding in found.values())
    assert "### Task 1: Component" in found["task_plan.no_tasks"].fix
    assert "**Goal:** " in found["task_plan.no_goal"].fix
    assert "14 characters, at least 200" in found["task_plan.too_short"].message


def test_length_is_counted_without_the_blanks_around() -> None:
    assert check_length("x" * 200, "", 200) == []
    assert [f.code for f in check_length(" " * 99 + "x" * 199 + "\n" * 99, "", 200)] == ["task_plan.too_short"]


@pytest.mark.parametrize(
    "goal",
    [
        "Implementation plan",
        "TODO",
        "US-1",
        "`US-1`",
        "Implement story US-1.",
        "N/A",
        "[One sentence describing what this builds]",
        "TODO: say it",
        "none",
    ],
)
def test_placeholders_are_no_goals(goal: str) -> None:
    assert is_placeholder(goal, "US-1")
    assert "task_plan.placeholder_goal" in codes("- Create: `a.py`", head=f"**Goal:** {goal}")


@pytest.mark.parametrize(
    "goal",
    ["See prices", "Todo list app", "Implement ISO-27001", "实现功能", "Implement US-12", "[Prices](a.md) are shown"],
)
def test_short_goals_are_goals(goal: str) -> None:
    assert not is_placeholder(goal, "US-1")


def test_without_a_story_whatever_looks_like_an_id_is_one() -> None:
    assert is_placeholder("US-001")
    assert not is_placeholder("Implement ISO-27001", "US-1")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["- Create: `a.py`"], []),
        (["**Command:** `make x`"], []),
        (["Only words."], ["breakdown.no_work"]),
        (["- Test: `tests/a.py`\n\nRun: `pytest`"], ["breakdown.no_work"]),
        (["- Create: `../a.py`, `/etc/b`, `.git/config`, `C:\\x.py`, `a:b.py`"], ["breakdown.unsafe_path"] * 5),
        (["- Create: `tests/test_a.py`"], ["breakdown.no_work"]),
        (["- Create: `tests/test_a.py`", "- Create: `a.py`"], []),
        (["Only words.", "- Create: `a.py`"], ["task_plan.unclear"]),
        (["- Modify: `data`"], []),
        (["- Modify: `app`"], ["breakdown.abstract_path"]),
        (["- Create: `database`"], ["breakdown.abstract_path"]),
        (["- Create: `logo.png`"], ["breakdown.binary_file"]),
        (["- Create: `a.py`\n\n**Depends on:** Task 9"], ["task_plan.dependency"]),
        (["- Create: `a.py`\n\n**Depends on:** the team"], ["task_plan.dependency"]),
        (
            ["- Create: `a.py`\n\n**Depends on:** Task 2", "- Create: `b.py`\n\n**Depends on:** Task 1"],
            ["breakdown.cycle"],
        ),
        (["- Create: `a.py`\n\n**Depends on:** Task 1"], ["breakdown.cycle"]),
        (["- Create: `a.py`\n\n**Command:** `pip install rich`"], ["breakdown.undeclared_package"]),
        (["- Create: `a.py`\n\n**Packages:** rich\n\n**Command:** `pip install rich`"], []),
        (["- Create: `a.py`\n\n**Packages:** git+https://x.example/rich"], ["task_plan.packages"]),
        (["- Create: `a.py`\n\n**Packages:** rich @ https://x.example/rich.whl"], ["breakdown.package_source"]),
    ],
)
def test_rules_of_every_breakdown_count(tasks: list[str], expected: list[str]) -> None:
    assert [code for code in codes(*tasks) if code != "breakdown.too_many_files"] == expected


def test_known_packages_need_no_declaration() -> None:
    assert codes("- Create: `a.py`\n\n**Command:** `pip install rich`", known=frozenset({"rich"})) == []


def test_findings_speak_of_the_plan_and_not_of_what_it_became() -> None:
    text = WRITTEN.replace("`shop/prices.py`", "`../prices.py`").replace("Task 1 (its", "Task 2.2 (its")
    cycle, path = [finding for finding in judged(text) if finding.severity.blocks]
    assert (path.where.file, path.where.line, path.where.task) == ("plan.md", 15, "Task 1")
    assert cycle.message == "tasks wait for each other: Task 2.1 → Task 2.2 → Task 2.1"
    again = judged(text.replace("### Task 2.2", "### Task 1"))
    (double,) = [finding for finding in again if finding.code == "task_plan.duplicate"]
    assert (double.where.line, double.message) == (55, "Task 1 stands in line 15 already")


def test_what_a_task_tests_is_the_testers_and_what_nobody_builds_is_waited_through() -> None:
    text = (
        "# Prices\n\n- [ ] T001 Round in shop/a.py\n- [ ] T002 Test it in tests/test_a.py (depends on T001)\n"
        "- [ ] T003 Look at it (depends on T002)\n- [x] T004 Old in shop/old.py\n"
        "- [ ] T005 Show it in shop/b.py (depends on T003, T004)\n"
    )
    plan = read_task_plan(text).plan
    built = breakdown_of(plan, "US-1")
    assert [(task.files_to_create, task.dependencies) for task in built.tasks] == [
        (("shop/a.py",), ()),
        (("shop/b.py",), ("T-US-1-01",)),
    ]
    (test,) = built.acceptance_tests
    assert test.criterion == "Test it in tests/test_a.py (depends on T001)"
    assert test.test.startswith("`tests/test_a.py`: T002: Test it")
    assert built.code_patterns == "# Prices\n\nT003: Look at it (depends on T002)"
    assert built.technical_notes == "Goal: Prices"
    (asked,) = [finding for finding in judged(text) if finding.ask]
    assert (asked.code, asked.where.task, "by T003?" in asked.message) == ("task_plan.unclear", "T003", True)
