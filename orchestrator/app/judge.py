"""Judges answers outside a run: its checks against the files of a folder, which need be no repository."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.action_plan import parse_plan, plan_in
from orchestrator.answers.task_plan import read_task_plan
from orchestrator.answers.whole_files import Wanted, is_whole_files, read_whole_files
from orchestrator.app.plan_files import find_obstacles, project_files, read_texts
from orchestrator.checks.action_plan import named_paths, read_plan_delivery, suite_value
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import read_breakdown, unwritable_files, unwritten_files
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.lost_exports import Lost, lost_exports, users_of
from orchestrator.checks.paths import Around, read_syntax, shell_files, syntax_command
from orchestrator.checks.suite import check_suite, read_suite
from orchestrator.checks.whole_files import suite_of_files
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.packages import dependencies_of
from orchestrator.code.python.tests import test_functions
from orchestrator.contract.enforce import check_delivery, without_outside
from orchestrator.contract.freeze import freeze, worth_freezing
from orchestrator.contract.world import NOTHING_KNOWN
from orchestrator.core.action_plan import ActionPlan
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, PlanValidationResult, Task
from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.delivery import Delivery
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding, Severity, Where, blocking, minor
from orchestrator.core.paths import is_manifest, unsafe_reason
from orchestrator.core.value import AnswerValue
from orchestrator.environments.installed import read_environment
from orchestrator.environments.node_layers import write_files
from orchestrator.sandbox.choose import open_sandbox
from orchestrator.sandbox.command_runner import LimitedCommandRunner, scratch_folder
from orchestrator.settings import Settings
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.story.planning import judge_text
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


def judge_persons_plan(text: str, path: str, around: Surroundings) -> tuple[str, Judged]:
    """Returns which kind of plan a person's text is, and a run's findings on it, by rules alone: one without a task is
    the architect's to follow, or no plan where it is too short. Never raises."""
    files, packages, least = frozenset(around.files or ()), known_packages(around), Settings().plan.min_chars
    breakdown, said = judge_text(text, path, around.story or UNNAMED, files, packages, min_chars=least)
    if breakdown is None and blocking(said) and not read_task_plan(text).plan.tasks:
        return "no plan", Judged(Status.REFUSED, (*parse_plan(text).findings, *blocking(said)), is_plan=True)
    findings = [*said, *(_unwritable(breakdown, around) if breakdown else ())]
    kind = "text for the architect" if breakdown is None else "task plan"
    return kind, Judged(Status.OK, tuple(sorted(findings, key=lambda one: one.where.line or 0)), is_plan=True)


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of `check`, as typed."""

    story: str | None = None
    repo: Path | None = None
    context: tuple[str, ...] | None = None
    """Files of the task, of an action plan those that were shown before; None: that is unknown."""
    plan: str | None = None
    """Text of the breakdown that a delivery belongs to."""
    environment: str = "auto"
    """Place of the project's packages: `auto`, `none` or a folder."""
    file: str = ""
    """Path of the text's file from the project's root, where there is one; a suite's source is known by it."""


def check(kind: str, text: str, options: CheckOptions) -> Judged:
    """Returns what a run's checks say about an answer. Raises ConfigError for options that cannot be used."""
    if kind == "suite" and options.file.lower().endswith(TEST_SOURCES):
        text = suite_of_file(options.file, text)
    context = options.context or ()
    unsafe = [f"{path!r}: {reason}" for path in context if (reason := unsafe_reason(path))]
    if unsafe:
        raise ConfigError(f"--context names no file of a repository: {'; '.join(unsafe)}")
    files = files_in(options.repo) if options.repo is not None else None
    # Reading every file of a large folder would take longer than the checks.
    wanted = {path for path in files or () if worth_freezing(path)}
    if kind == "suite":
        wanted |= set(context) & set(files or ())
    around = Surroundings(
        story=options.story,
        files=files,
        texts=read_texts(options.repo, sorted(wanted)) if options.repo is not None else {},
        read=partial(read_texts, options.repo) if options.repo is not None else None,
        task_files=context or None,
        plan=_plan(options.plan, options.story) if options.plan is not None else None,
        installed=read_environment(options.environment, options.repo) if kind == "delivery" else InstalledPackages(),
        check_shell=check_shell,
        obstacles=obstacles_in(options.repo, files or ()),
    )
    return judge(kind, text, around)


def obstacles_in(repo: Path | None, files: Sequence[str]) -> Callable[[Iterable[str]], Mapping[str, str]]:
    """Returns what finds the paths below a folder where no text can be written; none where there is no folder."""
    return (lambda _paths: {}) if repo is None else partial(find_obstacles, repo, files)


def check_shell(delivery: Delivery) -> list[Finding]:
    """Has bash read the shell files of a delivery, confined as the commands of a run are by default. Blocks.

    Where commands cannot be confined the files are not read, which is a minor finding.
    """
    paths = shell_files(delivery.files)
    texts = {str(change.path): change.content for change in delivery.files if change.path in paths}
    return read_syntax(paths, asyncio.run(_run_on_copies(texts, syntax_command(paths)))) if paths else []


async def _run_on_copies(files: Mapping[str, str], command: str) -> str:
    """Returns the output of a confined command in a folder that holds only `files`, or why it could not be run."""
    path = os.environ.get("PATH", os.defpath)
    try:
        runner = LimitedCommandRunner(CommandSettings(), path, sandbox=await open_sandbox(SandboxSettings(), path))
    except ConfigError as error:
        return error.message
    async with scratch_folder() as folder:
        await asyncio.to_thread(write_files, folder, files)
        return (await runner.run(["/bin/sh", "-c", command], cwd=folder)).output


def files_in(repo: Path) -> tuple[str, ...]:
    """Returns the project's files. Raises ConfigError where it is no folder. Blocks."""
    if not repo.is_dir():
        raise ConfigError(f"--repo {repo} is no folder")
    return asyncio.run(project_files(repo))


def _plan(text: str, story: str | None) -> Breakdown:
    plan, findings = read_plan(text, story)
    blocked = blocking(findings)
    if plan is None or blocked:
        raise ConfigError("the file of --breakdown holds no breakdown that could be accepted", findings=blocked)
    unsafe = [path for task in plan.tasks for path in task.files_to_create if unsafe_reason(path)]
    if unsafe:
        raise ConfigError(f"the file of --breakdown names unsafe paths: {', '.join(repr(path) for path in unsafe)}")
    return plan


TEST_SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Files that are a suite themselves and no answer with one."""


def find_path_in(repo: Path | None, file: str) -> str:
    """Returns the path from the project's root; of a file that lies elsewhere its name."""
    path, root = Path(file), (repo or Path()).resolve()
    if not path.is_absolute() and not path.exists():
        return path.as_posix()
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def judged_json(judged: Judged) -> dict[str, Any]:
    """Returns what was found, for programs."""
    return {
        "valid": judged.valid,
        "severity": judged.severity.value,
        "findings": [finding.model_dump(mode="json") for finding in judged.findings],
    }
