"""Runs a task's commands in the story's worktree, the plan's, then the delivery's, and updates lock files."""

import hashlib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from posixpath import basename, dirname
from typing import NamedTuple

from orchestrator.checks.environment import command_cause
from orchestrator.checks.paths import read_syntax, shell_files, syntax_command
from orchestrator.code.parsers import parse_json, parse_toml
from orchestrator.code.shell import failed_step, packages_ready, script
from orchestrator.core.action_plan import Execute
from orchestrator.core.breakdown import Task
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.delivery import Delivery, FileChange, LockFiles, is_lock, is_read
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import LOCKS
from orchestrator.core.suite import CommandResult
from orchestrator.core.value import listed
from orchestrator.story.context import Stage

_NAMED = 5
"""Limit on the leftover paths that a message names."""
# A test run leaves files that no one needs; the next run makes them again.
_TESTS = re.compile(r"\b(?:pytest|unittest|jest|vitest|mocha|tox|nox|node --test|(?:npm|pnpm|yarn)(?: run)? test)\b")
"""Matches commands that are run for their output, so that their leftovers do not matter."""
_LITTER = re.compile(r"(?:^|/)(?:\.?coverage|\.nyc_output|htmlcov|\.eslintcache)(?:/|$)|\.(?:pyc|log|tsbuildinfo)$")
"""Matches leftovers of tools that nothing else reads."""
FAILED = "command.failed"
OUTPUT_CAP = 4000
"""Characters of a failed command's output that become feedback (its end)."""


class Commanded(NamedTuple):
    """Results of a task's commands."""

    findings: tuple[Finding, ...] = ()
    """A major one for the first failure, with its output and the skipped commands; minor ones for files made and not
    kept."""
    lacks: Finding | None = None
    """Replaces the major one when the command failed for lack of something that no file can supply."""
    made: tuple[FileChange, ...] = ()
    """The task's own files that commands changed."""


async def run_commands(
    stage: Stage,
    task: Task,
    delivery: Delivery | None,
    attempt: int,
    own: Sequence[str],
    locks: Sequence[FileChange] = (),
) -> Commanded:
    """Runs the commands, the plan's first. `attempt` is the run of the suite that the task is built for.

    The worktree has the delivery's files, the task's `own` files as earlier commands left them, and `locks`. Each
    command has the time limit of a test run.
    """
    made: dict[str, FileChange] = {}
    told: list[Finding] = []
    lacks: Finding | None = None
    planned = (Execute(command=task.command),) if task.command else ()
    commands = (*planned, *(delivery.commands if delivery else ()))
    for number, command in enumerate(commands):
        result = await _run(stage, command, delivery, own, (*locks, *made.values()))
        made |= {change.path: change for change in result.made}
        stops = not result.ok and not command.allow_failure
        found = [_failed(stage, task, command, result, commands[number + 1 :])] if stops else []
        await _tell(stage, task, command, result, found, attempt)
        told += [_not_kept(task, command, left)] if (left := _left(command, result)) else []
        if found and found[0].code == FAILED:
            return Commanded((*found, *told))
        if found:
            # Results of earlier commands are kept: the delivery may continue without this one.
            lacks = found[0]
            break
    return Commanded(tuple(told), lacks, tuple(made.values()))


async def check_shell(stage: Stage, delivery: Delivery) -> list[Finding]:
    """Checks the shell files of a delivery with bash, in the story's worktree."""
    paths = shell_files(delivery.files)

    async def work(_step_id: str) -> CommandResult:
        await stage.workspace.write(stage.story_id, delivery.files, delivery.removed)
        root = stage.workspace.root(stage.story_id)
        return await stage.runner.command(root, syntax_command(paths), key=stage.environment_key)

    return read_syntax(paths, (await stage.step.step("shell", work, CommandResult)).output) if paths else []


async def _run(
    stage: Stage, command: Execute, delivery: Delivery | None, own: Sequence[str], made: tuple[FileChange, ...]
) -> CommandResult:
    files, removed = (delivery.files, delivery.removed) if delivery else ((), ())

    async def work(_step_id: str) -> CommandResult:
        await stage.workspace.write(stage.story_id, (*files, *made), removed)
        root = stage.workspace.root(stage.story_id)
        text = _script(command, _token(stage, command))
        limit = stage.policies.test.timeout_s
        timeout_s = min(command.timeout_s, limit) if command.timeout_s is not None else None
        result = await stage.runner.command(root, text, key=stage.environment_key, timeout_s=timeout_s, own=own)
        paths = [*(change.path for change in result.made), *result.left]
        ignored = await stage.workspace.ignored(stage.story_id, paths) if paths else ()
        return result.model_copy(update={"ignored": tuple(path for path in ignored if not _LITTER.search(path))})

    return await stage.step.step("command", work, CommandResult)


async def _tell(
    stage: Stage, task: Task, command: Execute, result: CommandResult, found: Sequence[Finding], attempt: int
) -> None:
    verdict = Verdict.PASSED if result.ok else Verdict.FAILED if found else Verdict.ALLOWED
    left = stage.policies.test.max_attempts - attempt
    allowed = " (may fail)" if command.allow_failure and not result.ok else ""
    message = f"`{command.subject}` ended with {result.limit or result.exit_code}{allowed}{_kept(command, result)}"
    await stage.decide(
        "command_finished", message, Loop.BUILD, verdict, findings=found, attempt=attempt, left=left, task=task.task_id,
        level=Level.INFO if result.ok else Level.WARN, duration_ms=round(result.duration_s * 1000),
    )  # fmt: skip


def _kept(command: Execute, result: CommandResult) -> str:
    made = [change.path for change in result.made if change.path not in result.ignored]
    kept = f"; made {', '.join(made)}" if made else ""
    return kept + (f"; made and not kept: {listed(left, _NAMED)}" if (left := _left(command, result)) else "")


def _left(command: Execute, result: CommandResult) -> list[str]:
    """Returns what no commit has of what the command made; what tests leave and git ignores is of no use to others."""
    ignored = () if _TESTS.search(command.command) else result.ignored
    left = (path for path in result.left if path not in result.ignored and not _LITTER.search(path))
    return [*left, *ignored]


def _not_kept(task: Task, command: Execute, left: Sequence[str]) -> Finding:
    return minor(
        "command.not_kept",
        f"`{command.subject}` made what no commit has and is not kept: {listed(left, _NAMED)}",
        where=Where(task=task.task_id),
        fix="List files of the repository among the task's files; name the command in environment.build where each "
        "tree needs what it makes.",
    )


def _script(command: Execute, token: str) -> str:
    """Returns the shell script, with folder and environment first; a plain command of the plan is unchanged."""
    if command.cwd == "." and not command.env and "\n" not in command.command and "&" not in command.command:
        return packages_ready(command.command)
    lines = [f"cd -- {shlex.quote(command.cwd)} || exit 1"] if command.cwd != "." else []
    return "\n".join([*lines, *command.exports, script(command.command, token, at_root=command.cwd == ".")])


def _token(stage: Stage, command: Execute) -> str:
    """Returns the token that marks a failed step in a script's output; the same on a replay."""
    return f"step-{hashlib.sha256(f'{stage.step.workflow_id} {command.command}'.encode()).hexdigest()[:16]}"


def _failed(stage: Stage, task: Task, command: Execute, result: CommandResult, skipped: Sequence[Execute]) -> Finding:
    step, output = failed_step(command.command, _token(stage, command), result.output)
    why = f"hit its {result.limit} limit" if result.limit else f"ended with exit code {result.exit_code}"
    message = f"`{step or command.command}` {why}"
    if skipped:
        message += f"; skipped for that: {', '.join(f'`{one.subject}`' for one in skipped)}"
    cause = None if result.limit else command_cause(output[-OUTPUT_CAP:])
    if cause is not None:
        return cause.model_copy(update={"message": f"{message}: {cause.message}", "where": Where(task=task.task_id)})
    return major(
        FAILED,
        f"{message}:\n{output[-OUTPUT_CAP:]}",
        where=Where(task=task.task_id),
        fix="change the files so that the command succeeds",
    )


_MOST_READ = 500  # manifests and settings read for one step


async def follow_locks(stage: Stage, delivery: Delivery, own: Sequence[str]) -> LockFiles:
    """Returns lock files of the branch and of the task's `own` files, updated for the delivery's manifests."""
    changed: dict[str, str] = {change.path: change.content for change in delivery.files if is_read(change.path)}
    if not changed:
        return LockFiles()

    async def work(_step_id: str) -> LockFiles:
        files = [path for path in await stage.workspace.files(stage.story_id) if is_read(path)][:_MOST_READ]
        before = await stage.workspace.read(stage.story_id, files)
        locks = locks_to_follow(changed, before, {*files, *own} - {*changed})
        large = [lock for lock in locks if lock in files and lock not in before]
        made = await _made(stage, {**before, **changed}, [lock for lock in locks if lock not in large])
        return made.model_copy(update={"told": (*made.told, *(f"`{lock}` is too large to be read" for lock in large))})

    return await stage.step.step("lock", work, LockFiles)


async def merged_locks(
    stage: Stage, tree: str, onto: str, delivered: Mapping[str, str], locks: Sequence[str]
) -> LockFiles:
    """Regenerates `locks`, which both sides of a merge changed, from the manifests of `tree` and `delivered`."""

    async def work(_step_id: str) -> LockFiles:
        paths = [path for path in await stage.workspace.files_at(tree) if is_read(path)][:_MOST_READ]
        texts = await stage.workspace.read_at(tree, paths)
        texts |= await stage.workspace.read_at(onto, locks)  # those in the tree have git's conflict markers
        made = await _made(stage, {**texts, **delivered}, locks)
        kept = {lock: texts[lock] for lock in locks if lock in texts} | {one.path: one.content for one in made.files}
        files = tuple(FileChange(path=path, content=text) for path, text in kept.items())
        return made.model_copy(update={"files": files})

    return await stage.step.step("lock", work, LockFiles)


async def _made(stage: Stage, texts: Mapping[str, str], locks: Sequence[str]) -> LockFiles:
    return await stage.runner.follow_locks(texts, locks) if locks else LockFiles()


def lock_left(told: str, task: str) -> Finding:
    """Returns the finding on an outdated lock file; `told` names it and the reason."""
    message = f"out of step with its manifest: {told}"
    return minor("delivery.lock_left", message, where=Where(task=task), fix="Make it with its own tool, and commit it.")


_OF_PACKAGE = (
    *("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta"),
    *("overrides", "resolutions", "pnpm", "workspaces"),
)


def locks_to_follow(changed: Mapping[str, str], before: Mapping[str, str], paths: Collection[str]) -> tuple[str, ...]:
    """Those lock files among `paths` whose manifests ask for something else in `changed` than they did `before`."""
    other = [path for path, text in changed.items() if _asked(path, text) != _asked(path, before.get(path, ""))]
    return tuple(
        lock
        for lock in sorted(path for path in paths if is_lock(path))
        if any(basename(path) in LOCKS[basename(lock)] and _is_below(path, dirname(lock)) for path in other)
    )


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _asked(path: str, text: str) -> object:
    """Returns a manifest's requirements; the whole text when they cannot be read."""
    with suppress(ValueError, AttributeError):  # an invalid manifest is compared as text
        if basename(path) == "package.json":
            told = parse_json(text)
            return [told.get(key) or {} for key in _OF_PACKAGE]
        if basename(path) == "pyproject.toml":
            told = parse_toml(text)
            tools = told.get("tool", {})
            return [
                told.get("project"),
                told.get("dependency-groups"),
                *(tools.get(key) for key in ("uv", "poetry", "pdm")),
            ]
    return text
