"""The story's suite: written once, committed, frozen."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from orchestrator.checks.suite import check_older, names_of_tests, without_older
from orchestrator.checks.suite_place import is_suite, place_of
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Faulty, OlderTest, SuiteBrief
from orchestrator.core.contract import Surface
from orchestrator.core.delivery import FileChange
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import CaseResult, TestReport, TestSuite
from orchestrator.core.value import Value, counted
from orchestrator.story.commit_message import fitted, unlike
from orchestrator.story.context import Progress, Stage, StoryStopped
from orchestrator.story.project_map import parts_of
from orchestrator.story.project_scan import MAX_SOURCE_CHARS, scan_tests, tell_new_folders


async def write_suite(stage: Stage, progress: Progress, plan: Breakdown, surface: Surface) -> TestSuite:
    """Returns a committed suite, with the plan's changes of older tests. Raises StoryStopped (failed) without one."""
    brief = await _brief(stage, progress, plan, surface)
    written = await stage.tester.suite(brief, partial(_judge, stage, plan, surface, {}))
    suite = written.suite
    if suite is None:
        raise StoryStopped(StoryStatus.FAILED, written.findings)
    suite = await _own_tests(stage, plan, suite, surface, {}, brief.skipped)
    progress.note_findings(written.findings)
    await _commit(stage, progress, suite, "Add tests", _criteria(stage, suite))
    await _tell_older(stage, brief, suite)
    await tell_new_folders(stage, suite.files, surface.files)
    return suite


async def replace_suite(
    stage: Stage, progress: Progress, plan: Breakdown, faulty: Faulty, older: Mapping[str, str]
) -> TestSuite | None:
    """Has the suite written again, and records the reason. Returns None if no other suite came.

    `older` are the texts of the suite's files before the story: a file no longer in the suite gets its text back.
    """
    brief = await _brief(stage, progress, plan, progress.surface)
    brief = brief.model_copy(
        update={
            "faulty": faulty,
            "older": tuple(one.model_copy(update={"text": older.get(one.path, one.text)}) for one in brief.older),
            # Where it went is where it stays, and what was there before the story stays in it.
            "place": faulty.suite.test_file,
            "covered": older.get(faulty.suite.test_file),
        }
    )
    written = await stage.tester.suite(brief, partial(_judge, stage, plan, progress.surface, older))
    suite, before = written.suite, faulty.suite
    if suite is None or suite.changes == before.changes:
        return None
    suite = await _own_tests(stage, plan, suite, progress.surface, older, brief.skipped)
    progress.note_findings(written.findings)
    rest = tuple(change for change in before.changed if change.path not in suite.files)
    suite = suite.model_copy(update={"changed": (*suite.changed, *rest)})
    await put_in_place(stage, progress, suite, before, older, faulty.reason)
    await stage.step.emit(
        "suite_replaced",
        f"{before.test_file} is written again: {faulty.reason}",
        level=Level.WARN,
        file=suite.test_file,
        reason=faulty.reason,
        before=before.test_content,
        after=suite.test_content,
    )
    await _tell_older(stage, brief, suite)
    return suite


async def _own_tests(
    stage: Stage,
    plan: Breakdown,
    suite: TestSuite,
    surface: Surface,
    before: Mapping[str, str],
    skipped: Collection[str],
) -> TestSuite:
    """Returns the suite without the tests that its file held before the story; `before` has what suites changed.

    Of older tests that it rewrites, those that were `skipped` at the base commit need not run.
    """
    path = suite.test_file
    suite = without_skipped(suite, skipped, is_new=path not in surface.files)
    planned = path in {change.file for change in plan.tests_to_change}
    if suite.older_names or planned or path not in surface.files:
        return suite
    texts = before if path in before else await stage.read([path])
    return without_older(suite, texts[path]) if path in texts else suite


def skipped_in(base: TestReport, files: Collection[str]) -> tuple[str, ...]:
    """Returns the tests of these files that were only skipped: they are for another system or version."""
    cases = [case for case in base.cases if case.file in files]
    ran = {case.name for case in cases if case.result is not CaseResult.SKIPPED}
    return tuple(sorted({case.name for case in cases} - ran))


def without_skipped(suite: TestSuite, skipped: Collection[str], *, is_new: bool) -> TestSuite:
    """Returns the suite, of which these older tests need not run; its own, all of a new file, are expected."""
    own = names_of_tests(suite.test_file, suite.test_content) if is_new else ()
    left = {*skipped}.difference(own, (case.name for case in suite.test_cases))
    return suite.model_copy(update={"expected_names": tuple(name for name in suite.expected_names if name not in left)})


async def put_in_place(
    stage: Stage, progress: Progress, suite: TestSuite, of: TestSuite, older: Mapping[str, str], why: str
) -> None:
    """Commits the suite in place of `of`, whose other files get their text in `older` back, or are deleted."""
    left = [path for path in of.files if path not in suite.files]
    again = [FileChange(path=path, content=older[path]) for path in left if path in older]
    removed = [path for path in left if path not in older]
    await _commit(stage, progress, suite, "Rewrite tests", why, again, removed)


def kept(suite: TestSuite, reason: str, *, again: bool = False) -> Finding:
    """Returns the finding on a suite that the tester calls wrong and that was not replaced; `again`: it was before."""
    left = "again, and it is written again only once" if again else "and wrote none that takes its place"
    return minor(
        "test.suite_fault",
        f"the tester calls {suite.test_file} wrong {left}: {reason}",
        where=Where(file=suite.test_file),
        fix="look at the tests: when they are wrong, mend them on the branch, or `reset` the story",
    )


async def _brief(stage: Stage, progress: Progress, plan: Breakdown, now: Surface) -> SuiteBrief:
    own = stage.policies.test.custom is not None
    listed = {one.file: one.reason for one in plan.tests_to_change if is_suite(one.file, any_language=own)}
    listed = {path: reason for path, reason in listed.items() if path in now.files}

    texts = await stage.read([*story_files(plan), *listed])
    about = "\n".join(f"{one.criterion} {one.test}" for one in plan.acceptance_tests)
    about = "\n".join((about, *(task.description for task in plan.tasks)))
    place = await _place(stage, plan, now, listed)
    return SuiteBrief(
        parts=parts_of({path: texts[path] for path in story_files(plan) if path in texts}, about),
        breakdown=plan,
        surface=progress.surface,
        files={path: texts[path] for path in story_files(plan) if path in texts},
        older=tuple(
            OlderTest(path=path, reason=reason, text=texts[path]) for path, reason in listed.items() if path in texts
        ),
        place="" if place.file in listed else place.file,
        covered=None if place.file in listed else place.near.get(place.file),
        near={path: text for path, text in place.near.items() if path != place.file and path not in listed},
        skipped=place.skipped,
    )


class SuitePlace(Value):
    """Where the story's tests go, with the texts of the tests that are near."""

    file: str = ""
    near: dict[str, str] = {}
    skipped: tuple[str, ...] = ()
    """Tests of it, and of those that the story changes, that were skipped at the base commit."""


async def _place(stage: Stage, plan: Breakdown, surface: Surface, listed: Collection[str]) -> SuitePlace:
    """Chooses the test file that covers the story's files, or a name for a new one, as a durable step."""
    sources = story_files(plan)
    exports = {entry.path: entry.names for entry in surface.exports if entry.path in sources}

    async def work(_step_id: str) -> SuitePlace:
        tests = [path for path in scan_tests(surface.files) if path not in sources]
        texts = await stage.workspace.read(stage.story_id, tests)
        known = {path: text for path, text in texts.items() if len(text) <= MAX_SOURCE_CHARS}
        words, told = "\n".join(one.test for one in plan.acceptance_tests), stage.brief.story
        about = "\n".join((told.title, *told.acceptance_criteria))
        found = await asyncio.to_thread(place_of, stage.story_id, sources, surface.files, known, exports, words, about)
        more = await stage.workspace.read(stage.story_id, [path for path in found.near if path not in texts])
        every = {**texts, **more}
        near = {path: every[path] for path in found.near if path in every}
        base = stage.older.base
        skipped = skipped_in(base, {found.file, *listed}) if base is not None else ()
        return SuitePlace(file=found.file, near=near, skipped=skipped)

    return await stage.step.step("suite_place", work, SuitePlace)


async def _commit(
    stage: Stage,
    progress: Progress,
    suite: TestSuite,
    what: str,
    why: str,
    again: Sequence[FileChange] = (),
    removed: Sequence[str] = (),
) -> None:
    """Commits the suite. `again` are older tests with their text before the story."""
    said = unlike(fitted(f"{what}: {stage.brief.story.title or stage.story_id}"), progress.subjects)

    async def commit(step_id: str) -> str:
        note = stage.note(said, step_id, body=why)
        return await stage.workspace.commit(stage.story_id, (*suite.changes, *again), note, removed)

    progress.head = done = await stage.step.step("commit", commit, str)
    progress.subjects.append(said)
    # Older tests that are rewritten with it have an event of their own.
    own = {*names_of_tests(suite.test_file, suite.test_content), *(case.name for case in suite.test_cases)}
    about = f"{suite.test_file} with {counted(len(own.intersection(suite.expected_names)), 'test')}"
    await stage.step.emit("suite_committed", about, commit=done, files=list(suite.files))


def _criteria(stage: Stage, suite: TestSuite) -> str:
    """Returns what the tests say they show, as a list; the story's own words where a number stands for them."""
    numbered = dict(enumerate(stage.brief.story.acceptance_criteria, start=1))
    named = (case.criterion.strip() for case in suite.test_cases)
    words = (numbered.get(int(name), name) if name.isdecimal() else name for name in named if name)
    return "\n".join(f"- {one}" for one in dict.fromkeys(words))


async def _tell_older(stage: Stage, brief: SuiteBrief, suite: TestSuite) -> None:
    after: dict[str, str] = {change.path: change.content for change in suite.changes}
    for one in brief.older:
        if after.get(one.path, one.text) != one.text:
            now, before = (len(names_of_tests(one.path, text)) for text in (after[one.path], one.text))
            tests = f"{counted(now, 'test')} in place of {before}" if now != before else counted(now, "test")
            await stage.step.emit(
                "older_test_rewritten",
                f"the tester rewrote {one.path} ({tests}): {one.reason or 'no reason given'}",
                file=one.path,
                reason=one.reason,
                before=one.text,
                after=after[one.path],
            )


async def _judge(
    stage: Stage, plan: Breakdown, surface: Surface, before: Mapping[str, str], suite: TestSuite
) -> list[Finding]:
    """Judges a suite: only the plan's older tests may change. `before` has texts that the story's suites changed."""
    path = suite.test_file
    if path not in surface.files or path in {change.file for change in plan.tests_to_change}:
        return []

    older = before if path in before else await stage.read([path])
    return check_older(suite, older.get(path))


def story_files(plan: Breakdown) -> list[str]:
    """Returns all files of the tasks, once each, in task order."""
    return list(dict.fromkeys(path for task in plan.tasks for path in task.files_to_create))
