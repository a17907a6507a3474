"""The one request per story to extend its frozen contract, made when the story would fail without it (DESIGN 5.5)."""

from collections.abc import Sequence
from typing import Any

from orchestrator.contract.amend import Wanted, amended, wanted, wanted_files
from orchestrator.domain.breakdown import Breakdown, Task
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.decisions import Loop, Verdict, decided
from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, blocking, minor
from orchestrator.domain.stages import Amended, AmendmentBrief, Delivered
from orchestrator.domain.testing import FailureInstruction
from orchestrator.errors import ProviderError
from orchestrator.sprint.context import Progress, Stage


async def amend(
    stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract, task: Task, delivered: Delivered
) -> ArchitectureContract | None:
    """The extended contract, or None: nothing to ask for, asked already, or not granted.

    What is granted is recorded with the new contract. When the request itself fails, the delivery's violations are
    noted: they are why the story fails, and the ProviderError goes on.
    """
    asked = wanted(contract, delivered.findings)
    if delivered.accepted or delivered.delivery is None or asked is None or progress.amendment_asked:
        return None
    try:
        return await _ask(stage, progress, plan, contract, task, asked, blocking(delivered.findings))
    except ProviderError:
        progress.note_findings(blocking(delivered.findings))
        raise


async def amend_for_fixes(
    stage: Stage,
    progress: Progress,
    plan: Breakdown,
    contract: ArchitectureContract,
    task: Task,
    fixes: Sequence[FailureInstruction],
) -> ArchitectureContract | None:
    """The contract with the files of `fixes`, which no task has, given to `task`; or None, as with `amend`."""
    asked = wanted_files(contract, [fix.file for fix in fixes])
    if asked is None or progress.amendment_asked:
        return None
    reasons = [
        minor("analysis.outside_tasks", f"the tests fail, and the cause is in {one.file}: {one.issue}", fix=one.fix)
        for one in fixes
    ]
    return await _ask(stage, progress, plan, contract, task, asked, reasons)


async def _ask(
    stage: Stage,
    progress: Progress,
    plan: Breakdown,
    contract: ArchitectureContract,
    task: Task,
    asked: Wanted,
    reasons: Sequence[Finding],
) -> ArchitectureContract | None:
    progress.amendment_asked = True
    brief = AmendmentBrief(
        task=task,
        breakdown=plan,
        surface=progress.surface,
        contract=contract,
        files=asked.files,
        packages=asked.packages,
        findings=tuple(reasons),
    )
    answer = await stage.architect.amendment(brief)
    progress.note_findings(answer.findings)
    longer = amended(contract, answer.amendment) if answer.amendment else None
    granted = answer.amendment is not None and longer is not None
    verdict = Verdict.GRANTED if granted else Verdict.REFUSED
    said = decided(Loop.AMENDMENT, verdict, findings=reasons, attempt=1, budget_left=0)
    await _tell(stage, task, asked, answer, longer, said)
    return longer


async def _tell(
    stage: Stage, task: Task, asked: Wanted, answer: Amended, longer: ArchitectureContract | None, said: dict[str, Any]
) -> None:
    reason = answer.reason or "no reason given"
    if answer.amendment is None or longer is None:
        told = ", ".join((*asked.files, *asked.packages))
        await stage.step.emit(
            "amendment_refused",
            f"the contract stays as it is: {told} asked for, nothing granted: {reason}",
            level=Level.WARN,
            task=task.task_id,
            asked=asked.model_dump(mode="json"),
            reason=answer.reason,
            **said,
        )
        return
    granted = ", ".join((*answer.amendment.files, *answer.amendment.dependencies))
    await stage.step.emit(
        "contract_amended",
        f"{answer.amendment.by} allows {granted} for {task.task_id}: {reason}",
        task=task.task_id,
        asked=asked.model_dump(mode="json"),
        amendment=answer.amendment.model_dump(mode="json"),
        contract=longer.model_dump(mode="json"),
        **said,
    )
