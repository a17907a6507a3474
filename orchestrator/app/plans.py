"""Plans of people: an action plan for `check plan` and `apply`."""

import asyncio
import difflib
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from orchestrator.answers import Status
from orchestrator.answers.action_plan import PlanExtraction, parse_plan
from orchestrator.app.judge import (
    CheckOptions,
    Judged,
    Surroundings,
    files_in,
    judge_delivery,
    judge_persons_plan,
    obstacles_in,
)
from orchestrator.app.plan_files import find_existing, find_obstacles, project_files, read_texts
from orchestrator.app.runners import command_path, sandbox_for
from orchestrator.checks.action_plan import Applied, apply_plan, delivery_of, named_paths
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.code.shell import failed_step, script
from orchestrator.core.action_plan import (
    ActionPlan,
    ActionResult,
    ActionState,
    Execute,
    ExecutionReport,
    Prune,
    Read,
    is_url,
)
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ConfigError, WorkspaceError
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.paths import is_manifest, unsafe_reason
from orchestrator.core.suite import Access, CommandResult
from orchestrator.files.safe_files import write_below
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings import Environment, Settings

MAX_TEXT = 16 * 1024 * 1024
"""Bytes of a file that a plan may change."""
MAX_DIFF_LINES = 20_000
"""Lines of a file whose difference is shown line by line."""


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


NO_PLAN = frozenset({"plan.none", "plan.encoding", "plan.too_many"})
"""Codes of the findings on a text without an action plan."""


def holds_actions(text: str) -> bool:
    """Returns whether a text holds an action plan, or is meant as one."""
    found = parse_plan(text)
    return found.plan is not None or any(finding.code not in NO_PLAN for finding in found.findings)


def check_any_plan(text: str, options: CheckOptions) -> tuple[str, Judged]:
    """Returns which plan a text holds, and what the checks say about it. Raises ConfigError. Blocks."""
    if holds_actions(text):
        return "action plan", check_plan(text, options.repo, options.context, options.story).judged
    files = files_in(options.repo) if options.repo is not None else None
    manifests = sorted(path for path in files or () if is_manifest(path))
    texts = read_texts(options.repo, manifests) if options.repo is not None else {}
    obstacles = obstacles_in(options.repo, files or ())
    around = Surroundings(story=options.story, files=files, texts=texts, obstacles=obstacles)
    return judge_persons_plan(text, options.file, around)


def check_plan(
    text: str,
    repo: Path | None,
    context: tuple[str, ...] | None,
    story: str | None = None,
    contract: ArchitectureContract | None = None,
) -> JudgedPlan:
    """Returns what the checks say about a plan; `context` None: what was shown is unknown. Raises ConfigError."""
    return judge_plan(text, None if repo is None else _world(text, repo, context), story, contract)


def _world(text: str, repo: Path, context: tuple[str, ...] | None) -> PlanWorld:
    unsafe = [path for path in context or () if unsafe_reason(path) and not is_url(path)]
    if unsafe:
        raise ConfigError(f"--context names no file of a repository: {', '.join(map(repr, unsafe))}")
    if not repo.is_dir():
        raise ConfigError(f"--repo {repo} is no folder")
    named = paths_of(text)
    listed = set(asyncio.run(project_files(repo)))
    there = find_existing(repo, named)
    wanted = sorted({*there, *(path for path in listed if is_manifest(path))})
    return PlanWorld(
        paths=frozenset({*(listed - set(named)), *there}),
        texts=read_texts(repo, wanted, MAX_TEXT),
        context=None if context is None else frozenset(context),
        obstacles=find_obstacles(repo, listed, named, MAX_TEXT),
    )


def diff_plan(judged: JudgedPlan) -> Iterator[str]:
    """Yields what a plan changes, as lines of a unified diff, file by file."""
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
            # Without its two lines of names, which are written below.
            body = list(difflib.unified_diff(*lines, lineterm=""))[2:]
        yield from (f"--- {names[0]}", f"+++ {names[1]}", *(line.rstrip("\r") for line in body))


async def apply(
    judged: JudgedPlan, repo: Path, settings: Settings, environment: Environment, *, commands: bool
) -> ExecutionReport:
    """Carries a checked plan out in a folder: all files or none, then its commands when they may be run.

    Raises ConfigError, before anything is written, for commands that cannot be confined as the settings ask for.
    """
    # Marks the parts of a command in its output: the command cannot guess it.
    token = f"step-{secrets.token_hex(8)}"
    sandbox = await sandbox_for(settings, environment) if commands else None
    access = Access(tree=await asyncio.to_thread(repo.absolute))
    plan, applied, world = judged.extraction.plan, judged.applied, judged.world
    if plan is None or applied is None or world is None or not judged.judged.valid:
        raise ConfigError("the plan is not valid and cannot be applied", findings=judged.judged.findings)

    async def write() -> None:
        await asyncio.to_thread(_write, repo, world, applied.changes)

    async def run(sandbox: Sandbox, action: Execute) -> CommandResult:
        if not await asyncio.to_thread(_is_below, repo, action.cwd):
            return CommandResult(argv=(), exit_code=1, output="cwd leads out of the folder through a link\n")
        argv = ("/bin/sh", "-c", script(action.command, token))
        runner = LimitedCommandRunner(settings.commands, command_path(environment), sandbox=sandbox)
        return await runner.run(argv, cwd=repo / action.cwd, env=action.env, timeout_s=action.timeout_s, access=access)

    return await carry_out(plan, write, None if sandbox is None else partial(run, sandbox), token)


def _is_below(repo: Path, folder: str) -> bool:
    return (repo / folder).resolve().is_relative_to(repo.resolve())


def _write(repo: Path, world: PlanWorld, changes: Mapping[str, str | None]) -> None:
    """Writes all changes or none, and only to files that are still as they were when the plan was checked."""
    # A person or another program may have changed a file since the check.
    was = {path: world.texts[path] for path in changes if path in world.texts}
    if read_texts(repo, changes, MAX_TEXT) != was or find_existing(repo, changes) != world.paths & changes.keys():
        raise WorkspaceError("a file was changed since the plan was checked")
    contents = [(path, text.encode()) for path, text in changes.items() if text is not None]
    write_below(repo.resolve(), contents, [path for path, text in changes.items() if text is None])


Run = Callable[[Execute], Awaitable[CommandResult]]


async def carry_out(
    plan: ActionPlan, write: Callable[[], Awaitable[None]], run: Run | None, token: str
) -> ExecutionReport:
    """Writes the files, all or none, then runs the commands in order; skips everything after the first failure.

    `write` makes all changes or none (WorkspaceError), `run` is None where commands are forbidden, `token` marks the
    failed step in their output.
    """
    skipped, broken = "", ""
    try:
        await write()
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
            state, reason, output = await _executed(action, run, token)
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


async def _executed(action: Execute, run: Run | None, token: str) -> tuple[ActionState, str, str]:
    """Runs a command; returns its state, the reason and the output."""
    if run is None:
        return ActionState.SKIPPED, "commands were not confirmed", ""
    done = await run(action)
    step, output = failed_step(action.command, token, done.output)
    if done.ok:
        return ActionState.DONE, "", output
    ended = "was ended by a signal" if done.exit_code is None else f"ended with exit code {done.exit_code}"
    reason = f"`{step or action.subject}` {f'hit its {done.limit} limit' if done.limit else ended}"
    if action.allow_failure:
        return ActionState.DONE, f"{reason}, which is allowed", output
    return ActionState.FAILED, reason, output
