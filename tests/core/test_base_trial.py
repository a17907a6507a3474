"""What a run on the base commit comes to: told in one line, and refused only when nothing can be run."""

import pytest

from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport, trial_of

GONE = "ImportError while importing test module\nE   ModuleNotFoundError: No module named 'nosuch'"


def case(id_: str, result: CaseResult = CaseResult.PASSED, *, file: str = "tests/test_a.py") -> ReportedCase:
    return ReportedCase(name=id_.rpartition("::")[2], id=id_, file=file, result=result, message=GONE)


UNLOADED = case("::tests.test_b", CaseResult.ERROR, file="tests/test_b.py")
OF_NODE = case("test/a.test.mjs::test/a.test.mjs", CaseResult.ERROR, file="test/a.test.mjs")
SET_UP = case("tests.test_a::test_x", CaseResult.ERROR)


@pytest.mark.parametrize(
    ("report", "collected", "usable", "said"),
    [
        (TestReport(cases=(case("t::a"), case("t::b", CaseResult.SKIPPED))), 0, True, "1 passed, 0 failed, 1 skipped"),
        (
            TestReport(cases=(case("t::a"), UNLOADED)),
            0,
            True,
            "1 passed, 1 failed, 0 skipped in 6 s; 1 test file cannot be loaded: `nosuch` cannot be found",
        ),
        (
            TestReport(cases=(case("t::a", CaseResult.SKIPPED),)),
            0,
            False,
            "nothing can be run: no test of 1 passed or failed: all are skipped",
        ),
        (TestReport(cases=(SET_UP,)), 0, True, "0 passed, 1 failed"),
        (TestReport(cases=(UNLOADED,)), 0, False, "nothing can be run: no test file can be loaded"),
        (TestReport(cases=(OF_NODE,)), 0, False, "nothing can be run: no test file can be loaded"),
        (TestReport(problem=RunProblem.TIMEOUT), 715, True, "715 tests collected; it was ended after its limit"),
        (TestReport(problem=RunProblem.NO_REPORT), 0, False, "the runner ended without a whole report"),
        (
            TestReport(problem=RunProblem.INTERNAL_ERROR, cases=(case("t::a"),)),
            0,
            False,
            "not all of it can be run: pytest ended by an INTERNALERROR",
        ),
        (TestReport(problem=RunProblem.TIMEOUT), 0, False, "it was ended after its limit"),
        (TestReport(problem=RunProblem.INSTALL_FAILED), 0, False, "the dependencies could not be installed"),
        (TestReport(problem=RunProblem.NO_TESTS), 0, True, "no tests, its dependencies are there"),
    ],
)
def test_a_base_is_usable_when_anything_of_it_can_be_run(
    report: TestReport, collected: int, usable: bool, said: str
) -> None:
    trial = trial_of(report, collected=collected, seconds=6.2)
    assert (trial.usable, said in trial.told) == (usable, True), trial.told
    assert usable or trial.todo


def test_a_refusal_holds_the_real_error_and_what_to_do() -> None:
    refusal = trial_of(TestReport(cases=(UNLOADED,)), collected=0, seconds=1).refusal
    assert "  E   ModuleNotFoundError: No module named 'nosuch'\n" in refusal
    assert "To do: name what provides `nosuch` in the project's manifests" in refusal
    assert "environment.base: warn" in refusal


def test_a_refusal_tells_what_is_left_out() -> None:
    """As of tomlkit, whose tests read a submodule: the error names its path alone."""
    left = "submodules are not fetched: tests/toml-test"
    report = TestReport(cases=(UNLOADED,), output=f"[{left}]\n1 error\n[100%]\n")
    refusal = trial_of(report, collected=0, seconds=1).refusal
    assert f"  [{left}]\n" in refusal
    assert "100%" not in refusal
