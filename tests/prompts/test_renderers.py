import pytest

from orchestrator.core.breakdown import AcceptanceTest, ArchitecturalConflict, Breakdown, Task
from orchestrator.core.contract import Surface
from orchestrator.core.story import Story
from orchestrator.core.suite import (
    PROBLEMS,
    CaseResult,
    FailureInstruction,
    ReportedCase,
    RunProblem,
    TestReport,
    TestSuite,
)
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.context import (
    render_acceptance_tests,
    render_design,
    render_done_task,
    render_files,
    render_history,
    render_instructions,
    render_missing,
    render_names,
    render_paths,
    render_report,
    render_sprint_stories,
    render_story,
    render_suite,
    render_surface,
    render_task,
    render_tasks,
)

STORY = Story(
    id="US-001",
    title="Lend a book",
    functional_requirements="Lend.\nReturn.",
    dependencies=("NFR-001",),
    acceptance_criteria=("A book is lent\nonce", "It comes back"),
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


def test_a_story_has_its_filled_cells_and_numbered_criteria() -> None:
    text = render_story(STORY)
    assert "Functional requirements: Lend.\nReturn." in text
    assert "Depends on: NFR-001" in text
    assert "Constraints" not in text
    assert text.endswith("Acceptance criteria:\n1. A book is lent once\n2. It comes back")


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


def test_tasks_in_full_and_in_one_line() -> None:
    text = render_task(TASK)
    assert "Files to create or modify: src/a.py, src/b.py" in text
    assert "Command run afterwards: python -m a" in text
    assert "Because" not in text
    assert render_tasks([TASK, TASK]).count("Task: T-US-001-01") == 2
    long = TASK.model_copy(update={"description": "word " * 200})
    assert render_done_task(long, "done", "").startswith("### T-US-001-01 (done)\n\nword word")
    assert len(render_done_task(long, "done", "")) < 340
    made = render_done_task(TASK, "done", "src/a.py:\ndef a(b: int) -> str")
    assert made.endswith('<data of="made">\nsrc/a.py:\ndef a(b: int) -> str\n</data>')


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


def test_acceptance_tests() -> None:
    tests = [AcceptanceTest(criterion="A", test="do\nit"), AcceptanceTest(criterion="B")]
    assert render_acceptance_tests(tests) == "1. A\n   Test: do it\n2. B"


def test_the_surface_tells_packages_with_versions_and_the_map_within_its_budget() -> None:
    files = tuple(f"src/module_{n}.py" for n in range(2000))
    surface = Surface(
        commit="c",
        files=files,
        dependencies=("flask", "rich"),
        versions={"rich": ">=13"},
        runtime="requires-python >=3.11",
        map="src/module_7.py:\ndef seven() -> int",
    )
    whole = render_surface(surface)
    head = "Runtime: requires-python >=3.11\nPackages in the manifests: flask, rich >=13\n\nFiles (2000), "
    assert whole.startswith(head)
    assert whole.endswith("first:\n\nsrc/module_7.py:\ndef seven() -> int")
    listed = render_surface(surface.model_copy(update={"map": ""}))
    assert "src/module_0.py" in listed
    assert tokens(listed) <= 2000
    assert render_surface(Surface(commit="", files=()), 100) == "The repository is empty."


def test_files_names_and_paths() -> None:
    text = render_files({"a.py": "x = '```'\n", "odd\n## name": "y"}, 1000)
    assert "### a.py\n\n````py\nx = '```'\n````" in text
    assert "### 'odd\\n## name'" in text
    assert "Left out for lack of room (1): b" in render_files({"a": "x", "b": "y" * 5000}, 40)
    assert render_files({"a.py": "x"}, parts={"a.py": "A part."}) == "### a.py\n\nA part."
    assert render_names(["b", "a"], {"a": "~=1.2"}) == "a ~=1.2, b"
    assert "standard library" in render_names([])
    assert render_paths(["a", "b"]) == "- a\n- b"


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


def test_suite_instructions_and_history() -> None:
    suite = TestSuite(test_file="tests/test_a.py", test_content="def test_a():\n    assert f() == 1\n")
    assert render_suite(suite, 1000).startswith("### tests/test_a.py\n\n```py\ndef test_a")
    asked = [FailureInstruction(file="a.py", function="f", issue="returns 2\nnot 1", fix="return 1")]
    assert render_instructions(asked) == "- a.py, f\n  Issue: returns 2\n  not 1\n  Fix: return 1"
    history = render_history([(TestReport(cases=CASES), asked), (TestReport(cases=CASES), ())], 1000)
    assert history.index("### Attempt 1") < history.index("Asked for:\n- a.py, f") < history.index("### Attempt 2")
    assert "Failing: t::test_bad" in history
    assert render_history([], 1000) == ""


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


def test_what_several_tests_say_stands_once_in_a_report() -> None:
    cases = [
        ReportedCase(name=name, id=f"t::{name}", file="t.py", result=CaseResult.ERROR, message="no module x")
        for name in ("test_a", "test_b")
    ]
    told = render_report(TestReport(cases=tuple(cases), exit_code=1))
    assert told.count("no module x") == 1
    assert "### t::test_a, t::test_b (error)" in told
