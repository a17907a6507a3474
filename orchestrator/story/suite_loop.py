"""Runs the frozen suite, analyses a red run, and requests the affected tasks again, within the budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from orchestrator.checks.environment import avoidable, broken_base, environment_cause, only_environment
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.calls.exchange import Analysed, FailureBrief, Faulty, PastAttempt
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.errors import ProviderError
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import is_test_file
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import NO_RUNNER, FailureInstruction, RunProblem, TestReport, TestSuite
from orchestrator.core.value import counted, listed
from orchestrator.story.context import (
    Progress,
    Stage,
    StoryStopped,
    Trial,
    cause_of,
    failure_text,
    raised_in,
    summary,
)
from orchestrator.story.fail_before import (
    Ended,
    Unnoticed,
    only_is_there,
    only_stays,
    reason_to_ask,
    run_before,
    run_hollow,
    tell_not_stronger,
    unnoticed,
    unnoticed_findings,
)
from orchestrator.story.older_tests import NOT_SET_UP
from orchestrator.story.project_map import parts_of
from orchestrator.story.regression import Regression
from orchestrator.story.suite import kept, put_in_place, replace_suite, story_files
from orchestrator.story.suite_runs import flaky_findings, run_suite, tell_run
from orchestrator.story.task import Order, TaskRun

Owned = Mapping[str, Sequence[str]]
"""Task id → the files it may change by the contract."""

SAME_FAILURES = 2
"""How often a failure may recur in a story: after the first time another way is tried, the second ends it (C7)."""


def orders(plan: Breakdown, owned: Owned, analysed: Analysed, report: TestReport) -> list[Order]:
    """Returns the tasks to request again, each with the instructions for its own files.

    A file of several tasks belongs to the last of them, which knows most: no file is requested twice for one red run.
    Without a usable instruction returns the tasks whose files occur in the output, else all with files; they get the
    output itself.
    """
    tasks = [with_files(task, owned) for task in plan.tasks]
    last = {path: task.task_id for task in tasks for path in task.files_to_create}
    tasks = [
        task.model_copy(
            update={"files_to_create": tuple(path for path in task.files_to_create if last[path] == task.task_id)}
        )
        for task in tasks
    ]
    result, said = [], beside(owned, analysed)
    for task in tasks:
        mine = tuple(i for i in analysed.instructions if i.file in task.files_to_create)
        if mine:
            result.append(Order(task=task, instructions=mine, analysed=said))
    if result:
        return result
    output = f"The tests failed:\n{failure_text(report)}"
    able = [task for task in tasks if task.files_to_create]
    named = [task for task in able if any(path in output for path in task.files_to_create)]
    return [Order(task=task, failure_output=output, analysed=said) for task in named or able]


def beside(owned: Owned, analysed: Analysed) -> str:
    """Returns what the tester says of a failure beside the instructions for files of tasks."""
    lines = [f"of the environment: {analysed.environment}"] if analysed.environment else []
    lines += [f"of the tests: {analysed.suite_fault}"] if analysed.suite_fault else []
    lines += [f"of {one.file}, which stays as it is: {one.reason}" for one in analysed.tests_to_change]
    lines += [
        f"of {i.file}, which is no file of your task: {i.issue} {i.fix}" for i in outside(owned, analysed.instructions)
    ]
    return "\n".join(f"- The tester says {' '.join(line.split())}" for line in lines)


def with_files(task: Task, owned: Owned) -> Task:
    """Returns the task including files from amendments."""
    given = [path for path in owned.get(task.task_id, ()) if path not in task.files_to_create]
    return task.model_copy(update={"files_to_create": (*task.files_to_create, *given)}) if given else task


def outside(owned: Owned, instructions: Sequence[FailureInstruction]) -> list[FailureInstruction]:
    """Returns the instructions for files outside all tasks."""
    files = {path for paths in owned.values() for path in paths}
    return [instruction for instruction in instructions if instruction.file not in files]


def unassigned(owned: Owned, instructions: Sequence[FailureInstruction]) -> list[Finding]:
    """Returns findings on instructions for files outside all tasks."""
    return [
        minor(
            "analysis.outside_tasks",
            f"an instruction for {i.file} belongs to no task: {i.issue} ({i.fix})",
            where=Where(file=i.file),
            fix="look whether the plan lacks this file; no task may change it",
        )
        for i in outside(owned, instructions)
    ]


def nearest_task(plan: Breakdown, path: str) -> Task:
    """Returns the task with the file that shares most leading folders; of several the last, which knows most."""
    able = [task for task in plan.tasks if task.files_to_create] or list(plan.tasks)
    near = [max((_alike(path, other) for other in task.files_to_create), default=0) for task in able]
    return next(task for task, count in reversed([*zip(able, near, strict=True)]) if count == max(near))


def _alike(one: str, two: str) -> int:
    """Returns the number of leading folders that two paths share."""
    folders = zip(one.split("/")[:-1], two.split("/")[:-1], strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], folders)])


def about(owned: Owned, task: Task, history: Sequence[PastAttempt]) -> tuple[PastAttempt, ...]:
    """Returns the attempts that concerned a task, each with the instructions for its files only."""
    files = {*owned.get(task.task_id, ()), *task.files_to_create}
    mine = (past.model_copy(update={"instructions": _of(files, past.instructions)}) for past in history)
    return tuple(past for past in mine if past.instructions)


def _of(files: set[str], instructions: Sequence[FailureInstruction]) -> tuple[FailureInstruction, ...]:
    return tuple(instruction for instruction in instructions if instruction.file in files)


async def run_trial(stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, tasks: TaskRun) -> Trial:
    """Runs the suite, and the older tests once it is green; while either is red and attempts remain, repairs."""
    return await _Attempts(stage, progress, plan, suite, tasks).run()


class _Attempts:
    """One story's attempts and the failures seen in them."""

    def __init__(self, stage: Stage, progress: Progress, plan: Breakdown, suite: TestSuite, tasks: TaskRun) -> None:
        self._stage, self._progress, self._plan, self._tasks = stage, progress, plan, tasks
        self._suite = suite
        self._attempt = self._repeats = 0
        self._only_environment = False
        """Whether the last analysis found nothing to change but the environment."""
        self._history: list[PastAttempt] = []
        self._seen: list[tuple[object, ...]] = []
        """What failed in each run so far, see `_failed`."""
        self._came_back = ""
        self._before: dict[str, str] = {}
        self._hollow: dict[str, str] = {}
        self._lacking: set[str] = set()

    @property
    def _owned(self) -> Owned:
        return self._tasks.contract.task_files

    @property
    def _regression(self) -> Regression:
        return Regression(self._stage, self._progress, self._plan, self._suite)

    async def _run_suite(self) -> TestReport:
        return await run_suite(self._stage, self._plan, self._suite)

    def _left(self, report: TestReport) -> int:
        """Returns the number of runs allowed after this one."""
        most = self._attempt if report.problem in NO_RUNNER else self._stage.policies.test.max_attempts
        return most - self._attempt

    async def run(self) -> Trial:
        testing = self._stage.policies.loop(Loop.TEST, lambda trial: trial is None)
        trial: Trial = await testing(self._next)
        return trial

    async def _next(self) -> Trial | None:
        """Runs once and handles the result; returns None if the story was repaired for another run."""
        self._attempt += 1
        report = await self._run_suite()
        if report.green and not self._before:
            report = await self._noticed(report)
        self._progress.note_findings(flaky_findings(report.flaky))
        broken = None
        if report.green:
            await tell_run(self._stage, report, Verdict.GREEN, self._attempt, self._left(report))
            broken = await self._regression.before_merge()
        # Kept for the outcome in case the story ends before the next run.
        self._progress.trial = trial = Trial(
            suite=self._suite,
            report=report,
            broken=broken,
            attempts=self._attempt,
            plan=self._plan,
            before=self._before,
            hollow=self._hollow,
        )
        red = trial.red
        if red is None:
            return trial
        came_back = self._note(red)
        lacks, in_vain = self._environment(red)
        left = 0 if in_vain else self._left(red)
        route = Verdict.MEND if left > 0 and self._repeats < SAME_FAILURES else Verdict.GIVE_UP
        await tell_run(self._stage, red, route, self._attempt, left, of_older=trial.of_older)
        if in_vain:
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, lacks)
        if base := await self._as_at_base(red):
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [broken_base(cause_of(red) or summary(red), base)])
        if route is Verdict.MEND and await self._packages_added(red.output, *_messages(red)):
            return None
        if came_back:
            await self._tell_again(red, route, left)
        if route is not Verdict.MEND:
            return trial
        await self._mend(red, lacks, of_older=trial.of_older)
        return None

    async def _noticed(self, report: TestReport) -> TestReport:
        """Returns the green run, or the run of a stronger suite that notices the story's change and its code.

        Requests that once; afterwards unnoticed criteria are advice. The green suite stays if the request fails, or if
        the new suite is red in the last attempt; before that, it counts as a red run.
        """
        stage, progress, earlier = self._stage, self._progress, self._suite
        rows, criteria = await self._look(report), stage.brief.story.acceptance_criteria
        if 0 < len(rows) < len(criteria) and all(map(only_stays, rows)):
            return report
        if rows and not progress.suite_strengthened:
            progress.suite_strengthened = True
            try:
                stronger = await self._replace(reason_to_ask(rows))
            except ProviderError as error:
                await tell_not_stronger(stage, error.message)
                stronger = False
            if stronger:
                again = await self._run_suite()
                if not again.green and self._left(again):
                    self._before = {}
                    return again
                if again.green:
                    report = again
                    rows = await self._look(report)
                else:
                    why = f"the one that came does not pass: {summary(again)}"
                    older = await self._older(self._suite.files)
                    await put_in_place(stage, progress, earlier, self._suite, older, f"Back to the earlier ones: {why}")
                    await tell_not_stronger(stage, why)
                    self._suite = earlier
        progress.note_findings(unnoticed_findings(rows))
        return report

    async def _look(self, report: TestReport) -> tuple[Unnoticed, ...]:
        """Runs the suite without the change, and on a hollow tree if tests failed there for lack of new code."""
        self._before, self._hollow = await run_before(self._stage, self._suite), {}
        criteria = self._stage.brief.story.acceptance_criteria
        if criteria and Ended.NOT_JUDGED in self._before.values():
            self._hollow = await run_hollow(self._stage, self._suite, report.duration_s)
        rows = unnoticed(criteria, self._suite, report, self._before, self._hollow)
        if self._stage.policies.test.mode == "smoke":  # one or two tests were asked for
            rows = tuple(row for row in rows if row.row.cases)
        return tuple(row for row in rows if not only_is_there(row))

    def _note(self, red: TestReport) -> bool:
        """Records the failure; returns whether the story failed in this way before."""
        self._seen.append(_failed(red))
        came_back = self._times() > 1
        self._repeats += came_back
        if came_back:
            self._came_back = failure_text(red)
        return came_back

    def _times(self) -> int:
        return self._seen.count(self._seen[-1])

    def _environment(self, red: TestReport) -> tuple[Sequence[Finding], bool]:
        """Returns what the environment lacks, and whether another delivery would be pointless."""
        cause = environment_cause(red)
        if cause is None:
            return (), False
        told, self._lacking = cause.code in self._lacking, {*self._lacking, cause.code}
        return (cause,), told or not avoidable(cause)

    async def _mend(self, red: TestReport, lacks: Sequence[Finding], *, of_older: bool) -> None:
        """Has the failure analysed, and requests the affected tasks again."""
        analysed = await self._analyse(red, lacks, of_older=of_older)
        await self._tell_analysed(analysed, self._left(red))
        if analysed.environment and (broken := await self._broken_base()):
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [broken_base(analysed.environment, broken)])
        await self._amended(analysed)
        told = (f"{one.issue} {one.fix}" for one in analysed.instructions)
        if await self._packages_added(analysed.environment, *told):
            return
        await self._end_without_cure(analysed)
        if of_older and await self._older_changed(red, analysed):
            if not analysed.instructions:
                return
            analysed = analysed.model_copy(update={"tests_to_change": ()})
        if analysed.suite_fault and not self._progress.suite_replaced:
            self._progress.suite_replaced = True
            replaced = await self._replace(analysed.suite_fault)
            if replaced:
                self._before = {}
            else:
                self._progress.note_findings([kept(self._suite, analysed.suite_fault)])
            if replaced and not analysed.instructions:
                self._history.append(PastAttempt(report=red, suite_fault=analysed.suite_fault))
                return
        elif analysed.suite_fault:
            self._progress.note_findings([kept(self._suite, analysed.suite_fault, again=True)])
        asked = orders(self._plan, self._owned, analysed, red)
        past = tuple(self._history)
        self._history.append(PastAttempt(report=red, instructions=analysed.instructions))
        for order in asked:
            history = about(self._owned, order.task, past)
            more = replace(order, attempt=self._attempt + 1, history=history, repeated=self._came_back)
            await self._tasks.run(more)

    async def _older_changed(self, red: TestReport, analysed: Analysed) -> bool:
        """Returns whether the tester has changed older tests that expect what the story changes, as the architect
        allowed."""
        planned = {one.file for one in self._plan.tests_to_change}
        older = _files_of(red) & {*filter(is_test_file, self._progress.surface.files)} - planned
        asked = [one for one in analysed.tests_to_change if one.file in older]
        if not asked:
            return False
        task, contract = nearest_task(self._plan, asked[0].file), self._tasks.contract
        granted = await self._tasks.amendments.for_tests(contract, task, asked)
        if not granted:
            return False
        before = self._plan
        self._plan = before.model_copy(update={"tests_to_change": (*before.tests_to_change, *granted)})
        reason = "\n".join(f"{one.file} fails, which this story changes on purpose: {one.reason}" for one in granted)
        if not await self._replace(reason):
            self._plan = before
            return False
        self._before = {}
        if not analysed.instructions:
            self._history.append(PastAttempt(report=red, suite_fault=reason))
        return True

    async def _end_without_cure(self, analysed: Analysed) -> None:
        """Raises StoryStopped when the tester has twice nothing to change but the environment: no task can do that.

        The first time the developer is asked all the same, since the tester may be wrong.
        """
        others = analysed.instructions or analysed.suite_fault or analysed.tests_to_change
        only = bool(analysed.environment) and not others
        twice, self._only_environment = only and self._only_environment, only
        if twice:
            raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [only_environment(analysed.environment)])

    async def _replace(self, reason: str) -> bool:
        """Requests the suite again for this reason; returns whether it was replaced."""
        older = await self._older(self._suite.files)
        faulty = Faulty(suite=self._suite, reason=reason)
        suite = await replace_suite(self._stage, self._progress, self._plan, faulty, older)
        self._suite = suite or self._suite
        return suite is not None

    async def _older(self, files: Sequence[str]) -> dict[str, str]:
        """Returns texts of these files before the story."""

        workspace = self._stage.workspace
        return await self._stage.do("read", dict[str, str], workspace.read_base, self._stage.story_id, files)

    async def _packages_added(self, *texts: str) -> bool:
        """Returns whether the architect grants the missing packages, with which the same code then runs again."""
        tasks = self._tasks
        task = next((one for one in reversed(self._plan.tasks) if one.files_to_create), self._plan.tasks[-1])
        tasks.contract = await tasks.amendments.for_texts(tasks.contract, task, texts)
        return await tasks.declare()

    async def _amended(self, analysed: Analysed) -> None:
        """Asks the architect about fixes for files outside all tasks; notes refused ones."""
        fixes = outside(self._owned, analysed.instructions)
        if not fixes:
            return
        task, tasks = nearest_task(self._plan, fixes[0].file), self._tasks
        tasks.contract = await tasks.amendments.for_fixes(tasks.contract, task, fixes)
        self._progress.note_findings(unassigned(self._owned, analysed.instructions))

    async def _analyse(self, red: TestReport, lacks: Sequence[Finding], *, of_older: bool) -> Analysed:
        stage = self._stage
        owned = (path for files in self._owned.values() for path in files)
        tests = sorted(_files_of(red)) if of_older else []
        paths = list(dict.fromkeys([*story_files(self._plan), *owned, *tests]))
        texts = await stage.read(paths)
        return await stage.tester.analyse(
            FailureBrief(
                surface=self._progress.surface,
                suite=self._suite,
                report=red,
                files={path: text for path, text in texts.items() if path not in tests},
                parts=parts_of(texts, failure_text(red)),
                task_files={task: tuple(files) for task, files in self._owned.items()},
                history=tuple(self._history),
                older={path: texts[path] for path in tests if path in texts},
                environment="; ".join(finding.message for finding in lacks),
                tests_to_change=self._plan.tests_to_change,
            )
        )

    async def _as_at_base(self, red: TestReport) -> str:
        """Returns how nothing passed at the base commit, where the story's tests fail in the same way; "" otherwise."""

        async def work(_step_id: str) -> str:
            base = self._stage.older.base
            return summary(base) if base is not None and fails_alike(red, base) else ""

        return await self._stage.step.step("as_at_base", work, str)

    async def _broken_base(self) -> str:
        """Returns why tests cannot run without the story's change either, "" when they can."""

        async def work(_step_id: str) -> str:
            base = await self._regression.at_base()
            nothing = base.problem not in {None, RunProblem.NO_TESTS} or (base.failed and not base.passed)
            return summary(base) if nothing else ""

        return await self._stage.step.step("base", work, str)

    async def _tell_again(self, red: TestReport, route: Verdict, left: int) -> None:
        """Reports a repeated failure: another way is tried, or a person is needed."""
        again = route is Verdict.MEND
        finding = same_failure(red, self._times())
        if not again:
            self._progress.note_findings([finding])
        await self._stage.decide(
            "failure_repeated",
            f"{finding.message}; {'it is gone about differently' if again else 'no further attempt is made'}",
            Loop.TEST,
            Verdict.OTHER_WAY if again else Verdict.GIVE_UP,
            findings=[finding],
            attempt=self._attempt,
            left=left if again else 0,
            level=Level.WARN,
            times=self._times(),
        )

    async def _tell_analysed(self, analysed: Analysed, left: int) -> None:
        faulty = [f"the suite is wrong: {analysed.suite_fault}"] if analysed.suite_fault else []
        faulty += [f"{one.file} expects what changes: {one.reason}" for one in analysed.tests_to_change]
        faulty += [f"the environment is at fault: {analysed.environment}"] if analysed.environment else []
        told = "; ".join([*faulty, *(f"{i.file}: {i.issue}" for i in analysed.instructions)])
        verdict = Verdict.ANALYSED if told else Verdict.NOT_ANALYSED
        await self._stage.decide(
            "failure_analysed", f"the failure was analysed: {told or 'no usable analysis'}", Loop.TEST, verdict,
            findings=analysed.findings, attempt=self._attempt, left=left,
            instructions=[instruction.model_dump(mode="json") for instruction in analysed.instructions],
            suite_fault=analysed.suite_fault, environment=analysed.environment,
            tests_to_change=[one.model_dump(mode="json") for one in analysed.tests_to_change],
        )  # fmt: skip


def fails_alike(red: TestReport, base: TestReport) -> bool:
    """Returns whether nothing passes in the run, nor at the base, and for the same reasons."""
    if red.passed or base.passed or base.problem is RunProblem.NO_TESTS:
        return False
    if red.problem in NOT_SET_UP:
        return red.problem is base.problem
    raised = raised_in(red)
    return bool(raised) and raised.keys() <= raised_in(base).keys()


def _messages(red: TestReport) -> list[str]:
    """Returns the messages of failed tests."""
    return [case.message for case in red.failing]


def _files_of(red: TestReport) -> set[str]:
    """Returns the files of failed tests."""
    return {case.file for case in red.failing if case.file}


def _failed(red: TestReport) -> tuple[object, ...]:
    """Returns what is equal for two runs in which the same tests failed, or the runner for the same reason."""
    return red.problem, red.failing_ids, frozenset(red.missing_names)


def same_failure(red: TestReport, times: int) -> Finding:
    """Returns the finding on a failure that recurred after a repair."""
    return major(
        "test.same_failure",
        f"the same failure {counted(times, 'time')}: {listed(sorted(red.failing_ids), 20) or summary(red)}",
        fix="look at the failing test and the code together, the instructions so far do not help: mend the branch by "
        "hand, or `reset` the story",
    )
