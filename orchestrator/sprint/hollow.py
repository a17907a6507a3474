"""Whether the suite notices the code under test: its tests on the story's tree, with functions that return nothing.

A test that passes there shows nothing about these functions; where the code is new, its tests without the story's
change fail for want of it, whatever they assert. This judges suites and never honesty: a program that fakes results is
emptied with the rest. Not judged is a test that did not run there, or that speaks of what stays: constants, classes
with fields, callbacks, files of other languages.
"""

import asyncio
from pathlib import Path

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.testing import CaseResult, TestReport, TestSuite
from orchestrator.sprint.context import Stage
from orchestrator.sprint.fail_before import Ended, test_names
from orchestrator.sprint.record import recorded_stack
from orchestrator.syntax.hollow import Hollow, hollow, mentions

_LEAST_S = 30.0
"""Even a quick suite may take this long where nothing answers: a test then waits for its own limit."""


async def run_hollow(stage: Stage, plan: Breakdown, suite: TestSuite, seconds: float) -> dict[str, str]:
    """Result of each test of the suite, by name, on the hollow tree, as a durable step.

    `seconds` is how long the suite took on the story's branch.
    """
    stack = recorded_stack(stage.brief.tech_stack, plan)

    async def run(folder: Path) -> TestReport:
        key, limit = f"{stage.environment_key}-hollow", _LEAST_S + 3 * seconds
        return await stage.runner.run(folder, files=suite.run_files, stack=stack, key=key, timeout_s=limit)

    async def work(_step_id: str) -> dict[str, str]:
        entries = await stage.workspace.diff(stage.story_id)
        own = [entry.path for entry in entries if entry.path not in suite.files and not is_test_file(entry.path)]
        made = await asyncio.to_thread(hollow, await stage.workspace.read(stage.story_id, own))
        if not made.texts:
            return dict.fromkeys(test_names(suite), Ended.NOT_JUDGED.value)
        changes = [FileChange(path=path, content=text) for path, text in made.texts.items()]
        report = await stage.workspace.story_tree(stage.story_id, changes, run)
        results = await asyncio.to_thread(results_hollow, suite, report, made)
        return {name: result.value for name, result in results.items()}

    results = await stage.step.step("tests_hollow", work, dict[str, str])
    counts = {result: sum(found == result for found in results.values()) for result in Ended}
    await stage.step.emit(
        "tests_run_hollow",
        "tests with functions that return nothing: "
        + ", ".join(f"{count} {result}" for result, count in counts.items() if count),
        results=results,
    )
    return results


def results_hollow(suite: TestSuite, report: TestReport, made: Hollow) -> dict[str, Ended]:
    """By name of the suite's tests; a pass counts where the test speaks of nothing that stays."""
    texts = {change.path: change.content for change in suite.changes if change.path in suite.run_files}
    spoken = {name: words for path, text in texts.items() for name, words in mentions(path, text).items()}
    found = dict.fromkeys(test_names(suite), Ended.NOT_JUDGED)
    for case in report.cases:
        if case.name not in found:
            continue
        if case.result in {CaseResult.FAILED, CaseResult.ERROR}:
            found[case.name] = Ended.FAILED
        elif case.result is CaseResult.PASSED and case.name in spoken and not spoken[case.name] & made.left:
            found[case.name] = Ended.PASSED if found[case.name] is Ended.NOT_JUDGED else found[case.name]
    return found
