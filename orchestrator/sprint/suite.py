"""The story's suite: written once, committed, frozen (spec 1 C6)."""

from collections.abc import Sequence
from functools import partial

from orchestrator.checks.suite_older import check_older
from orchestrator.checks.suite_project import SETTINGS_FILES
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.findings import Finding
from orchestrator.domain.stages import SuiteBrief
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import TestSuite
from orchestrator.domain.words import counted
from orchestrator.sprint.context import Progress, Stage, StoryStopped


async def write_suite(stage: Stage, progress: Progress, plan: Breakdown, surface: Surface) -> TestSuite:
    """A committed suite. Raises StoryStopped (failed) when no valid one came."""

    async def read(_step_id: str) -> dict[str, str]:
        return await stage.workspace.read(stage.story_id, [*story_files(plan), *SETTINGS_FILES])

    texts = await stage.step.step("read", read, dict[str, str])
    files = {path: texts[path] for path in story_files(plan) if path in texts}
    settings = {path: texts[path] for path in SETTINGS_FILES if path in texts}
    brief = SuiteBrief(breakdown=plan, surface=surface, files=files, settings=settings)
    written = await stage.tester.suite(brief, partial(_judge, stage, plan, surface))
    suite = written.suite
    if suite is None:
        raise StoryStopped(StoryStatus.FAILED, written.findings)
    progress.note_findings(written.findings)
    await _commit(stage, suite)
    return suite


async def _commit(stage: Stage, suite: TestSuite, removed: Sequence[str] = ()) -> None:
    async def commit(step_id: str) -> str:
        change = FileChange(path=suite.test_file, content=suite.test_content)
        note = stage.note(f"{stage.story_id}: tests", step_id)
        return await stage.workspace.commit(stage.story_id, [change], note, removed)

    done = await stage.step.step("commit", commit, str)
    about = f"{suite.test_file} with {counted(len(suite.expected_names), 'test')}"
    await stage.step.emit("suite_committed", about, commit=done, files=[suite.test_file])


async def _judge(stage: Stage, plan: Breakdown, surface: Surface, suite: TestSuite) -> list[Finding]:
    """Older tests change only where the plan says so."""
    path = suite.test_file
    if path not in surface.files or path in {change.file for change in plan.tests_to_change}:
        return []

    async def read(_step_id: str) -> dict[str, str]:
        return await stage.workspace.read(stage.story_id, [path])

    older = await stage.step.step("read", read, dict[str, str])
    return check_older(suite, older.get(path))


def story_files(plan: Breakdown) -> list[str]:
    """All files of the tasks, once each, in task order."""
    return list(dict.fromkeys(path for task in plan.tasks for path in task.files_to_create))
