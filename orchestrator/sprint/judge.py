"""Judges answers and plans, and applies action plans, outside a run: a run's checks against a folder's files."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.action_plan import PlanExtraction, parse_plan, plan_in
from orchestrator.answers.task_plan import read_task_plan
from orchestrator.answers.whole_files import Wanted, is_whole_files, read_whole_files
from orchestrator.checks.action_plan import (
    Applied,
    apply_plan,
    delivery_of,
    named_paths,
    read_plan_delivery,
    suite_value,
)
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import read_breakdown, unwritable_files, unwritten_files
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.lost_exports import Lost, lost_exports, users_of
from orchestrator.checks.paths import Around
from orchestrator.checks.suite import check_suite, read_suite
from orchestrator.checks.task_plan import breakdown_of, check_length, check_planned, check_task_plan
from orchestrator.checks.whole_files import suite_of_files
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.packages import dependencies_of
from orchestrator.code.python.tests import test_functions
from orchestrator.code.shell import failed_step
from orchestrator.contract.enforce import check_delivery, without_outside
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.contract.world import NOTHING_KNOWN
from orchestrator.core.action_plan import (
    ActionPlan,
    ActionResult,
    ActionState,
    Execute,
    ExecutionReport,
    Prune,
    Read,
)
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, PlanValidationResult, Task
from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.delivery import Delivery
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.finding import Finding, Severity, Where, blocking, major, minor
from orchestrator.core.paths import is_manifest
from orchestrator.core.suite import CommandResult
from orchestrator.core.value import AnswerValue
from orchestrator.settings import Settings
from orchestrator.story.project_scan import runtime_of, runtimes_of, scan_paths

UNNAMED = "STORY"
"""The story's id when neither the caller nor the answer names one."""
_NEEDS_PROJECT = frozenset({"contract.dependency", "contract.import", "contract.transitive", "contract.missing_module"})
_NEEDS_TASK = frozenset({"contract.other_task", "contract.file"})


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The context of an answer; a None is unknown, and skips the checks that need it."""

    story: str | None = None
    files: tuple[str, ...] | None = None
    """The project's files."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts of files by path; includes at least the manifests."""
    read: Callable[[Iterable[str]], Mapping[str, str]] | None = None
    """Reads more of the project's files: those that a delivery changes, and sources when it removes something."""
    task_files: tuple[str, ...] | None = None
    """Files that the delivery's task lists."""
    plan: Breakdown | None = None
    """The accepted breakdown from which a delivery's contract is made."""
    contract: ArchitectureContract | None = None
    """The story's contract as it was recorded; in place of one made from the plan and the folder."""
    installed: InstalledPackages = NOTHING_KNOWN
    """The packages of the project's environment."""
    check_shell: Callable[[Delivery], Sequence[Finding]] = lambda _delivery: ()
    """Checks the shell files of a delivery with bash."""
    obstacles: Callable[[Iterable[str]], Mapping[str, str]] = lambda _paths: {}
    """Says of paths why no text can be written there, where none can."""


class Judged(NamedTuple):
    """The findings on one answer."""

    status: Status
    findings: tuple[Finding, ...]
    is_plan: bool = False
    """True for a story's plan, whose severity depends on the number of findings."""

    @property
    def severity(self) -> Severity:
        """Returns the highest severity; for a plan that of PlanValidationResult, which ignores minor findings."""
        if self.is_plan:
            return PlanValidationResult.of(self.findings).severity
        return max((finding.severity for finding in self.findings), key=lambda one: one.rank, default=Severity.NONE)

    @property
    def valid(self) -> bool:
        """Returns whether a run would accept the answer unchanged."""
        return self.status in {Status.OK, Status.REPAIRED} and not blocking(self.findings)


WHOLE_KINDS = frozenset({"delivery", "suite"})
"""Kinds of answers that may come as whole files, each behind a line with its path."""


def read_whole(text: str, paths: Sequence[str] = ()) -> Extraction | None:
    """Returns the whole files in a text that is no other answer; only a block with a path is one: no task is known."""
    return read_whole_files(text, Wanted(tuple(paths), lambda path, text: False))


def judge(kind: str, text: str, around: Surroundings) -> Judged:
    """Returns the findings of a run's checks on an answer of this kind (a key of KINDS). Never raises."""
    contract, check = KINDS[kind]
    extraction = extract(text, contract)
    if extraction.value is None and kind in WHOLE_KINDS:
        extraction = read_whole(text, around.task_files or ()) or extraction
    problems = extraction.problems
    if extraction.value is None:
        return Judged(extraction.status, problems, kind == PLAN_KIND)
    findings = (*problems, *check(extraction.value, _story(extraction, around), around))
    return Judged(extraction.status, findings, kind == PLAN_KIND)


def read_plan(text: str, story: str | None) -> tuple[Breakdown | None, tuple[Finding, ...]]:
    """Returns the breakdown in a text, or None with the reasons."""
    extraction = extract(text, BreakdownAnswer)
    if extraction.value is None:
        return None, extraction.problems
    plan, findings = read_breakdown(extraction.value, _story(extraction, Surroundings(story=story)))
    return plan, tuple(findings)


def _story(extraction: Extraction, around: Surroundings) -> str:
    value = extraction.value
    stated = value.get("story_id") if isinstance(value, dict) else None
    return around.story or (stated if isinstance(stated, str) and stated else UNNAMED)


def known_packages(around: Surroundings) -> frozenset[str]:
    """Returns the normalised package names in the manifests."""
    found = (dependencies_of(path, text) for path, text in around.texts.items() if is_manifest(path))
    return frozenset(name for names in found for name in names)


def _breakdown(value: Any, story: str, around: Surroundings) -> Iterator[Finding]:
    plan, said = read_breakdown(value, story)
    yield from said
    if plan is None:
        return
    if plan.architectural_conflict.detected:
        fix = "Decide which gives way: change the story or the architecture, or plan the story again with a comment."
        where = Where(story=story, field="architectural_conflict")
        message = f"a conflict was detected: {plan.architectural_conflict.told}"
        yield minor("breakdown.conflict", message, where=where, fix=fix)
    yield from check_breakdown(plan, frozenset(around.files or ()), known_packages(around))
    yield from _unwritable(plan, around)


def _unwritable(plan: Breakdown, around: Surroundings) -> list[Finding]:
    return unwritable_files(plan, around.obstacles([path for task in plan.tasks for path in task.files_to_create]))


def _delivery(value: Any, story: str, around: Surroundings) -> Iterator[Finding]:
    plan = plan_in(value)
    if plan is not None:
        around = _with_texts(around, named_paths(plan))
        delivery, said = _of_plan(plan, story, around)
    else:
        stated = value.get("task_id") if isinstance(value, dict) else None
        delivery, said = read_delivery(value, story, stated if isinstance(stated, str) else "")
    yield from said
    if delivery is not None:
        around = _with_texts(around, delivery.paths)
        yield from judge_delivery(delivery, around)


def _with_texts(around: Surroundings, paths: Iterable[str]) -> Surroundings:
    """Returns the context with the texts of those paths that exist."""
    wanted = (set(paths) & set(around.files or ())) - around.texts.keys()
    if around.read is None or not wanted:
        return around
    return replace(around, texts={**around.texts, **around.read(sorted(wanted))})


def _of_plan(plan: ActionPlan, story: str, around: Surroundings) -> tuple[Delivery | None, list[Finding]]:
    """Returns an action plan as a delivery; it names no task, so the task whose files it writes is assumed."""
    written = {path for path in named_paths(plan) if path not in plan.reads}
    tasks = around.plan.tasks if around.plan is not None else ()
    task = next((task.task_id for task in tasks if written and written <= set(task.files_to_create)), "")
    world = PlanWorld(paths=frozenset(around.files or ()), texts=around.texts)
    delivery, findings = read_plan_delivery(plan, world, story, task)
    if around.files is None and any(finding.code == "plan.missing" for finding in findings):
        fix = "Name the folder with --repo."
        return None, [minor("plan.unchecked", "what the plan changes is not known: no folder was given", fix=fix)]
    return delivery, findings


def judge_delivery(delivery: Delivery, around: Surroundings) -> Iterator[Finding]:
    """Checks contents and contract of a well-formed delivery, in whichever format it came."""
    contract = _contract(delivery, around)
    delivery, outside = without_outside(contract, delivery, around.files or ())
    yield from outside
    task = delivery.task_id
    own = contract.task_files.get(task, ())
    about = next((item.description for item in around.plan.tasks if item.task_id == task), "") if around.plan else ""
    packages = contract.allowed_dependencies if around.files is not None else frozenset[str]()
    lost = lost_exports(delivery, around.texts, about)
    others = _users(lost, around)
    known = Around(
        packages=packages,
        task=about,
        others=others,
        runtime=runtime_of(around.texts),
        runtimes=runtimes_of(around.texts),
    )
    yield from unwritten_files(delivery, around.obstacles(delivery.paths))
    yield from check_content(delivery, around.texts, known, lost)
    yield from around.check_shell(delivery)
    left_out = _NEEDS_PROJECT if around.files is None else frozenset[str]()
    if around.contract is not None:
        left_out |= {"contract.other_task"}  # nobody said whose task it is
    elif around.plan is None and around.task_files is None:
        left_out |= _NEEDS_TASK
    before = {path: text for path, text in around.texts.items() if path in delivery.paths}
    said = check_delivery(contract, delivery, before, around.installed)
    yield from (one for one in said if one.code not in left_out)
    yield from check_whole(delivery, own, {**dict.fromkeys(around.files or (), ""), **before})


def _users(lost: Sequence[Lost], around: Surroundings) -> Mapping[str, str]:
    if around.read is None or not lost:
        return {}
    texts = around.read(scan_paths(around.files or ()))
    using = {path for paths in users_of(lost, texts).values() for path in paths}
    return {path: text for path, text in texts.items() if path in using}


def _contract(delivery: Delivery, around: Surroundings) -> ArchitectureContract:
    if around.contract is not None:
        return around.contract
    files = around.files or ()
    manifests = {path: text for path, text in around.texts.items() if worth_freezing(path) and path in files}
    named = (*delivery.paths, *delivery.removed)
    plan = around.plan or Breakdown(
        story_id=delivery.story_id,
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=1,
        tasks=(Task(task_id=delivery.task_id, description="by hand", files_to_create=around.task_files or named),),
    )
    return freeze(breakdown=plan, base_commit="", files=files, manifests=manifests)


def _suite(value: Any, story: str, around: Surroundings) -> Iterator[Finding]:
    plan = plan_in(value)
    if is_whole_files(value):
        as_json, wrong = suite_of_files(value, (), ())
    else:
        as_json, wrong = suite_value(plan) if plan is not None else (value, ())
    suite, said = read_suite(as_json, story) if as_json is not None else (None, [])
    yield from (*wrong, *said)
    if suite is not None:
        yield from check_suite(suite, required_criteria=None)


def suite_of_file(path: str, text: str) -> str:
    """Returns a test file as an answer: its name, its text, and its tests as cases."""
    names = test_functions(text) if path.endswith(".py") else test_names(text, path)
    return json.dumps({"test_file": path, "test_content": text, "test_cases": list(names)})


PLAN_KIND = "breakdown"
Check = Callable[[Any, str, Surroundings], Iterator[Finding]]
KINDS: Mapping[str, tuple[type[AnswerValue], Check]] = {
    PLAN_KIND: (BreakdownAnswer, _breakdown),
    "delivery": (DeliveryAnswer, _delivery),
    "suite": (SuiteAnswer, _suite),
}
"""Kinds of answers that can be judged: how each is extracted, and its checks."""


class JudgedPlan(NamedTuple):
    """A plan with its findings; `applied` is None when no files were given."""

    extraction: PlanExtraction
    world: PlanWorld | None
    applied: Applied | None
    judged: Judged


def paths_of(text: str) -> tuple[str, ...]:
    """Returns the safe paths that a plan names, whose texts the caller reads into the world."""
    plan = parse_plan(text).plan
    return named_paths(plan) if plan is not None else ()


def judge_plan(
    text: str, world: PlanWorld | None, story: str | None = None, contract: ArchitectureContract | None = None
) -> JudgedPlan:
    """Returns the findings of a run's checks on a plan, stage by stage; with `story` also on contents and contract.

    Without a world the actions are not checked, and a finding says so. Never raises.
    """
    found = parse_plan(text)
    findings = found.findings
    applied = None
    if found.status in {Status.OK, Status.REPAIRED} and found.plan is not None:
        if world is None:
            findings = (*findings, _unknown(found.plan))
        else:
            applied = apply_plan(found.plan, world)
            findings = (*findings, *applied.findings)
            if applied.valid and story is not None and applied.changes:
                findings = (*findings, *_as_delivery(applied, world, story, contract))
    return JudgedPlan(found, world, applied, Judged(found.status, findings))


def _unknown(plan: ActionPlan) -> Finding:
    where = Where(line=plan.actions[0].line or None) if plan.actions else Where()
    message = "what the actions would do could not be checked: no folder was given"
    return minor("plan.unchecked", message, where=where, fix="Name the folder with --repo.")


def _as_delivery(
    applied: Applied, world: PlanWorld, story: str, contract: ArchitectureContract | None
) -> tuple[Finding, ...]:
    around = Surroundings(story=story, files=tuple(sorted(world.paths)), texts=world.texts, contract=contract)
    return tuple(judge_delivery(delivery_of(applied, story, ""), around))


Run = Callable[[Execute], Awaitable[CommandResult]]


@dataclass(frozen=True, kw_only=True)
class Hands:
    """Ports for executing a plan: `write` makes all changes or none (WorkspaceError), `run` is None when forbidden."""

    write: Callable[[Mapping[str, str | None]], Awaitable[None]]
    run: Run | None
    token: str
    """Marks the failed step in the output of `run`'s scripts."""


async def carry_out(plan: ActionPlan, applied: Applied, hands: Hands) -> ExecutionReport:
    """Writes the files, all or none, then runs the commands in order; skips everything after the first failure."""
    skipped, broken = "", ""
    try:
        await hands.write(applied.changes)
    except WorkspaceError as error:
        broken = error.message
    results: list[ActionResult] = []
    for number, action in enumerate(plan.actions, start=1):
        output = ""
        if skipped:
            state, reason = ActionState.SKIPPED, skipped
        elif isinstance(action, Read | Prune):
            state, reason = ActionState.SKIPPED, "means something in a conversation only"
        elif broken:
            state, reason = ActionState.FAILED, f"nothing was written: {broken}"
        elif isinstance(action, Execute):
            state, reason, output = await _executed(action, hands)
        else:
            state, reason = ActionState.DONE, ""
        if state is ActionState.FAILED:
            skipped = f"action {number} ({action.verb} {action.subject[:80]}) failed"
        results.append(
            ActionResult(
                number=number,
                verb=action.verb,
                subject=action.subject,
                line=action.line,
                state=state,
                reason=reason,
                output=output,
            )
        )
    return ExecutionReport(title=plan.title, actions=tuple(results))


async def _executed(action: Execute, hands: Hands) -> tuple[ActionState, str, str]:
    """Runs a command; returns its state, the reason and the output."""
    if hands.run is None:
        return ActionState.SKIPPED, "commands were not confirmed", ""
    done = await hands.run(action)
    step, output = failed_step(action.command, hands.token, done.output)
    if done.ok:
        return ActionState.DONE, "", output
    ended = "was ended by a signal" if done.exit_code is None else f"ended with exit code {done.exit_code}"
    reason = f"`{step or action.subject}` {f'hit its {done.limit} limit' if done.limit else ended}"
    if action.allow_failure:
        return ActionState.DONE, f"{reason}, which is allowed", output
    return ActionState.FAILED, reason, output


NO_PLAN = frozenset({"plan.none", "plan.encoding", "plan.too_many"})
"""Codes of the findings on a text without an action plan."""


class PlanKind(StrEnum):
    """The kind of a plan's text."""

    ACTIONS = "action plan"
    TASKS = "task plan"
    BOTH = "action plan and task plan"
    NEITHER = "no plan"


def kind_of(text: str) -> PlanKind:
    """Returns the kind of plan in a text; a goal or a near miss of a task's heading makes it a task plan.

    Beside an action plan only tasks under headings count: its actions may hold lists of their own.
    """
    found, reading = parse_plan(text), read_task_plan(text)
    acts = found.plan is not None or any(finding.code not in NO_PLAN for finding in found.findings)
    if acts:
        return PlanKind.BOTH if reading.plan.headed else PlanKind.ACTIONS
    meant = reading.plan.tasks or reading.plan.goal or reading.findings
    return PlanKind.TASKS if meant else PlanKind.NEITHER


def judge_task_plan(text: str, path: str, around: Surroundings) -> Judged:
    """Returns a run's findings on a person's plan before the build, by deterministic rules alone. Never raises."""
    reading = read_task_plan(text, path)
    plan = reading.plan
    breakdown = breakdown_of(plan, around.story or UNNAMED)
    findings = [
        *reading.findings,
        *check_task_plan(plan, around.story or ""),
        *check_length(text, path, Settings().plan.min_chars),
        *check_planned(plan, breakdown, frozenset(around.files or ()), known_packages(around)),
        *_unwritable(breakdown, around),
    ]
    return Judged(Status.OK, tuple(sorted(findings, key=lambda finding: finding.where.line or 0)), is_plan=True)


def judge_no_plan(text: str, path: str) -> Judged:
    """Returns the finding on a text without a plan."""
    plan = read_task_plan(text, path).plan
    length = check_length(text, path, Settings().plan.min_chars)
    said = [*parse_plan(text).findings, *check_task_plan(plan, ""), *length]
    return Judged(Status.REFUSED, tuple(said), is_plan=True)


def mixed(path: str) -> Judged:
    """Returns the finding on a text with both kinds of plan."""
    message = "the text holds an action plan (`## Action Plan`) and tasks (`### Task N`)"
    fix = "Keep one: actions are carried out by `apply`, tasks are built by `run --plan`."
    said: Finding = major("task_plan.mixed", message, where=Where(file=path or None), fix=fix)
    return Judged(Status.OK, (said,))
