"""What a person's task plan must have, all told together, and the breakdown it comes to."""

import pytest

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.task_plan import is_placeholder, why_followed
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.finding import Finding
from orchestrator.story.planning import judge_text
from tests.answers.task_plans import PLANS, WRITTEN

FILES = frozenset({"shop/page.py", "data", "app/main.py"})


def judged(text: str, known: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    return judge_text(text, "plan.md", "US-1", FILES, known, min_chars=200).findings


def built_of(text: str) -> Breakdown:
    breakdown = judge_text(text, "plan.md", "US-1", min_chars=0).breakdown
    assert breakdown is not None
    return breakdown


def codes(
    *tasks: str, head: str = "**Goal:** See prices with their currency", known: frozenset[str] = frozenset()
) -> list[str]:
    body = "\n\n".join([head, *(f"### Task {number}\n\n{text}" for number, text in enumerate(tasks, start=1))])
    return [finding.code for finding in judged(f"# Prices\n\n{body}\n\n{'Much is said. ' * 20}\n", known)]


def test_a_plan_becomes_a_breakdown_that_says_nothing_more() -> None:
    plan = read_task_plan(WRITTEN, "plan.md").plan
    built = built_of(WRITTEN)
    assert [(task.task_id, task.dependencies, task.command_to_run) for task in built.tasks] == [
        ("T-US-1-01", (), None),
        ("T-US-1-02", ("T-US-1-01",), "python -m shop.build_pages"),
        ("T-US-1-03", ("T-US-1-02", "T-US-1-01"), "pytest -q"),
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
    assert "One module of pure functions" in built.code_patterns
    assert not built.architectural_conflict.detected
    assert [finding.code for finding in judged(WRITTEN)] == ["breakdown.too_many_files"]


def test_all_that_is_missing_is_told_at_once_each_with_an_example() -> None:
    found = {finding.code: finding for finding in judged("# Plan\n\n### Task 1\n\n- Create: `a.py`\n")}
    assert set(found) == {"task_plan.too_short", "task_plan.placeholder_goal"}
    assert all(finding.severity.blocks and finding.where.file == "plan.md" for finding in found.values())
    assert "**Goal:** " in found["task_plan.placeholder_goal"].fix
    assert "36 characters, at least 200" in found["task_plan.too_short"].message
    assert [one.code for one in judged("### Task 1\n\n- Create: `a.py`\n\n" + "x" * 200)] == ["task_plan.no_goal"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Do it in `a.py`.", "it has no task"),
        ("### Task 1\n\nOnly words.\n", "Task 1 names no file, test or command"),
        ("- [ ] T001 Round in src/a.py\n- [ ] T002 Look\n- [x] T003 Old\n", "T002 names no file, test or command"),
        ("### Task 1\n\n- Test: `tests/test_a.py`\n", "no task names a file or a command"),
        ("### Task 1\n\n**Command:** `make a`\n\n### Task 2\n\n- Test: `tests/test_a.py`\n", ""),
        ("- [x] T001 Round in src/a.py\n", ""),
        ("# Plan\n\n### Task 1a\n\n- Create: `a.py`\n", "it has no task"),
    ],
)
def test_a_text_in_which_a_task_says_too_little_is_the_architects_to_follow(text: str, why: str) -> None:
    """Nothing of it is lost: he sees the whole text, and his plan is checked like any other."""
    assert why_followed(read_task_plan(text).plan) == why
    breakdown, findings = judge_text(text, "", "US-1", min_chars=0)
    assert (breakdown is None, "task_plan.followed" in {one.code for one in findings}) == (bool(why), bool(why))
    assert not why or not any(finding.severity.blocks for finding in findings)


def test_a_task_that_would_be_lost_beside_others_is_refused() -> None:
    found = judged("# Prices\n\n### Task 1\n\n- Create: `a.py`\n\n### Task 2a\n\n- Create: `b.py`\n\n" + "x" * 200)
    assert [(one.code, one.where.line, one.severity.blocks) for one in found] == [("task_plan.heading", 7, True)]


def test_a_plan_in_which_all_is_ticked_is_refused() -> None:
    assert "task_plan.no_tasks" in {one.code for one in judged("- [x] T001 Round in src/a.py\n")}


def test_length_is_counted_without_the_blanks_around() -> None:
    assert "task_plan.too_short" not in {one.code for one in judged("x" * 200)}
    assert "task_plan.too_short" in {one.code for one in judged(" " * 99 + "x" * 199 + "\n" * 99)}


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
        (["- Create: `../a.py`, `/etc/b`, `.git/config`, `C:\\x.py`, `a:b.py`"], ["breakdown.unsafe_path"] * 5),
        (["- Create: `tests/test_a.py`", "- Create: `a.py`"], []),
        (["- Modify: `data`"], []),
        (["- Modify: `app`"], ["breakdown.abstract_path"]),
        (["- Create: `database`"], ["breakdown.abstract_path"]),
        (["- Create: `logo.png`"], ["breakdown.binary_file"]),
        (["- Create: `a.py`\n\n**Depends on:** Task 9"], ["task_plan.dependency"]),
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
    assert cycle.message == "tasks wait for each other: Task 2.2 → Task 2.1 → Task 2.2"
    again = judged(text.replace("### Task 2.2", "### Task 1"))
    (double,) = [finding for finding in again if finding.code == "task_plan.duplicate"]
    assert (double.where.line, double.message) == (55, "Task 1 stands in line 15 already")


def test_a_whole_stands_for_its_parts() -> None:
    text = (
        "### Task 1.1\n- Create: a\n\n### Task 1.2\n- Create: b\nDepends on: Task 1\n\n"
        "### Task 2\n- Create: c\nDepends on: Task 1\n"
    )
    found = [task.dependencies for task in built_of(text).tasks]
    assert found == [(), ("T-US-1-01",), ("T-US-1-01", "T-US-1-02")]


def test_what_a_task_tests_is_the_testers() -> None:
    text = (
        "# Prices\n\nExact.\n\n- [ ] T001 Round in shop/a.py\n- [ ] T002 Test it in tests/test_a.py (depends on T001)\n"
        "- [x] T004 Old in shop/old.py\n- [ ] T005 Show it in shop/b.py (depends on T001, T004)\n"
    )
    built = built_of(text)
    assert [(task.files_to_create, task.dependencies) for task in built.tasks] == [
        (("shop/a.py",), ()),
        (("shop/b.py",), ("T-US-1-01",)),
    ]
    (test,) = built.acceptance_tests
    assert test.criterion == "Test it in tests/test_a.py (depends on T001)"
    assert test.test.startswith("tests/test_a.py: T002: Test it")
    assert built.code_patterns == "# Prices\n\nExact."


def test_the_tester_gets_the_whole_text_of_what_names_tests() -> None:
    first, second = built_of((PLANS / "superpowers.md").read_text(encoding="utf-8")).acceptance_tests
    assert first.test.startswith("tests/client/test_retry_budget.py: Task 1: RetryBudget value")
    assert "    assert not budget.take()\n" in first.test
    assert second.test.startswith("tests/client/test_http.py: Task 2")


@pytest.mark.parametrize(("name", "is_followed"), [("plan_mode", True), ("spec_kit", True), ("superpowers", False)])
def test_a_plan_that_another_tool_wrote_is_built_or_followed_and_never_refused(name: str, is_followed: bool) -> None:
    judged = judge_text((PLANS / f"{name}.md").read_text(encoding="utf-8"), f"{name}.md", "US-1", min_chars=200)
    assert (judged.breakdown is None) is is_followed
    assert [finding.code for finding in judged.findings] == ["task_plan.followed"] * is_followed
