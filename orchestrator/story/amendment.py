"""Requests to extend a frozen contract, made when a missing file or package is first named."""

from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.code.packages import missing_packages
from orchestrator.contract.amend import (
    PACKAGES,
    Wanted,
    add_packages,
    amended,
    grantable,
    is_for_architect,
    not_granted,
    subject,
    wanted,
)
from orchestrator.core.breakdown import Breakdown, PackageDependencies, Task, TestToChange
from orchestrator.core.calls.exchange import Amended, AmendmentBrief
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import FileChange
from orchestrator.core.errors import ProviderError
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Where, critical, policy
from orchestrator.core.paths import is_manifest
from orchestrator.core.suite import FailureInstruction
from orchestrator.story.context import Progress, Stage, done_tasks
from orchestrator.story.planning import check_packages

_ELSE = "the architect granted something else"


class Amendments:
    """One story's requests to its architect, within `amendment.max_per_story`."""

    def __init__(self, stage: Stage, progress: Progress, plan: Breakdown) -> None:
        self._stage, self._progress, self._plan = stage, progress, plan

    async def answer(
        self, contract: ArchitectureContract, task: Task, findings: Sequence[Finding], near: Sequence[str]
    ) -> ArchitectureContract:
        """Returns the contract, extended by what the architect grants of these findings' requests.

        `near` are the files that need it. Refused requests are kept in `Progress.refused` and not made again. If the
        request itself fails, the questions are noted and the ProviderError propagates.
        """
        progress, most = self._progress, self._stage.policies.amendment.max_per_story
        asked = [one for one in findings if is_for_architect(one) and subject(one) not in progress.refused]
        able, never = grantable(contract, wanted(asked))
        progress.refused |= never
        if not able.names:
            return contract
        if progress.amendments >= most:
            progress.refused |= dict.fromkeys(able.names, f"the architect was asked {most} times already")
            return contract
        try:
            longer, reason = await self._ask(contract, task, able, asked, near)
        except ProviderError:
            progress.note_findings(asked)
            raise
        left = able.names if longer is contract else not_granted(able, longer)
        progress.refused |= dict.fromkeys(left, reason or "no reason given")
        return longer

    async def for_texts(self, contract: ArchitectureContract, task: Task, texts: Iterable[str]) -> ArchitectureContract:
        """Does the same for packages that an analysis, a review or a failed run names as missing."""
        known = contract.allowed_dependencies | _own_modules(contract)
        named = dict.fromkeys(name for text in texts for name in missing_packages(text) if name.lower() not in known)
        fix = "Do without it, or have it planned."
        asked = [
            policy("contract.dependency", f"`{name}` is said to be missing", where=Where(field=name), fix=fix)
            for name in named
        ]
        return await self.answer(contract, task, asked, task.files_to_create)

    async def for_fixes(
        self, contract: ArchitectureContract, task: Task, fixes: Sequence[FailureInstruction]
    ) -> ArchitectureContract:
        """Does the same for files outside all tasks that an analysis wants changed."""
        asked = [
            policy(
                "contract.file",
                f"the tests fail, and the cause is in {one.file}: {one.issue}",
                where=Where(file=one.file),
                fix=one.fix,
            )
            for one in fixes
        ]
        return await self.answer(contract, task, asked, task.files_to_create)

    async def for_tests(
        self, contract: ArchitectureContract, task: Task, tests: Sequence[TestToChange]
    ) -> tuple[TestToChange, ...]:
        """Returns those of the failing older tests that the architect lets the tester change."""
        stage, progress = self._stage, self._progress
        most = stage.policies.amendment.max_per_story
        tests = [one for one in tests if one.file not in progress.refused]
        if not tests or progress.amendments >= most:
            return ()
        progress.amendments += 1
        brief = self._brief(contract, task).model_copy(update={"tests": tuple(tests)})
        answer = await stage.architect.amendment(brief)
        granted = tuple(one for one in tests if one.file in answer.tests)
        files, reason = ", ".join(one.file for one in granted or tests), answer.reason or "no reason given"
        progress.refused |= {one.file: reason for one in tests if one not in granted}
        await stage.decide(
            "older_tests_granted" if granted else "amendment_refused",
            f"the tester may change {files}: {reason}" if granted else f"{files} stays as it is: {reason}",
            Loop.AMENDMENT, Verdict.GRANTED if granted else Verdict.REFUSED,
            level=Level.INFO if granted else Level.WARN, task=task.task_id,
            asked={"files": [one.file for one in tests]}, reason=answer.reason,
            attempt=progress.amendments, left=most - progress.amendments,
        )  # fmt: skip
        return granted

    def _brief(self, contract: ArchitectureContract, task: Task) -> AmendmentBrief:
        """Returns what the architect reads, without what is asked for."""
        return AmendmentBrief(
            task=task,
            breakdown=self._plan,
            surface=self._progress.surface,
            contract=contract,
            files=(),
            packages=(),
            findings=(),
            done_tasks=done_tasks(self._progress, self._plan),
        )

    def refuse(self, findings: Iterable[Finding], contract: ArchitectureContract) -> list[Finding]:
        """Returns the findings; a request that the architect refused becomes a refusal, with the reason."""
        return [self._refused(one, contract) if is_for_architect(one) else one for one in findings]

    def _refused(self, finding: Finding, contract: ArchitectureContract) -> Finding:
        reason = self._progress.refused.get(subject(finding), _ELSE)
        message = f"{finding.message}; it is not granted: {reason}"
        allowed = ", ".join(sorted(contract.allowed_dependencies)) or "none"
        fix = f"Do without it. Packages that may be used: {allowed}." if finding.code in PACKAGES else finding.fix
        return critical(finding.code, message, where=finding.where, fix=fix)

    async def manifests(
        self, contract: ArchitectureContract, near: Sequence[str], delivered: Sequence[FileChange] = ()
    ) -> tuple[FileChange, ...]:
        """Returns manifests, delivered ones included, that declare the granted packages not declared yet."""
        if not contract.granted_packages:
            return ()
        stage = self._stage

        async def work(_step_id: str) -> dict[str, str]:
            files = await stage.workspace.files(stage.story_id)
            return await stage.workspace.read(stage.story_id, [path for path in files if is_manifest(path)])

        texts = await stage.step.step("read", work, dict[str, str])
        texts |= {change.path: change.content for change in delivered if is_manifest(change.path)}
        changed = add_packages(contract.granted_packages, texts, near)
        return tuple(FileChange(path=path, content=text) for path, text in changed.items())

    async def _ask(
        self,
        contract: ArchitectureContract,
        task: Task,
        asked: Wanted,
        reasons: Sequence[Finding],
        near: Sequence[str],
    ) -> tuple[ArchitectureContract, str]:
        """Returns the extended contract, or the same one; and the architect's reason."""
        stage, progress = self._stage, self._progress
        progress.amendments += 1
        what = {"files": asked.files, "packages": asked.packages, "findings": tuple(reasons)}
        brief = self._brief(contract, task).model_copy(update=what)
        answer = await self._available(await stage.architect.amendment(brief), contract)
        progress.note_findings(answer.findings)
        longer = contract
        if answer.amendment is not None:
            declaring = await self.manifests(amended(contract, answer.amendment), near)
            new = [one.path for one in declaring if one.path not in contract.allowed_files]
            files = tuple(dict.fromkeys((*answer.amendment.files, *new)))
            longer = amended(contract, answer.amendment.model_copy(update={"files": files}))
        verdict = Verdict.REFUSED if longer is contract else Verdict.GRANTED
        left = stage.policies.amendment.max_per_story - progress.amendments
        counts: dict[str, Any] = {"findings": reasons, "attempt": progress.amendments, "left": left}
        await self._tell(task, asked, answer, longer, verdict, counts)
        return longer, answer.reason

    async def _available(self, answer: Amended, contract: ArchitectureContract) -> Amended:
        """Returns the answer, or a refusal when the granted packages cannot be installed here."""
        if answer.amendment is None or not answer.amendment.packages:
            return answer
        packages = PackageDependencies(dependencies=answer.amendment.packages)
        plan = self._plan.model_copy(update={"dependencies": packages})
        problems = await check_packages(self._stage, plan, contract.baseline_dependencies)
        if not problems:
            return answer
        return answer.model_copy(update={"amendment": None, "reason": problems[0].message})

    async def _tell(
        self, task: Task, asked: Wanted, answer: Amended, longer: ArchitectureContract, verdict: Verdict,
        counts: dict[str, Any],
    ) -> None:  # fmt: skip
        reason, sought = answer.reason or "no reason given", asked.model_dump(mode="json")
        if answer.amendment is None:
            await self._stage.decide(
                "amendment_refused",
                f"the contract stays as it is: {', '.join(asked.names)} asked for, nothing granted: {reason}",
                Loop.AMENDMENT, verdict, level=Level.WARN, task=task.task_id, asked=sought, reason=answer.reason,
                **counts,
            )  # fmt: skip
            return
        granted = longer.amendments[-1]
        await self._stage.decide(
            "contract_amended",
            f"{granted.by} allows {', '.join((*granted.files, *granted.dependencies))} for {task.task_id}: {reason}",
            Loop.AMENDMENT, verdict, task=task.task_id, asked=sought, amendment=granted.model_dump(mode="json"),
            contract=longer.model_dump(mode="json"), **counts,
        )  # fmt: skip


def _own_modules(contract: ArchitectureContract) -> frozenset[str]:
    """Returns names of the project's own folders and files, which may be mistaken for packages."""
    return frozenset(
        part.rpartition(".")[0] or part for path in contract.allowed_files for part in path.lower().split("/")
    )
