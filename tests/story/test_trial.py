"""The story's suite: whom a failure concerns, what is told of a run."""

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Analysed
from orchestrator.core.suite import (
    CaseResult,
    FailureInstruction,
    ReportedCase,
    RunProblem,
    TestCase,
    TestReport,
    TestSuite,
)
from orchestrator.story import context
from orchestrator.story.context import failure_text, summary
from orchestrator.story.suite_loop import orders
from tests.simulated import report
from tests.support import breakdown, task

PLAN = Breakdown.model_validate(
    breakdown("A", task("A", 1, ["a.py", "shared.py"]), task("A", 2, ["b.py", "shared.py"]), task("A", 3, [], "true"))
)


OWNED = {task.task_id: task.files_to_create for task in PLAN.tasks}


def told(*files: str) -> Analysed:
    return Analysed(instructions=tuple(FailureInstruction(file=file, issue="i", fix="f") for file in files))


def asked(analysed: Analysed, run: TestReport) -> dict[str, tuple[str, ...]]:
    made = orders(PLAN, OWNED, analysed, run)
    return {order.task.task_id: tuple(i.file for i in order.instructions) for order in made}


def test_each_task_gets_the_instructions_for_its_own_files() -> None:
    red = report(failed=["test_a"])
    assert asked(told("b.py", "elsewhere.py"), red) == {"T-A-02": ("b.py",)}
    assert asked(told("a.py", "shared.py"), red) == {"T-A-01": ("a.py",), "T-A-02": ("shared.py",)}


SUITE = TestSuite(
    test_file="tests/test_a.py",
    test_content="",
    test_cases=(TestCase(name="test_a", criterion="C1"), TestCase(name="test_gone", criterion="C2")),
    expected_names=("test_a", "test_gone"),
)


def test_expected_tests_that_did_not_run_are_missing_and_parameters_count_singly() -> None:
    cases = [ReportedCase(name="test_a", id=f"t::test_a[{n}]", result=CaseResult.PASSED) for n in (1, 2)]
    run = TestReport(cases=tuple(cases), problem=RunProblem.MISSING_NAMES, missing_names=("test_gone",))
    outcome = context.tests_outcome(SUITE, run)
    assert (outcome.run, outcome.passed, outcome.failed) == (2, 2, 0)
    assert [(case.name, case.criterion, case.result) for case in outcome.cases] == [
        ("test_a", "C1", "passed"),
        ("test_a", "C1", "passed"),
        ("test_gone", "C2", "missing"),
    ]
    assert not run.green
    assert summary(run) == "expected tests did not run: test_gone"


def test_the_text_of_a_failure_is_messages_or_the_end_of_the_output_and_is_capped() -> None:
    assert failure_text(report(failed=["b"], message="assert 1 == 2")) == "suite::b: assert 1 == 2"
    assert failure_text(TestReport(problem=RunProblem.NO_REPORT, output="x" * 90_000 + "END")).endswith("END")
    assert len(failure_text(report(failed=["b"], message="m" * 90_000))) < 7000
