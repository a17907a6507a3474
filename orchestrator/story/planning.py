"""Judges, revises and repairs plans, asks a person, and freezes the contract. A person's plan is not changed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from packaging.utils import canonicalize_name

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.breakdown import doubts, ignored_files, unwritable_files
from orchestrator.checks.breakdown_rules import check_breakdown, mend
from orchestrator.checks.environment import build_failed, installing_cause, script_refused
from orchestrator.checks.task_plan import JudgedTaskPlan, judge_task_plan
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.core.breakdown import Breakdown, PlanValidationResult
from orchestrator.core.calls.exchange import Planned
from orchestrator.core.command import Choice, Gate, GateAnswer, Loop, Verdict
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Severity, Where, critical, major, questions
from orchestrator.core.history import CONFLICT
from orchestrator.core.paths import unsafe_reason
from orchestrator.core.sprint import BroughtPlan, Replan, StoryStatus
from orchestrator.core.suite import NewPackages
from orchestrator.core.value import counted
from orchestrator.story import gate as gates
from orchestrator.story.context import Progress, Stage, StoryStopped
from orchestrator.story.project_scan import tell_new_folders

_TOLD = 1500
"""Characters kept of the end of an installer's output."""


async def check_packages(stage: Stage, plan: Breakdown, there: Sequence[str]) -> list[Finding]:
    """Returns findings on packages that cannot be installed; `there` are those that the project declares.

    Raises StoryStopped when the registry cannot be reached.
    """
    known = {canonicalize_name(name) for name in there}
    asked = {**plan.dependencies.devDependencies, **plan.dependencies.dependencies}
    new = {name: version for name, version in asked.items() if canonicalize_name(name) not in known}
    files = sorted({path for task in plan.tasks for path in task.files_to_create})

    async def work(_step_id: str) -> NewPackages:
        return await stage.runner.new_packages(stage.workspace.root(stage.story_id), new, files)

    found = await stage.step.step("packages", work, NewPackages) if new else NewPackages()
    if cause := installing_cause(found.refusal):
        raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [cause])
    if found.had or found.base_too:
        return []
    where = Where(story=plan.story_id, field="dependencies")
    if found.closed:
        return [script_refused(found.closed, found.setting, where)]
    if found.failed:
        return [build_failed(found.failed, where)]
    return [
        major(
            "breakdown.unavailable_package",
            f"not all of {', '.join(sorted(new))} can be installed here: {found.refusal[-_TOLD:]}",
            where=where,
            fix="Name packages and versions that the registry has ready-made, or do without them.",
        )
    ]


def judge_text(
    text: str,
    path: str,
    story: str,
    files: frozenset[str] = frozenset(),
    packages: frozenset[str] = frozenset(),
    *,
    min_chars: int,
) -> JudgedTaskPlan:
    """Returns what the rules say about a person's plan for a project with these files and packages. Never raises."""
    return judge_task_plan(read_task_plan(text, path), text, story, files, packages, min_chars=min_chars)


MISSING_TASKS = "breakdown.missing_tasks"


def _route(valid: bool, invalid: int, budget: int) -> Verdict:
    """Returns what comes of a judged plan; of `invalid` ones, this one included, the last of the budget escalates."""
    return Verdict.VALID if valid else Verdict.REVISE if invalid < budget else Verdict.ESCALATE


async def plan_story(stage: Stage, progress: Progress) -> Breakdown:
    """Returns an accepted breakdown.

    Raises StoryStopped: failed (no answer), conflicted, needs_attention (escalated or unanswered), cancelled.
    """
    return await PlanLoop(stage, progress).run()


async def freeze_contract(stage: Stage, progress: Progress, plan: Breakdown) -> ArchitectureContract:
    """Freezes the story's contract and reports it."""

    async def work(_step_id: str) -> ArchitectureContract:
        files = await stage.workspace.files(stage.story_id)
        manifests = await stage.workspace.read(stage.story_id, [path for path in files if worth_freezing(path)])
        return freeze(breakdown=plan, base_commit=progress.branch.base, files=files, manifests=manifests)

    contract = await stage.step.step("freeze", work, ArchitectureContract)
    await stage.step.emit(
        "contract_frozen",
        f"allowed beside what is there: {counted(len(contract.declared_files), 'file')} and "
        f"{counted(len(contract.declared_dependencies), 'new package')}",
        contract=contract.model_dump(mode="json"),
    )
    planned = [path for task in plan.tasks for path in task.files_to_create]
    await tell_new_folders(stage, planned, progress.surface.files)
    return contract


class PlanLoop:
    """Makes plans of one story until one is accepted; planning from the start resets its fields."""

    def __init__(self, stage: Stage, progress: Progress) -> None:
        self._stage, self._progress = stage, progress
        self._given: BroughtPlan | None = stage.brief.plan
        self._begin(stage.brief.replan)

    def _begin(self, said: Replan | None) -> None:
        """Resets the state to plan from the start, with a person's comment."""
        self._said = said
        self._feedback = ""
        self._iteration = self._invalid = 0
        self._asked = self._doubted = False
        self._budget = self._stage.policies.plan.max_iterations

    async def run(self) -> Breakdown:
        """Drafts, judges, routes and asks until a plan is accepted. Each returned plan uses one of the budget."""
        if brought := self._given or self._stage.brief.followed:
            how = "is built as it stands" if self._given else "is given to the architect to follow"
            told = f"a person's plan, {brought.path}, {how}"
            await self._stage.step.emit("plan_given", told, plan_file=brought.path, followed=self._given is None)
        loop = self._stage.policies.loop(
            Loop.PLAN, lambda accepted: accepted is None, left=lambda: self._budget - self._invalid
        )
        accepted: Breakdown | None = await loop(self._next)
        assert accepted is not None
        return accepted

    async def _next(self) -> Breakdown | None:
        planned = await self._draft()
        if planned.breakdown is None:
            raise StoryStopped(StoryStatus.FAILED, planned.findings)
        conflict = planned.breakdown.architectural_conflict.detected
        return await (self._conflict(planned, planned.breakdown) if conflict else self._judge(planned))

    async def _draft(self) -> Planned:
        """Returns the next plan to judge: a person's own, or the architect's."""
        self._iteration += 1
        if self._given is not None:
            judged = self._judged(self._given)
            return Planned(breakdown=judged.breakdown, findings=judged.findings, previous=self._given.text)
        planned = await self._stage.architect.breakdown(self._progress.surface, self._feedback, self._said)
        self._progress.note_findings([finding for finding in planned.findings if not finding.severity.blocks])
        return planned

    async def _judge(self, planned: Planned) -> Breakdown | None:
        plan = planned.breakdown
        assert plan is not None
        said = self._checked(plan) if self._given is None else planned.findings
        result = await self._result(plan, said)
        self._invalid += not result.valid
        # A person's plan never goes to the architect: an invalid one goes directly to the gate.
        budget = 0 if self._given is not None else self._budget
        route = _route(result.valid, self._invalid, budget)
        if route is Verdict.VALID and self._asks(result):
            route = Verdict.REVISE
        await self._tell(plan, route, result)
        if route is Verdict.REVISE:
            self._feedback = self._stage.architect.revision(planned, result.findings)
            return None
        if route is Verdict.ESCALATE and self._given is None:
            plan, result, changes = await self._mended(plan)
            return await self._settle(planned, plan, result, changes)
        return await self._settle(planned, plan, result)

    def _asks(self, result: PlanValidationResult) -> bool:
        """Returns whether to ask the architect, once, about packages that its plan mentions but does not declare."""
        if self._asked or self._given is not None or not questions(result.notes) or self._invalid + 1 >= self._budget:
            return False
        self._asked = True
        self._invalid += 1
        return True

    async def _settle(
        self, planned: Planned, plan: Breakdown, result: PlanValidationResult, changes: Sequence[Finding] = ()
    ) -> Breakdown | None:
        """Accepts a final plan, or asks a person if the mode requires it; `changes` were made by mending it."""
        mode = self._stage.policies.gate.mode
        while not result.valid or mode == "always":
            if mode == "auto":
                raise StoryStopped(StoryStatus.NEEDS_ATTENTION, result.issues)
            gate = gates.plan_gate(plan, result, iteration=self._iteration, plan_file=self._plan_file, changes=changes)
            answer = await gates.ask(self._stage, gate, self._left(gate.valid))
            if gates.approves(self._stage, gate, answer):
                return self._accepted(plan, gate, answer.by)
            if answer.choice is Choice.EDIT and answer.plan is not None:
                plan, changes, result = answer.plan, (), await self._result(answer.plan, self._checked(answer.plan))
                edited = gates.plan_gate(plan, result, iteration=self._iteration, plan_file=self._plan_file)
                if Choice.APPROVE in edited.choices:
                    return self._accepted(plan, edited, answer.by)
            elif answer.choice in gate.choices or answer.choice is Choice.TIME_OUT:
                self._sent_back(planned, gate, answer, result.findings)
                return None
        self._progress.note_findings(result.notes)
        return plan

    async def _result(self, plan: Breakdown, said: Sequence[Finding]) -> PlanValidationResult:
        """Returns the result, including findings on new packages if nothing else prevents the build."""
        said = [*said, *await self._unwritable(plan)]
        result = PlanValidationResult.of(said)
        if not result.valid:
            return result
        ignored = await self._ignored(plan)
        packages = await check_packages(self._stage, plan, self._progress.surface.dependencies)
        return PlanValidationResult.of([*said, *ignored, *packages])

    async def _unwritable(self, plan: Breakdown) -> list[Finding]:
        """Returns findings on files where no text can be written, before a delivery of them is paid."""
        paths = sorted({path for task in plan.tasks for path in task.files_to_create if not unsafe_reason(path)})
        return unwritable_files(plan, await self._stage.workspace.obstacles(self._stage.story_id, paths))

    async def _ignored(self, plan: Breakdown) -> list[Finding]:
        """Returns findings on ignored files. The architect gets them once; later the files are left out."""
        paths = sorted({path for task in plan.tasks for path in task.files_to_create})
        if ".gitignore" in paths or not any(path.endswith(".gitignore") for path in self._progress.surface.files):
            return []
        stage = self._stage
        self._progress.ignored = {
            *await stage.do("ignored", tuple[str, ...], stage.workspace.ignored, stage.story_id, paths)
        }
        return ignored_files(plan, self._progress.ignored, told=self._invalid > 0 or self._given is not None)

    def _accepted(self, plan: Breakdown, gate: Gate, by: str) -> Breakdown:
        self._progress.note_findings([*gates.approved_findings(self._stage.story_id, gate, by), *gate.notes])
        return plan

    def _sent_back(self, planned: Planned, gate: Gate, answer: GateAnswer, findings: tuple[Finding, ...]) -> None:
        """Prepares another plan as a person requests. Raises StoryStopped when none is wanted."""
        if answer.choice is Choice.REPLAN:
            self._given = None
            told = gate.conflict.told if gate.conflict.detected else ""
            self._begin(Replan(comment=answer.comment, overridden_conflict=told))
        elif answer.choice is Choice.REJECT:
            self._budget += 1
            comment = gates.comment_finding(self._stage.story_id, answer)
            self._feedback = self._stage.architect.revision(planned, [comment, *findings])
        else:
            raise gates.stopped(self._stage, gate, answer)

    async def _conflict(self, planned: Planned, plan: Breakdown) -> None:
        """Prepares another plan if a person has overridden the conflict, or does so now; else raises StoryStopped."""
        if self._said is not None and self._said.overridden_conflict:
            finding = _overridden(self._stage)
            self._invalid += 1
            result = PlanValidationResult.of([finding])
            if _route(result.valid, self._invalid, self._budget) is Verdict.REVISE:
                await self._tell(plan, Verdict.REVISE, result)
                self._feedback = self._stage.architect.revision(planned, [finding])
                return
        if await self._doubt(planned, plan):
            return
        await self._decide(
            CONFLICT,
            f"the architect sees a conflict: {plan.architectural_conflict.conflict_reason}",
            Verdict.CONFLICT,
            level=Level.WARN,
            conflict=plan.architectural_conflict.model_dump(mode="json"),
        )
        ended = StoryStopped(StoryStatus.CONFLICTED, [_conflict_finding(self._stage, plan)])
        if self._stage.policies.gate.mode == "auto":
            raise ended
        gate = gates.conflict_gate(plan, iteration=self._iteration, plan_file=self._plan_file)
        answer = await gates.ask(self._stage, gate, self._left(valid=True))
        if answer.choice is Choice.TIME_OUT:
            raise ended
        # Approving a conflict overrides it, and the architect plans again with that information.
        over = answer.model_copy(update={"choice": Choice.REPLAN}) if answer.choice is Choice.APPROVE else answer
        self._sent_back(planned, gate, over, ())

    async def _doubt(self, planned: Planned, plan: Breakdown) -> bool:
        """Returns whether the architect is asked once more, with the facts that speak against its conflict."""
        found = doubts(plan, frozenset(self._progress.surface.files))
        if self._doubted or not found or self._invalid + 1 >= self._budget:
            return False
        self._doubted = True
        self._invalid += 1
        await self._tell(plan, Verdict.REVISE, PlanValidationResult.of(found))
        self._feedback = self._stage.architect.revision(planned, found)
        return True

    @property
    def _plan_file(self) -> str:
        return self._given.path if self._given is not None else ""

    def _left(self, valid: bool) -> int:
        """Returns the number of revisions allowed after the current plan."""
        return max(0, self._budget - self._invalid - valid) if self._given is None else 0

    async def _decide(
        self, name: str, message: str, verdict: StrEnum, findings: Sequence[Finding] = (), *, valid: bool = True,
        **more: Any,
    ) -> None:  # fmt: skip
        left = self._left(valid)
        await self._stage.decide(
            name, message, Loop.PLAN, verdict, findings=findings, attempt=self._iteration, left=left, **more
        )

    def _checked(self, plan: Breakdown) -> list[Finding]:
        surface = self._progress.surface
        return check_breakdown(plan, frozenset(surface.files), frozenset(surface.dependencies))

    def _judged(self, given: BroughtPlan) -> JudgedTaskPlan:
        surface = self._progress.surface
        files, packages = frozenset(surface.files), frozenset(surface.dependencies)
        least = self._stage.policies.plan.min_chars
        return judge_text(given.text, given.path, self._stage.story_id, files, packages, min_chars=least)

    async def _mended(self, plan: Breakdown) -> tuple[Breakdown, PlanValidationResult, list[Finding]]:
        """Returns the plan after automatic repairs (A3-A5), the remaining findings, and one finding per repair."""
        mended, said = mend(plan, frozenset(self._progress.surface.files))
        self._progress.note_findings(said)
        left = await self._result(mended, [_softened(finding) for finding in self._checked(mended)])
        if left.valid:
            told = "the plan's budget is used up; what could be mended was"
            changed = mended.model_dump(mode="json")
            await self._decide("plan_mended", told, Verdict.MENDED, said, level=Level.WARN, plan=changed)
        return mended, left, said

    async def _tell(self, plan: Breakdown, route: Verdict, result: PlanValidationResult) -> None:
        whose = "a person's plan" if self._given is not None else f"plan {self._iteration}"
        about = f"{whose} with {counted(len(plan.tasks), 'task')}: {route}"
        await self._decide(
            "plan_judged",
            about if result.valid else f"{about} ({result.issues[0].message})",
            route,
            result.findings,
            valid=result.valid,
            level=Level.INFO if result.valid else Level.WARN,
            severity=result.severity,
            plan_file=self._plan_file,
            plan=plan.model_dump(mode="json"),
        )


def _overridden(stage: Stage) -> Finding:
    message = "the conflict was overridden by a person and counts as settled"
    fix = "Set detected to false and plan the story as the person's comment says."
    where = Where(story=stage.story_id, field="architectural_conflict")
    return major("breakdown.conflict_overridden", message, where=where, fix=fix)


def _softened(finding: Finding) -> Finding:
    """Makes the finding minor: tasks still missing after all revisions are only reported."""
    return finding.model_copy(update={"severity": Severity.MINOR}) if finding.code == MISSING_TASKS else finding


def _conflict_finding(stage: Stage, plan: Breakdown) -> Finding:
    return critical(
        "breakdown.conflict",
        f"a conflict was detected: {plan.architectural_conflict.told}",
        fix=f"decide what gives way: override it with `orchestrator replan {stage.story_id} --comment TEXT`, "
        "or change the story or the architecture and `reset` the story; then give the same command again",
    )
