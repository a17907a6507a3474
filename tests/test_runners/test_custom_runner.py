"""`test.custom`: any command that writes JUnit files."""

from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, RunProblem, TestReport
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings, CustomTests, TestSettings
from orchestrator.test_runners.suite_runner import ProjectRunner
from tests.environments.projects import project_runner, write_tree
from tests.sandboxes import best

PATH = "/usr/bin:/bin"
SHELL = """#!/bin/sh
# Runs each t/*.sh: every function test_* of it is a test.
mkdir -p out
for file in t/*.sh; do
  out="out/$(basename $file .sh).xml"
  echo "<testsuites><testsuite file=\\"$PWD/$file\\">" > $out
  for name in $(sed -n 's/^\\(test_[a-z_]*\\)().*/\\1/p' $file); do
    echo "<testcase classname='t' name='shell::$name'>" >> $out
    (. ./$file; $name) || { echo "<failure message='$name said no'/>" >> $out; bad=1; }
    echo "</testcase>" >> $out
  done
  echo "</testsuite></testsuites>" >> $out
done
exit ${bad:-0}
"""
GOOD = "test_adds() { [ $((1 + 2)) = 3 ]; }\ntest_subtracts() { [ $((3 - 2)) = 1 ]; }\n"
BAD = "test_wrong() { [ 1 = 2 ]; }\n"


def runner_in(folder: Path, command: str, *junit: str) -> ProjectRunner:
    tests = TestSettings(timeout_s=20, custom=CustomTests(command=command, junit=junit))
    run = LimitedCommandRunner(CommandSettings(timeout_s=30, memory_mb=512), PATH, sandbox=best(PATH))
    return project_runner(folder, run, tests, path=PATH)


def tree(folder: Path, files: dict[str, str]) -> Path:
    return write_tree(folder / "a story's tree", {"run": SHELL, **files})


async def test_the_tests_of_a_story_are_told_from_older_ones_and_nothing_is_left(tmp_path: Path) -> None:
    root = tree(tmp_path, {"t/good.sh": GOOD, "t/bad.sh": BAD, "out/old.xml": "<testsuite><testcase name='x'/>"})
    runner = runner_in(tmp_path, "sh run", "out/*.xml")
    names = ("test_adds", "test_subtracts")
    report = await runner.run(root, files=["t/good.sh"], expected_names=names, key="k")
    assert report.green, report.output
    assert [(case.id, case.name, case.file) for case in report.cases] == [
        (f"t::shell::{name}", name, "t/good.sh") for name in names
    ]
    assert report.ran_with == ("custom: the settings name test.custom",)
    whole = await runner.run(root, key="k")
    assert (whole.passed, whole.failed, whole.problem) == (2, 1, None)
    failed = [case for case in whole.cases if case.result is CaseResult.FAILED]
    assert failed[0].message == "test_wrong said no"
    again = await runner.run(root, only=failed, key="k")
    assert [case.name for case in again.cases] == ["test_wrong"], "a flaky test is run once more"
    lacking = await runner.run(root, files=["t/good.sh"], expected_names=["test_gone"], key="k")
    assert (lacking.problem, lacking.missing_names) == (RunProblem.MISSING_NAMES, ("test_gone",))
    assert not any(root.glob("out/*")), "reports are removed, also the one from before"


@pytest.mark.parametrize(
    ("command", "problem", "told"),
    [
        ("exit 0", RunProblem.NO_REPORT, "the command wrote none of out.xml"),
        ("exit 3", RunProblem.NO_REPORT, "the command wrote none of out.xml"),
        ("echo '<testsuite/>' > out.xml", RunProblem.NO_TESTS, "no test was run"),
        ("echo '<testsuite><testcase name=\"a\"/></testsuite>' > out.xml; exit 3", RunProblem.NO_REPORT, "broke off"),
        ("echo '<testsuite>' > out.xml", RunProblem.NO_REPORT, "out.xml: the report is not well-formed"),
        ("ln -s /etc/passwd out.xml", RunProblem.NO_REPORT, "out.xml"),
    ],
)
async def test_what_shows_nothing(tmp_path: Path, command: str, problem: RunProblem, told: str) -> None:
    report: TestReport = await runner_in(tmp_path, command, "out.xml").run(tree(tmp_path, {}), key="k")
    assert report.problem is problem, report.output
    assert told in report.output


@pytest.mark.parametrize("path", ["/tmp/x.xml", "../x.xml", "out/../../x.xml"])
def test_reports_lie_in_the_tree(path: str) -> None:
    with pytest.raises(ValueError, match="not below the project's root"):
        CustomTests(command="true", junit=(path,))
