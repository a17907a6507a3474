"""Never a false done, never a false no: what decides whether a story is merged, and what is paid until then."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Analysed, Prompt, Reply
from orchestrator.core.calls.spending import Amount
from orchestrator.core.command import Choice, Gate, GateAnswer
from orchestrator.core.event import Level
from orchestrator.core.finding import closing_notes, major, minor
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.suite import (
    CaseResult,
    CommandResult,
    FailureInstruction,
    ReportedCase,
    RunProblem,
    TestReport,
    TestSuite,
)
from orchestrator.providers.scripted import ScriptedProvider
from orchestrator.reports.report import stage_times
from orchestrator.settings import BudgetSettings
from orchestrator.sprint.budgets import Budgets
from orchestrator.story.fail_before import hollow, results_hollow
from orchestrator.story.suite_loop import fails_alike, orders
from orchestrator.story.suite_runs import DEPENDS, flaky_findings
from tests.simulated import report
from tests.sprint.test_budgets import paid
from tests.sprint.test_supervisor import Play
from tests.story.test_story import A, Stand, codes, good, provider, statuses
from tests.support import breakdown, delivery, reviewed, suite, suite_text, task
from tests.test_runners.test_custom_runner import runner_in, tree
from tests.world.case import Case, table

BAD_COMMAND = CommandResult(argv=("sh",), exit_code=2, output="no such thing")
FIRST = {"first.py": "ONE = 1\n"}
BROKEN = {"us_1.py": "def value(:\n"}


@table(
    Case(
        name="files that never compile",
        given=(task(A, 2, ["us_1.py"]), [BROKEN] * 3, []),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="half of a delivery was kept, then suite, runs and analyses were paid for a story that could not merge",
    ),
    Case(
        name="a file that never comes",
        given=(task(A, 2, ["us_1.py", "more.py"]), [good()] * 3, []),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="us_1.py alone was committed as partial work",
    ),
    Case(
        name="a command that fails each time",
        given=(task(A, 2, ["us_1.py"], "check it"), [good()] * 3, [BAD_COMMAND] * 3),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="limits of a task's command",
    ),
    Case(
        name="a task of a command alone",
        given=(task(A, 2, [], "make it"), [], [BAD_COMMAND]),
        right=["delivery 1"],
        seen="a plan whose last task runs a generator that is not installed",
    ),
    Case(
        name="nothing that can be read",
        given=(task(A, 2, ["us_1.py"]), ["I cannot say."] * 3, []),
        right=["delivery 1", "delivery 1", "repair 1", "delivery 2", "delivery 3"],
        seen="small models",
    ),
)
async def test_a_task_that_is_not_accepted_ends_its_story_before_more_is_paid(case: Case, tmp_path: Path) -> None:
    second, answers, commands = case.given
    stand = Stand(tmp_path, commands=commands)
    waits = task(A, 3, ["later.py"], dependencies=[second["task_id"]])
    stand.team.plan(A, task(A, 1, [*FIRST]), second, waits, task(A, 4, ["free.py"], dependencies=[]))
    stand.team.deliver(A, 1, FIRST)
    for answer in answers:
        text = answer if isinstance(answer, str) else delivery(A, 2, answer)
        stand.team.say("alex", A, "delivery", text, task=2)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert stand.asked == ["breakdown 1", *case.right]
    assert list(statuses(outcome).values()) == ["done", "failed", "pending", "pending"]
    assert (outcome.attempts, stand.runner.ran) == (0, [])
    assert "story.unfinished" in codes(outcome)
    assert await stand.workspace.files(A) == ("first.py",), "what was accepted stays, and nothing of the rest"


NO = reviewed("No", "[us_1.py:2] It returns nothing useful")
PIPELINE = ".github/workflows/test.yml"
JOBS = "on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n"


@table(
    Case(name="nothing else stops it", given=("Yes", []), right=[Choice.CANCEL], seen="a plan that adds a pipeline"),
    Case(name="a task is not approved", given=("No", []), right=[], seen="approved by a person, and not merged anyway"),
    Case(
        name="the tests are red",
        given=("Yes", [report(failed=["test_us_1"])]),
        right=[],
        seen="a question about a story that could not be merged",
    ),
)
async def test_a_person_is_asked_only_about_a_story_that_nothing_else_stops(case: Case, tmp_path: Path) -> None:
    ready, runs = case.given
    stand, answered = Stand(tmp_path, stories=runs), list[Choice]()

    def answers(gate: Gate) -> GateAnswer:
        answered.append(Choice.CANCEL)
        return GateAnswer(number=gate.number, choice=Choice.CANCEL, by="ada")

    stand.person = answers
    stand.team.plan(A, ["us_1.py", PIPELINE])
    stand.team.deliver(A, 1, {**good(), PIPELINE: JOBS})
    stand.team.review(A, 1, NO if ready == "No" else reviewed("Yes"))
    stand.team.suite(A, suite_text(A))
    policies: dict[str, Any] = {"review": {"enabled": True, "max_iterations": 1}, "test": {"max_attempts": 1}}
    policies |= {"gate": {"mode": "escalations"}, "pushed": True}
    outcome = await stand.run(await provider(stand.team, tmp_path), **policies)
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert answered == case.right, outcome.findings


def asked_again(tasks: Sequence[Sequence[str]], said: Sequence[str], output: str = "") -> list[tuple[str, list[str]]]:
    """Tasks that a red run sends back to the developer, each with the files that it is asked about."""
    plan = Breakdown.model_validate(breakdown(A, *(task(A, n, files) for n, files in enumerate(tasks, start=1))))
    told = Analysed(instructions=tuple(FailureInstruction(file=path, issue="wrong", fix="right") for path in said))
    red = report(failed=["test_us_1"], message=output)
    owned = {one.task_id: one.files_to_create for one in plan.tasks}
    found = orders(plan, owned, told, red)
    return [(one.task.task_id[-2:], [i.file for i in one.instructions] or [*one.task.files_to_create]) for one in found]


@table(
    Case(
        name="an instruction for a file of two tasks",
        given=([["a.py"], ["a.py", "b.py"]], ["a.py"], ""),
        right=[("02", ["a.py"])],
        seen="two paid deliveries of the same file per red run, the second over the first",
    ),
    Case(
        name="each its own",
        given=([["a.py", "shared.py"], ["b.py", "shared.py"]], ["a.py", "shared.py", "b.py"], ""),
        right=[("01", ["a.py"]), ("02", ["shared.py", "b.py"])],
        seen="an index file that every task adds to",
    ),
    Case(
        name="two instructions for one file",
        given=([["a.py"], ["a.py"], ["b.py"]], ["a.py", "a.py"], ""),
        right=[("02", ["a.py", "a.py"])],
        seen="one function each",
    ),
    Case(
        name="without an analysis, by the output",
        given=([["a.py"], ["a.py"], ["b.py"]], [], "a.py: assert 1 == 2"),
        right=[("02", ["a.py"])],
        seen="an analysis that could not be read",
    ),
    Case(
        name="without an analysis, all",
        given=([["a.py", "c.py"], ["a.py"], []], [], "assert 1 == 2"),
        right=[("01", ["c.py"]), ("02", ["a.py"])],
        seen="an analysis that could not be read",
    ),
)
def test_a_file_of_two_tasks_is_delivered_once_for_a_red_run(case: Case) -> None:
    assert asked_again(*case.given) == case.right


OLD, OWN = "tests/test_old.py", "tests/test_us_1.py"


def run_of(passed: str, failed: str = "") -> TestReport:
    """A report of tests, named as words; `test_old` and the like are older ones."""
    ended = [*((name, CaseResult.PASSED) for name in passed.split())]
    ended += [(name, CaseResult.FAILED) for name in failed.split()]
    where = {name: OLD if "old" in name else OWN for name, _ in ended}
    cases = (ReportedCase(name=name, id=f"{where[name]}::{name}", file=where[name], result=how) for name, how in ended)
    return TestReport(cases=tuple(cases), exit_code=1 if failed else 0)


GREEN, RED, ALONE = run_of("test_us_1"), run_of("", "test_us_1"), run_of("test_us_1")
BASE = run_of("test_old")
WHOLE, LEAKS = run_of("test_us_1 test_old"), run_of("test_old", "test_us_1")
BREAKS = run_of("test_us_1", "test_old")


@table(
    Case(
        name="a new test passes alone and never with the others",
        given=([], [LEAKS, BASE, LEAKS, ALONE, LEAKS, LEAKS, ALONE]),
        right=("needs_attention", "test.failed", True),
        seen="a merge that ended done with 2 failed of 876, every time it was run",
    ),
    Case(
        name="a new test depends on its neighbours in its own file",
        given=([RED, RED, ALONE], []),
        right=("needs_attention", "test.failed", True),
        seen="a registry that the test before filled",
    ),
    Case(
        name="an older test passes alone and never beside the new ones",
        given=([], [BREAKS, BASE, BREAKS, BASE, BREAKS, BREAKS, BASE]),
        right=("needs_attention", "test.regression", True),
        seen="a new test that leaves a module patched",
    ),
    Case(
        name="a new test passes in the whole run repeated",
        given=([], [LEAKS, BASE, WHOLE]),
        right=("done", "test.flaky", False),
        seen="a test that waits for a port",
    ),
    Case(
        name="a new test passes in its own run repeated",
        given=([RED, GREEN], []),
        right=("done", "test.flaky", False),
        seen="a test that waits for a port",
    ),
)
async def test_flaky_is_what_passes_in_the_same_run_repeated(case: Case, tmp_path: Path) -> None:
    stories, wholes = case.given
    status, code, depends = case.right
    stand = Stand(tmp_path, base={OLD: "..."}, stories=stories, **({"wholes": wholes} if wholes else {}))
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    stand.team.analyse(A, ("us_1.py", "leave nothing behind"))
    outcome = await stand.run(await provider(stand.team, tmp_path), test={"max_attempts": 1})
    assert outcome.status == status, outcome.findings
    assert code in codes(outcome)
    events = [one for one in stand.sink.events if one.name in {"tests_finished", "older_tests_failed"}]
    assert any(DEPENDS in str(one.data["failing"]) for one in events) == depends
    assert {one.level for one in events if one.data["flaky"]} <= {Level.WARN}


async def test_the_tester_is_told_that_its_test_depends_on_others(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[RED, RED, ALONE])
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    fault = {"reason": "it reads what the others left"}
    stand.team.say("jordan", A, "analysis", {"failure_analysis": [], "suite_fault": fault})
    stand.team.suite(A, f"{suite_text(A)}    assert value()\n")
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    (analysis,) = [one.text for one in stand.step.prompts if one.key.purpose == "analysis"]
    assert "depends on the order of the tests or on the state that others leave" in " ".join(analysis.split())


CRITERIA = ("value() returns 1", "value is an int", "value takes no argument")


def suite_for(*criteria: str, more: str = "") -> dict[str, Any]:
    """A suite of one test for each of these, which may be the same criterion."""
    names = [f"test_{number}" for number, _ in enumerate(criteria)]
    text = "from us_1 import value\n\n\n" + "\n\n".join(f"def {name}():\n    assert value()\n" for name in names)
    cases = [{"name": name, "criterion": criterion} for name, criterion in zip(names, criteria, strict=True)]
    return {**suite(A, text + more), "test_cases": cases}


@table(
    Case(
        name="three tests for the first of three",
        given=(CRITERIA, [(CRITERIA[0],) * 3, (CRITERIA[0],) * 3]),
        right=(2, f"2 of 3 criteria have no test: '{CRITERIA[1]}', '{CRITERIA[2]}'"),
        seen="a story done with two criteria that no test names",
    ),
    Case(
        name="the second suite has them",
        given=(CRITERIA, [(CRITERIA[0],) * 3, CRITERIA]),
        right=(2, ""),
        seen="asked for once",
    ),
    Case(
        name="named by their numbers",
        given=(CRITERIA, [("1", "AC 2", "criterion 3")]),
        right=(1, ""),
        seen="testers that number criteria",
    ),
    Case(
        name="none is named",
        given=(CRITERIA[:2], [("it works", "it works too")] * 2),
        right=(2, f"2 of 2 criteria have no test: '{CRITERIA[0]}', '{CRITERIA[1]}'"),
        seen="labels in the tester's own words",
    ),
    Case(name="one criterion, and no label", given=(CRITERIA[:1], [("",)]), right=(1, ""), seen="small models"),
    Case(name="a story without criteria", given=((), [("it works",)]), right=(1, ""), seen="backlogs of titles"),
)
async def test_a_criterion_without_a_test_is_asked_for_once_and_then_told(case: Case, tmp_path: Path) -> None:
    criteria, suites = case.given
    asked, told = case.right
    stand = Stand(tmp_path, befores=[run_of("", "test_0 test_1 test_2")] * 2)
    stand.criteria = criteria
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    for version, labels in enumerate(suites):
        stand.team.say("jordan", A, "suite", suite_for(*labels, more=f"\n\nVERSION = {version}\n"))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert [one for one in stand.asked if one.startswith("suite")] == [f"suite {n + 1}" for n in range(asked)]
    assert closing_notes(outcome.findings) == ([told] if told else [])
    assert ("no test case names this criterion" in stand.step.prompts[-1].text) == (asked > 1)


JUNIT = "<testsuites><testsuite>{}</testsuite></testsuites>"


@table(
    Case(
        name="Go: the story's test is defined in its file",
        given=("us_1_test.go", "func TestTotal(t *testing.T) {}", ["TestTotal", "TestTotal/zero", "TestOld"], ""),
        right=(None, ["TestTotal", "TestTotal/zero"]),
        seen="go-junit-report, which names no file",
    ),
    Case(
        name="Go: only the others were built",
        given=("us_1_test.go", "func TestTotal(t *testing.T) {}", ["TestOld", "TestTotals"], ""),
        right=(RunProblem.NO_TESTS, []),
        seen="a build tag that left the story's file out, green by everybody else's tests",
    ),
    Case(
        name="Rust: a file that no module names",
        given=("tests/us_1.rs", "#[test]\nfn totals() { adds(); }", ["cart::adds"], ""),
        right=(RunProblem.NO_TESTS, []),
        seen="a suite that was never compiled in was green",
    ),
    Case(
        name="Rust: it is compiled in",
        given=("tests/us_1.rs", "#[test]\nfn totals() { adds(); }", ["cart::adds", "us_1::totals"], ""),
        right=(None, ["totals"]),
        seen="cargo nextest",
    ),
    Case(
        name="the report names another file",
        given=("spec/us_1_spec.rb", 'it "adds" do', ["adds"], "spec/old_spec.rb"),
        right=(RunProblem.NO_TESTS, []),
        seen="rspec_junit_formatter",
    ),
    Case(
        name="the report names the file",
        given=("spec/us_1_spec.rb", 'it "adds" do', ["Cart adds"], "./spec/us_1_spec.rb"),
        right=(None, ["Cart adds"]),
        seen="rspec_junit_formatter",
    ),
    Case(
        name="Java: a method of the class",
        given=("src/test/java/CartTest.java", "@Test void adds() {}", ["adds()", "old()"], ""),
        right=(None, ["adds()"]),
        seen="Gradle's reports",
    ),
    Case(
        name="C++: a test of a suite",
        given=("us_1_test.cc", "TEST(Cart, Adds) {}", ["Adds", "Old"], ""),
        right=(None, ["Adds"]),
        seen="googletest's reports",
    ),
)
async def test_a_report_of_any_command_judges_a_story_only_by_its_own_tests(case: Case, tmp_path: Path) -> None:
    path, text, names, file = case.given
    problem, shown = case.right
    cases = "".join(f"<testcase classname='x' name='{name}' file='{file}'/>" for name in names)
    runner = runner_in(tmp_path, f'echo "{JUNIT.format(cases)}" > out.xml', "out.xml")
    found = await runner.run(tree(tmp_path, {path: text}), files=[path], key="k")
    assert (found.problem, [one.name for one in found.cases]) == (problem, shown), found.output
    assert found.green == (problem is None)


FLAKY = flaky_findings(["tests.test_us_1::test_a"])[0]
UNCOVERED = minor("test.uncovered", "2 of 3 criteria have no test: 'b', 'c'")


@table(
    Case(name="green", given=("done", []), right=(Level.INFO, "A is done"), seen="most stories"),
    Case(
        name="flaky",
        given=("done", [FLAKY]),
        right=(Level.WARN, f"A is done; {FLAKY.message}"),
        seen="a flaky test stood in the report alone",
    ),
    Case(
        name="both",
        given=("done", [UNCOVERED, FLAKY]),
        right=(Level.WARN, f"A is done; {UNCOVERED.message}; {FLAKY.message}"),
        seen="a story with two criteria that no test names",
    ),
    Case(
        name="not done",
        given=("needs_attention", [UNCOVERED, major("test.failed", "after 3 attempts: 1 failed")]),
        right=(Level.ERROR, f"A is needs_attention: after 3 attempts: 1 failed; {UNCOVERED.message}"),
        seen="a red story",
    ),
)
async def test_the_closing_line_says_what_green_does_not_show(case: Case) -> None:
    status, findings = case.given
    sprint = Play({"A": ()}, {"A": StoryOutcome(id="A", status=StoryStatus(status), findings=tuple(findings))})
    await sprint.run()
    (line,) = [event for event in sprint.sink.events if event.name == "story_finished"]
    assert (line.level, line.message) == case.right


NO_NUMPY = "E   ModuleNotFoundError: No module named 'numpy'"
NO_PANDAS = "E   ModuleNotFoundError: No module named 'pandas'"
OLDER = ("test_old", "test_older")


@table(
    Case(
        name="the same module is missing",
        given=(report(failed=["test_us_1"], message=NO_NUMPY), report(failed=OLDER, message=NO_NUMPY)),
        right=True,
        seen="base: warn, and an analysis was bought in each story of the sprint",
    ),
    Case(
        name="a build that failed at the base",
        given=(TestReport(problem=RunProblem.BUILD_FAILED), TestReport(problem=RunProblem.BUILD_FAILED)),
        right=True,
        seen="environment.build of a project without its submodules",
    ),
    Case(
        name="another module is missing",
        given=(report(failed=["test_us_1"], message=NO_PANDAS), report(failed=OLDER, message=NO_NUMPY)),
        right=False,
        seen="the story's own fault",
    ),
    Case(
        name="something passed at the base",
        given=(
            report(failed=["test_us_1"], message=NO_NUMPY),
            report(passed=["test_c"], failed=OLDER, message=NO_NUMPY),
        ),
        right=False,
        seen="an optional extra",
    ),
    Case(
        name="something passes now",
        given=(
            report(passed=["test_b"], failed=["test_us_1"], message=NO_NUMPY),
            report(failed=OLDER, message=NO_NUMPY),
        ),
        right=False,
        seen="a story that mends the base",
    ),
    Case(
        name="nothing says why",
        given=(report(failed=["test_us_1"], message="no"), report(failed=OLDER, message="no")),
        right=False,
        seen="tests of a shell",
    ),
    Case(
        name="the base has no tests",
        given=(report(failed=["test_us_1"], message=NO_NUMPY), TestReport(problem=RunProblem.NO_TESTS)),
        right=False,
        seen="new projects",
    ),
    Case(
        name="too slow at the base",
        given=(TestReport(problem=RunProblem.TIMEOUT), TestReport(problem=RunProblem.TIMEOUT)),
        right=False,
        seen="a suite of an hour, and a story that loops",
    ),
)
def test_a_story_fails_as_its_base_does_only_for_the_same_reason(case: Case) -> None:
    assert fails_alike(*case.given) is case.right


async def test_no_analysis_is_bought_where_the_story_fails_as_the_base_does(tmp_path: Path) -> None:
    stand = Stand(tmp_path, stories=[report(failed=["test_us_1"], message=NO_NUMPY)] * 3)
    stand.at_base = report(failed=OLDER, message=NO_NUMPY)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert "environment.base" in codes(outcome), outcome.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]


async def test_the_developer_is_asked_about_a_merge_only_where_there_is_another_side(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base={OLD: "..."}, wholes=[run_of("test_us_1"), BASE])
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION, outcome.findings
    assert "merge.vanished_tests" in codes(outcome)
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"]


async def test_runs_on_other_trees_and_of_all_tests_have_a_duration(tmp_path: Path) -> None:
    took = {"duration_s": 2.0}
    hollow_run = run_of("", "test_us_1").model_copy(update=took)
    stand = Stand(tmp_path, base={OLD: "..."}, hollows=[hollow_run], wholes=[WHOLE.model_copy(update=took), BASE])
    stand.criteria = ("it works",)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    assert (await stand.run(await provider(stand.team, tmp_path))).status is StoryStatus.DONE
    (tests,) = [one.duration_s for one in stage_times(stand.sink.events, 10) if one.stage == "running tests"]
    assert tests == 4.0


@table(
    Case(
        name="larger than the budget",
        given=([900] * 3, 9000),
        right=("", "too small for the next call: it takes about 9000 tokens"),
        seen="one breakdown of 40,000 tokens paused a sprint whose other calls fitted",
    ),
    Case(name="larger than what is left", given=([900] * 8, 1000), right=("", ""), seen="the last call of a budget"),
    Case(name="used up", given=([1000] * 8, 100), right=("is used up", "is used up"), seen="the end of a budget"),
    Case(name="before the first call", given=([], 9000), right=("", "too small"), seen="a map of a large project"),
)
def test_a_prompt_larger_than_a_budget_stops_its_story_and_not_the_sprint(case: Case) -> None:
    took, need = case.given
    budgets = Budgets(BudgetSettings(tokens_per_sprint=8000))
    budgets.of_sprint("S")
    for number, tokens in enumerate(took):
        budgets.add(paid(number, input_tokens=tokens, output_tokens=0))
    told = (budgets.over("S"), budgets.over("S", Amount(1, need)))
    for said, right in zip(told, case.right, strict=True):
        assert right in said
        assert bool(said) == bool(right)


NEWER = {
    "shop.py": "def total[T](items: list[T]) -> T:\n    return sum(items)\n",
    "cart.py": 'def size(items):\n    return f"{items["a"]}" + str(len(items))\n',
    "stack.py": "class Stack[T]:\n    def push(self, one: T) -> T:\n        return one\n",
}


@table(
    *(
        Case(name=path, given=path, right=text, seen="projects of Python 3.12 and newer, told by 3.11")
        for path, text in NEWER.items()
    )
)
def test_a_file_in_newer_syntax_is_not_hollowed_at_wrong_places(case: Case) -> None:
    made = hollow({case.given: case.right, "old.py": "def older():\n    return 1\n"})
    readable = sys.version_info >= (3, 12)
    assert (case.given in made.texts) == readable
    assert "old.py" in made.texts
    suite_of = TestSuite(
        test_file=OWN,
        test_content="import shop\nfrom cart import size\nfrom stack import Stack\nimport old\n\n"
        "def test_a():\n    shop.total([1]), size({}), Stack().push(1)\n\n\ndef test_b():\n    old.older()\n",
        expected_names=("test_a", "test_b"),
    )
    results = results_hollow(suite_of, run_of("test_a test_b"), made)
    assert results == {"test_a": "passed" if readable else "not judged", "test_b": "passed"}


class SlowFirst:
    """A provider that answers the first reviewer last."""

    def __init__(self, replies: ScriptedProvider) -> None:
        self._replies = replies
        self.under_way, self.most = 0, 0

    @property
    def name(self) -> str:
        return self._replies.name

    async def complete(self, prompt: Prompt) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.05 if prompt.key.persona == "reviewer" else 0.01)
        self.under_way -= 1
        return await self._replies.complete(prompt)


async def test_two_reviewers_read_at_the_same_time_and_are_told_in_order(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    for text in ("no words", reviewed("Yes")):
        stand.team.review(A, 1, text)
        stand.team.review(A, 1, text, by="security")
    stand.team.suite(A, suite_text(A))
    slow = SlowFirst(await provider(stand.team, tmp_path))
    review = {"enabled": True, "reviewers": ["reviewer", "security"]}
    assert (await stand.run(slow, review=review)).status is StoryStatus.DONE
    assert slow.most == 2
    asked = [one.key.persona for one in stand.step.prompts if one.key.purpose == "review"]
    assert asked == ["reviewer", "security", "reviewer", "security"]
