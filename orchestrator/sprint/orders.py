"""Whom a red run concerns: which tasks are asked for again, with which instructions (pure)."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from orchestrator.domain.breakdown import Breakdown, Task
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.stages import Analysed, PastAttempt
from orchestrator.domain.testing import FailureInstruction, TestReport
from orchestrator.sprint.run_telling import failure_text
from orchestrator.sprint.task import Order

Owned = Mapping[str, Sequence[str]]
"""Task id → the files it may change, as its contract has them."""


def orders(plan: Breakdown, owned: Owned, analysed: Analysed, report: TestReport) -> list[Order]:
    """Which tasks are asked for again: each gets the instructions for its own files only.

    Without a usable instruction the tasks whose files occur in the output are asked for, or else all with files; they
    get the output itself.
    """
    tasks = [with_files(task, owned) for task in plan.tasks]
    result = []
    for task in tasks:
        mine = tuple(i for i in analysed.instructions if i.file in task.files_to_create)
        if mine:
            result.append(Order(task=task, instructions=mine))
    if result:
        return result
    output = f"The tests failed:\n{failure_text(report)}"
    able = [task for task in tasks if task.files_to_create]
    named = [task for task in able if any(path in output for path in task.files_to_create)]
    return [Order(task=task, failure_output=output) for task in named or able]


def with_files(task: Task, owned: Owned) -> Task:
    """The task with the files that an amendment gave to it."""
    given = [path for path in owned.get(task.task_id, ()) if path not in task.files_to_create]
    return task.model_copy(update={"files_to_create": (*task.files_to_create, *given)}) if given else task


def outside(owned: Owned, instructions: Sequence[FailureInstruction]) -> list[FailureInstruction]:
    """Those for files of no task."""
    files = {path for paths in owned.values() for path in paths}
    return [instruction for instruction in instructions if instruction.file not in files]


def unassigned(owned: Owned, instructions: Sequence[FailureInstruction]) -> list[Finding]:
    """What is said of instructions for files outside every task."""
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
    """The task with the file whose folders begin most alike; of several the last, which knows most."""
    able = [task for task in plan.tasks if task.files_to_create] or list(plan.tasks)
    near = [max((_alike(path, other) for other in task.files_to_create), default=0) for task in able]
    return next(task for task, count in reversed([*zip(able, near, strict=True)]) if count == max(near))


def _alike(one: str, two: str) -> int:
    """How many folders two paths share from the root on."""
    folders = zip(one.split("/")[:-1], two.split("/")[:-1], strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], folders)])


def about(owned: Owned, task: Task, history: Sequence[PastAttempt]) -> tuple[PastAttempt, ...]:
    """The attempts that concerned a task, each with the instructions for its files only."""
    files = {*owned.get(task.task_id, ()), *task.files_to_create}
    mine = (past.model_copy(update={"instructions": _of(files, past.instructions)}) for past in history)
    return tuple(past for past in mine if past.instructions)


def _of(files: set[str], instructions: Sequence[FailureInstruction]) -> tuple[FailureInstruction, ...]:
    return tuple(instruction for instruction in instructions if instruction.file in files)
