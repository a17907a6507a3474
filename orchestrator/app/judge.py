"""`check`: answers judged by hand, against a folder that need be no repository."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.app.plan_files import find_obstacles, project_files, read_texts
from orchestrator.app.plans import check_plan
from orchestrator.checks.paths import read_syntax, shell_files, syntax_command
from orchestrator.contract.freeze import worth_freezing
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import InstalledPackages
from orchestrator.core.delivery import Delivery
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.paths import is_manifest, unsafe_reason
from orchestrator.environments.installed import read_environment
from orchestrator.environments.node_layers import write_files
from orchestrator.sandbox.choose import open_sandbox
from orchestrator.sandbox.command_runner import LimitedCommandRunner, scratch_folder
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.sprint.judge import (
    Judged,
    PlanKind,
    Surroundings,
    judge,
    judge_no_plan,
    judge_task_plan,
    kind_of,
    mixed,
    read_plan,
    suite_of_file,
)


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
    files = _files(options.repo) if options.repo is not None else None
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
        obstacles=_obstacles_in(options.repo, files or ()),
    )
    return judge(kind, text, around)


def _obstacles_in(repo: Path | None, files: Sequence[str]) -> Callable[[Iterable[str]], Mapping[str, str]]:
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


TEST_SOURCES = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Files that are a suite themselves and no answer with one."""


def check_any_plan(text: str, options: CheckOptions) -> tuple[PlanKind, Judged]:
    """Returns which plan a text holds, and what the checks say about it. Raises ConfigError. Blocks."""
    # Both kinds are Markdown: headings decide.
    kind = kind_of(text)
    if kind is PlanKind.ACTIONS:
        return kind, check_plan(text, options.repo, options.context, options.story).judged
    if kind is PlanKind.TASKS:
        files = _files(options.repo) if options.repo is not None else None
        manifests = sorted(path for path in files or () if is_manifest(path))
        texts = read_texts(options.repo, manifests) if options.repo is not None else {}
        obstacles = _obstacles_in(options.repo, files or ())
        around = Surroundings(story=options.story, files=files, texts=texts, obstacles=obstacles)
        return kind, judge_task_plan(text, options.file, around)
    return kind, mixed(options.file) if kind is PlanKind.BOTH else judge_no_plan(text, options.file)


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
