"""One answer judged outside a run: the same door and the same checks, against a project's files. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.action_plan import plan_in
from orchestrator.checks.action_plan import named_paths, read_plan_delivery, suite_value
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.lost_exports import Lost, lost_exports, users_of
from orchestrator.checks.paths import Around, copied_delivery, copied_plan, copied_suite
from orchestrator.checks.suite import check_suite, read_suite
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.python.tests import test_functions
from orchestrator.contract.enforce import check_delivery, without_outside
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.contract.manifests import dependencies_of
from orchestrator.contract.world import NOTHING_KNOWN
from orchestrator.core.action_plan import ActionPlan
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, PlanValidationResult, Task
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, Severity, Where, blocking, minor
from orchestrator.core.paths import is_manifest
from orchestrator.core.suite import InstalledPackages
from orchestrator.core.value import AnswerValue
from orchestrator.core.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from orchestrator.story.project_scan import runtime_of, runtimes_of, scan_paths

UNNAMED = "STORY"
"""The story's id where neither the caller nor the answer names one."""
_NEEDS_PROJECT = frozenset({"contract.dependency", "contract.import", "contract.transitive", "contract.missing_module"})
_NEEDS_TASK = frozenset({"contract.other_task", "contract.file"})


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an answer is held against; what is None is unknown, and the checks that need it are left out."""

    story: str | None = None
    files: tuple[str, ...] | None = None
    """The project's files."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Those of the manifests, at least."""
    read: Callable[[Iterable[str]], Mapping[str, str]] | None = None
    """Reads more of the project's files: those that a delivery changes, and sources once it takes something away."""
    task_files: tuple[str, ...] | None = None
    """What the task of a delivery lists."""
    plan: Breakdown | None = None
    """The accepted breakdown that a delivery's contract is frozen from."""
    installed: InstalledPackages = NOTHING_KNOWN
    """The packages of the project's environment."""
    worked: tuple[str, ...] = ()
    """That prompt's worked examples: none of them is an answer."""
    check_shell: Callable[[Delivery], Sequence[Finding]] = lambda _delivery: ()
    """What bash says about the shell files of a delivery."""


class Judged(NamedTuple):
    """What is said of one answer."""

    status: Status
    findings: tuple[Finding, ...]
    is_plan: bool = False
    """Whether it is a story's plan, whose severity is counted."""

    @property
    def severity(self) -> Severity:
        """The gravest one's; of a plan as PlanValidationResult says, where minor findings count for nothing."""
        if self.is_plan:
            return PlanValidationResult.of(self.findings).severity
        return max((finding.severity for finding in self.findings), key=lambda one: one.rank, default=Severity.NONE)

    @property
    def valid(self) -> bool:
        """Whether a run would take the answer as it is."""
        return self.status in {Status.OK, Status.REPAIRED} and not blocking(self.findings)


def judge(kind: str, text: str, around: Surroundings) -> Judged:
    """What the checks of a run say about an answer of this kind (a key of KINDS). Never raises."""
    contract, check = KINDS[kind]
    extraction = extract(text, contract)
    problems = extraction.problems
    if extraction.value is None:
        return Judged(extraction.status, problems, kind == PLAN_KIND)
    findings = (*problems, *check(extraction.value, _story(extraction, around), around))
    return Judged(extraction.status, findings, kind == PLAN_KIND)


def read_plan(text: str, story: str | None) -> tuple[Breakdown | None, tuple[Finding, ...]]:
    """The breakdown in a text, and why there is none."""
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
    """Normalised names in the manifests."""
    found = (dependencies_of(path, text) for path, text in around.texts.items() if is_manifest(path))
    return frozenset(name for names in found for name in names)


def _breakdown(value: Any, story: str, around: Surroundings) -> Iterator[Finding]:
    plan, said = read_breakdown(value, story)
    yield from said
    if plan is None:
        return
    yield from copied_plan(plan, around.worked)
    if plan.architectural_conflict.detected:
        fix = "Decide which gives way: change the story or the architecture, or plan the story anew with a comment."
        where = Where(story=story, field="architectural_conflict")
        message = f"a conflict was detected: {plan.architectural_conflict.told}"
        yield minor("breakdown.conflict", message, where=where, fix=fix)
    yield from check_breakdown(plan, frozenset(around.files or ()), known_packages(around))


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
        yield from copied_delivery(delivery, around.worked)
        yield from judge_delivery(delivery, around)


def _with_texts(around: Surroundings, paths: Iterable[str]) -> Surroundings:
    """With the texts of those paths that are there."""
    wanted = (set(paths) & set(around.files or ())) - around.texts.keys()
    if around.read is None or not wanted:
        return around
    return replace(around, texts={**around.texts, **around.read(sorted(wanted))})


def _of_plan(plan: ActionPlan, story: str, around: Surroundings) -> tuple[Delivery | None, list[Finding]]:
    """The delivery that an action plan comes to; it names no task: the one whose files it writes is meant."""
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
    """Contents and contract of a well-formed delivery, however it came."""
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
    yield from check_content(delivery, around.texts, known, lost)
    yield from around.check_shell(delivery)
    left_out = _NEEDS_PROJECT if around.files is None else frozenset[str]()
    if around.plan is None and around.task_files is None:
        left_out |= _NEEDS_TASK
    before = {path: text for path, text in around.texts.items() if path in delivery.paths}
    said = check_delivery(contract, delivery, before, around.installed)
    yield from (one for one in said if one.code not in left_out)
    yield from check_whole(delivery, own, {**dict.fromkeys(around.files or (), ""), **before})


def _users(lost: Sequence[Lost], around: Surroundings) -> Mapping[str, str]:
    if around.read is None or all(one.route for one in lost):
        return {}
    texts = around.read(scan_paths(around.files or ()))
    using = {path for paths in users_of(lost, texts).values() for path in paths}
    return {path: text for path, text in texts.items() if path in using}


def _contract(delivery: Delivery, around: Surroundings) -> ArchitectureContract:
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
    as_json, wrong = suite_value(plan) if plan is not None else (value, ())
    suite, said = read_suite(as_json, story) if as_json is not None else (None, [])
    yield from (*wrong, *said)
    if suite is not None:
        yield from copied_suite(suite, around.worked)
        yield from check_suite(suite, required_criteria=None)


def suite_of_file(path: str, text: str) -> str:
    """The answer that a test file is by itself: its name, its text, and its tests as cases."""
    names = test_functions(text) if path.endswith(".py") else test_names(text, path)
    return json.dumps({"test_file": path, "test_content": text, "test_cases": list(names)})


PLAN_KIND = "breakdown"
Check = Callable[[Any, str, Surroundings], Iterator[Finding]]
KINDS: Mapping[str, tuple[type[AnswerValue], Check]] = {
    PLAN_KIND: (BreakdownAnswer, _breakdown),
    "delivery": (DeliveryAnswer, _delivery),
    "suite": (SuiteAnswer, _suite),
}
"""What can be judged by hand: the contract of its extraction, and its checks."""
