"""`check plan` and `apply`: what is read from a folder for an action plan, what is written into it and run there."""

import asyncio
import difflib
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator.adapters.command_runner import LimitedCommandRunner
from orchestrator.adapters.project_survey import project_files, read_texts, those_there
from orchestrator.adapters.safe_files import write_below
from orchestrator.checks.action_plan import PlanWorld
from orchestrator.domain.action_plan import Execute, is_url
from orchestrator.domain.execution import ExecutionReport
from orchestrator.domain.file_kinds import is_manifest
from orchestrator.domain.paths import unsafe_reason
from orchestrator.domain.sandbox import Access
from orchestrator.domain.testing import CommandResult
from orchestrator.errors import ConfigError, WorkspaceError
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.plan_by_hand import Hands, JudgedPlan, carry_out, judge_plan, paths_of
from orchestrator.syntax.shell_chain import script
from orchestrator.wiring.runners import command_path
from orchestrator.wiring.sandboxes import sandbox_for

MAX_TEXT = 16 * 1024 * 1024
"""Bytes of a file that a plan may change."""
MAX_DIFF_LINES = 20_000
"""Lines of a file whose difference is shown line by line."""


def check_plan(text: str, repo: Path | None, context: tuple[str, ...] | None, story: str | None = None) -> JudgedPlan:
    """What the checks say about a plan; `context` None: nobody knows what was shown. Raises ConfigError."""
    return judge_plan(text, None if repo is None else _world(text, repo, context), story)


def _world(text: str, repo: Path, context: tuple[str, ...] | None) -> PlanWorld:
    unsafe = [path for path in context or () if unsafe_reason(path) and not is_url(path)]
    if unsafe:
        raise ConfigError(f"--context names no file of a repository: {', '.join(map(repr, unsafe))}")
    if not repo.is_dir():
        raise ConfigError(f"--repo {repo} is no folder")
    named = paths_of(text)
    listed = set(asyncio.run(project_files(repo)))
    there = those_there(repo, named)
    wanted = sorted({*there, *(path for path in listed if is_manifest(path))})
    return PlanWorld(
        paths=frozenset({*(listed - set(named)), *there}),
        texts=read_texts(repo, wanted, MAX_TEXT),
        context=None if context is None else frozenset(context),
    )


def differences(judged: JudgedPlan) -> Iterator[str]:
    """What a plan changes, as lines of a unified diff, file by file."""
    if judged.applied is None or judged.world is None:
        return
    for path, new in judged.applied.changes.items():
        old = judged.world.texts.get(path)
        names = "/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}"
        lines = (old or "").split("\n"), (new or "").split("\n")
        body: list[str] = []
        if max(map(len, lines)) > MAX_DIFF_LINES:
            body = [f"@@ {len(lines[0])} lines, then {len(lines[1])} @@"]
        elif old and new and old.replace("\r\n", "\n") == new.replace("\r\n", "\n"):
            body = ["@@ line ends only @@"]
        else:
            body = list(difflib.unified_diff(*lines, lineterm=""))[2:]
        yield from (f"--- {names[0]}", f"+++ {names[1]}", *(line.rstrip("\r") for line in body))


async def apply(
    judged: JudgedPlan, repo: Path, settings: Settings, environment: Environment, *, commands: bool
) -> ExecutionReport:
    """Carry a checked plan out in a folder: all files or none, then its commands when they may be run.

    Raises ConfigError, before anything is written, for commands that cannot be confined as the settings ask for.
    """
    token = f"step-{secrets.token_hex(8)}"
    sandbox = await sandbox_for(settings, environment) if commands else None
    runner = LimitedCommandRunner(settings.commands, command_path(environment), sandbox=sandbox)
    access = _all_of(repo)
    plan, applied, world = judged.extraction.plan, judged.applied, judged.world
    if plan is None or applied is None or world is None or not judged.judged.valid:
        raise ConfigError("the plan is not valid and cannot be applied", findings=judged.judged.findings)

    async def write(changes: Mapping[str, str | None]) -> None:
        await asyncio.to_thread(_write, repo, world, changes)

    async def run(action: Execute) -> CommandResult:
        if not await asyncio.to_thread(_is_below, repo, action.cwd):
            return CommandResult(argv=(), exit_code=1, output="cwd leads out of the folder through a link\n")
        argv = ("/bin/sh", "-c", script(action.command, token))
        return await runner.run(argv, cwd=repo / action.cwd, env=action.env, timeout_s=action.timeout_s, access=access)

    return await carry_out(plan, applied, Hands(write=write, run=run if commands else None, token=token))


def _all_of(repo: Path) -> Access:
    return Access(tree=repo.absolute())


def _is_below(repo: Path, folder: str) -> bool:
    return (repo / folder).resolve().is_relative_to(repo.resolve())


def _write(repo: Path, world: PlanWorld, changes: Mapping[str, str | None]) -> None:
    """All changes or none, and only to files that are still as they were when the plan was checked."""
    was = {path: world.texts[path] for path in changes if path in world.texts}
    if read_texts(repo, changes, MAX_TEXT) != was or those_there(repo, changes) != world.paths & changes.keys():
        raise WorkspaceError("a file was changed since the plan was checked")
    contents = [(path, text.encode()) for path, text in changes.items() if text is not None]
    write_below(repo.resolve(), contents, [path for path, text in changes.items() if text is None])
