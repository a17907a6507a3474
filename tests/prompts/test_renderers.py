import pytest

from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, Task
from orchestrator.core.story import Story
from orchestrator.core.suite import (
    PROBLEMS,
    CaseResult,
    ReportedCase,
    RunProblem,
    TestReport,
)
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.context import (
    render_design,
    render_missing,
    render_report,
    render_sprint_stories,
)

TASK = Task(
    task_id="T-US-001-01",
    description="Write the\nmodel. " + "More. " * 60,
    files_to_create=("src/a.py", "src/b.py"),
    command_to_run="python -m a",
    dependencies=("T-US-001-00",),
)
CASES = (
    ReportedCase(name="test_ok", id="t::test_ok", result=CaseResult.PASSED),
    ReportedCase(name="test_bad", id="t::test_bad", result=CaseResult.FAILED, message="assert 1 == 2\n```"),
)


def test_sprint_stories_tell_every_title_before_any_criterion_when_short_of_room() -> None:
    stories = [
        Story(id=f"US-{n:03d}", title=f"Title {n}", acceptance_criteria=(f"criterion {n} " * 20,)) for n in range(40)
    ]
    assert "- US-000: Title 0\n  1. criterion 0" in render_sprint_stories(stories, 100_000)
    short = render_sprint_stories(stories, 500)
    assert all(f"- US-{n:03d}: Title {n}" in short for n in range(40))
    assert "criteria of US-039" in short or "left out" in short.lower()
    assert tokens(short) <= 500
    assert render_sprint_stories([], 500) == ""


def test_missing_tasks_are_counted_and_named() -> None:
    assert render_missing("US-001", [TASK], 3).endswith("1 are there. Missing: T-US-001-02, T-US-001-03.")
    assert "next one is T-US-001-02" in render_missing("US-001", [TASK], 1)


def test_the_design_is_text_or_json_under_headings() -> None:
    conflict = ArchitecturalConflict(detected=False)
    breakdown = Breakdown(
        story_id="US-001",
        architectural_conflict=conflict,
        task_count=1,
        tasks=(TASK,),
        database_design={"tables": ["bücher"]},
        conventions=" snake_case ",
        api_design=[],
    )
    text = render_design(breakdown, 1000)
    assert text.index("### Database design") < text.index("bücher") < text.index("### Conventions\n\nsnake_case")
    assert "API design" not in text
    bare = Breakdown(story_id="US-001", architectural_conflict=conflict, task_count=0, tasks=())
    assert render_design(bare, 1000) == ""


def test_a_report_tells_failures_first_and_output_only_when_it_helps() -> None:
    text = render_report(TestReport(cases=CASES, output="noise"), 1000)
    assert text.startswith("1 passed, 1 failed, 0 skipped.")
    assert text.index("### t::test_bad (failed)\n\n````text\nassert 1 == 2\n```\n````") < text.index("Passed: test_ok")
    assert "noise" not in text
    rows = TestReport(cases=(*CASES, CASES[0].model_copy(update={"id": "t::test_ok[2]"})))
    assert render_report(rows, 1000).endswith("Passed: test_ok (2 times)")
    printed = "collected 2 items\n\nt.py::test_ok PASSED   [ 50%]\nt.py::test_bad FAILED  [100%]\n"
    text = render_report(TestReport(problem=RunProblem.TIMEOUT, cases=CASES[:1], output=printed), 1000)
    assert "test_bad FAILED" in text
    assert "test_ok PASSED" not in text
    crashed = TestReport(problem=RunProblem.NO_REPORT, missing_names=("test_a",), output="Traceback " * 5000)
    text = render_report(crashed, 1000)
    assert text.startswith("Problem (no_report): the runner ended without a whole report")
    assert "Missing from the report: test_a." in text
    assert "### Printed text" in text
    assert tokens(text) <= 1000
    assert set(PROBLEMS) == set(RunProblem)


STACK = """TypeError: Cannot read properties of null (reading 'amount')
    at /srv/shop/node_modules/express/lib/router.js:3:4
    at total (src/shop.js:2:34)"""


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("500 !== 200\n    at TestContext.<anonymous> (n/shop.test.js:8:81)", True),
        ("boom\n    at total (src/shop.js:2:34)\n    at n/shop.test.js:8:81", False),
    ],
)
def test_a_stack_that_was_printed_is_shown_where_no_test_names_the_projects_code(message: str, shown: bool) -> None:
    case = ReportedCase(name="served", id="n::served", file="n/shop.test.js", result=CaseResult.FAILED, message=message)
    told = render_report(TestReport(cases=(case,), output=f"GET /total\n\n{STACK}\n\n1 failed", exit_code=1))
    assert (STACK in told) is shown
    assert "1 failed\n" not in told.split("### Printed text")[-1]
