"""`check`: what is read from a folder before an answer is judged by hand. No git repository is needed."""

import asyncio
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from orchestrator.adapters.installed_packages import read_environment
from orchestrator.adapters.project_survey import project_files, read_texts
from orchestrator.adapters.prompt_files import load_prompts
from orchestrator.adapters.scratch_files import run_on_copies
from orchestrator.checks.shell_syntax import read_syntax, shell_files, syntax_command
from orchestrator.contract.freeze import worth_freezing
from orchestrator.contract.manifests import is_manifest
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, blocking
from orchestrator.domain.installed import InstalledPackages
from orchestrator.domain.paths import unsafe_reason
from orchestrator.errors import ConfigError
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import packaged
from orchestrator.sprint.by_hand import Judged, Surroundings, judge, read_plan
from orchestrator.sprint.task_plan_by_hand import judge_task_plan

PROMPTS = {"breakdown": "architect/breakdown", "delivery": "developer/delivery", "suite": "tester/suite"}
"""Kind of answer → the prompt that asks for it."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of `check`, as typed."""

    story: str | None = None
    repo: Path | None = None
    context: tuple[str, ...] = ()
    plan: str | None = None
    """Text of the breakdown that a delivery belongs to."""
    environment: str = "auto"
    """Where the project's packages are installed: `auto`, `none` or a folder."""


def check(kind: str, text: str, options: CheckOptions) -> Judged:
    """What a run's checks say about an answer. Raises ConfigError for options that cannot be used."""
    unsafe = [f"{path!r}: {reason}" for path in options.context if (reason := unsafe_reason(path))]
    if unsafe:
        raise ConfigError(f"--context names no file of a repository: {'; '.join(unsafe)}")
    files = _files(options.repo) if options.repo is not None else None
    wanted = {path for path in files or () if worth_freezing(path)}
    if kind == "suite":
        wanted |= set(options.context) & set(files or ())
    library = _packaged_prompts()
    around = Surroundings(
        story=options.story,
        files=files,
        texts=read_texts(options.repo, sorted(wanted)) if options.repo is not None else {},
        read=partial(read_texts, options.repo) if options.repo is not None else None,
        task_files=options.context or None,
        plan=_plan(options.plan, options.story) if options.plan is not None else None,
        installed=read_environment(options.environment, options.repo) if kind == "delivery" else InstalledPackages(),
        examples=library.examples(PROMPTS[kind]),
        worked=library.worked(PROMPTS[kind]),
        check_shell=check_shell,
    )
    return judge(kind, text, around)


def check_shell(delivery: Delivery) -> list[Finding]:
    """Has bash read the shell files of a delivery. Blocks."""
    paths = shell_files(delivery.files)
    texts = {str(change.path): change.content for change in delivery.files if change.path in paths}
    return read_syntax(paths, run_on_copies(texts, syntax_command(paths))) if paths else []


@cache
def _packaged_prompts() -> PromptLibrary:
    """The packaged prompts: an answer to others is judged in its run."""
    return PromptLibrary(load_prompts(packaged("system_prompts"), None))


def check_task_plan(text: str, path: str, options: CheckOptions) -> Judged:
    """What a run says about a person's plan of tasks. Raises ConfigError for a folder that is none."""
    files = _files(options.repo) if options.repo is not None else None
    manifests = sorted(path for path in files or () if is_manifest(path))
    texts = read_texts(options.repo, manifests) if options.repo is not None else {}
    return judge_task_plan(text, path, Surroundings(story=options.story, files=files, texts=texts))


def _files(repo: Path) -> tuple[str, ...]:
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
