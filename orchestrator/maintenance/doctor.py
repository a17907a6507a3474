"""`doctor`: what a run would need, looked at before one is begun: one row per question, each with what to do.

`doctor --repo`: a project's dependencies and tests, tried as before a sprint, on a copy of its last commit.

`doctor`'s look at how commands are confined here: the tier of a run, what each tier costs, and what it holds.

What this machine has: versions of programs, room on its disks. Everything here is for telling; nothing is changed
but a file that is made and removed again. Blocks: call it from a thread.
"""

import asyncio
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from orchestrator.app.runners import command_path, project_runner, sandbox_for
from orchestrator.app.team import prompt_library
from orchestrator.checks.environment import build_failed
from orchestrator.core.daemon import DoctorRow
from orchestrator.core.errors import ConfigError, RepositoryError, WorkspaceError
from orchestrator.core.secrets import redact, secrets_of
from orchestrator.core.suite import BaseTrial, ProjectEnvironment, Tier
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.git.command import OLDEST
from orchestrator.git.repository import Repository, open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.providers.routing import (
    VENDORS,
    Seat,
    key_problem,
    policies_of,
    seats_of,
    stronger_of,
)
from orchestrator.sandbox.choose import ACTIONS, available, tolerated, try_actions
from orchestrator.sandbox.command_runner import LimitedCommandRunner, remove_tree, scratch_folder
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings import Environment, Settings, load
from orchestrator.settings.model import CommandSettings
from orchestrator.storage.event_store import EventReader
from orchestrator.story.older_tests import holds_something, try_base

_KEY = "doctor"


class ProjectLook(Value):
    """What was found; nothing of it where the repository cannot be used."""

    rows: tuple[DoctorRow, ...]
    environment: ProjectEnvironment | None = None
    base: BaseTrial | None = None
    """None where nothing is there that could be tried."""


async def look_at_project(repo: Path, settings: Settings, environment: Environment) -> ProjectLook:
    """Install and run what the repository's last commit holds, in a temporary folder; the repository is only read.

    Packages go to the state folder where there is one: a run finds them there. Raises nothing for what it finds.
    """
    try:
        async with _workspace(repo) as (workspace, folder):
            return await _look(workspace, folder, repo, settings, environment)
    except (ConfigError, RepositoryError, WorkspaceError) as error:
        todo = "name a git repository with a commit, and correct what is named there"
        return ProjectLook(
            rows=(_project_row("repository", "a repository that can be read", error.message, todo, ok=False),)
        )


@asynccontextmanager
async def _workspace(repo: Path) -> AsyncIterator[tuple[GitWorkspace, Path]]:
    """The repository's last commit in a mirror of its own, and the folder around it, which is removed at the end."""
    found = await _found(repo)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="orchestrator-doctor-"))
    workspace = GitWorkspace(
        mirror=folder / "mirror.git",
        folder=folder / "worktrees",
        sprint=_KEY,
        base=found.base,
        object_format=found.object_format,
    )
    try:
        await workspace.prepare(found.path)
        yield workspace, folder
    finally:
        workspace.close()
        await asyncio.to_thread(remove_tree, folder)


async def _found(repo: Path) -> Repository:
    """Raises RepositoryError also for a folder that `open_repository` would make a repository of."""
    if not await asyncio.to_thread(lambda: repo.is_dir() and any(repo.iterdir())):
        raise RepositoryError(f"{repo} is not there, or empty")
    return await open_repository(repo)


async def _look(
    workspace: GitWorkspace, folder: Path, repo: Path, settings: Settings, environment: Environment
) -> ProjectLook:
    if settings.test.custom is None and not holds_something(await workspace.files_at(workspace.base)):
        fine = _project_row("base", "the last commit can be run", "base: nothing to run", "", ok=True)
        return ProjectLook(rows=(fine,), environment=ProjectEnvironment())
    sandbox = await sandbox_for(settings, environment)
    if not await asyncio.to_thread(environment.home.exists):
        environment = environment.model_copy(update={"home": folder})
    base = BaseCommit(folder / "mirror.git", workspace.base, repo)
    runner = project_runner(settings, environment, folder / "environments", sandbox, base=base)

    async def install(root: Path) -> ProjectEnvironment:
        return await runner.environment(root, key=_KEY)

    made = await workspace.base_tree(install)
    tried = await try_base(workspace, runner, key=_KEY, timeout_s=settings.environment.base_timeout_s)
    return ProjectLook(rows=tuple(_rows(made, tried.trial)), environment=made, base=tried.trial)


def _rows(made: ProjectEnvironment, trial: BaseTrial) -> Sequence[DoctorRow]:
    told = f"{made.megabytes:.0f} MB in {made.seconds:.1f} s, from {', '.join(made.because) or 'no manifest'}"
    rows = [
        _project_row(
            "environment", "the dependencies can be installed", f"{made.problem}\n{made.output_end}".strip() or told,
            (trial.todo or "correct the manifests") if made.problem else "", ok=not made.problem,
        )
    ]  # fmt: skip
    if made.failed:
        cause = build_failed(made.failed)
        rows.append(_project_row("native packages", "packages can be built", cause.message, cause.fix, ok=False))
    usable = trial.usable
    told = trial.told if usable else trial.refusal
    return [*rows, _project_row("base", "the last commit can be run", told, trial.todo, ok=usable)]


def _project_row(name: str, expected: str, happened: str, todo: str, *, ok: bool) -> DoctorRow:
    return DoctorRow(name=name, group="project", expected=expected, happened=happened, ok=ok, todo=todo)


_STARTS = 7
_STRONGER = "nothing has to be done; a stronger tier would hold more: see `orchestrator doctor --sandbox`"
_UNCONFINED = "take sandbox.mode out of the configuration, or install what the table of tiers names"


async def tier_rows(settings: Settings, environment: Environment) -> Sequence[DoctorRow]:
    """The tier that the commands of a run would be in; it has passed its self-test."""
    expected = "commands that a model writes are confined"
    try:
        sandbox = await sandbox_for(settings, environment)
    except ConfigError as error:
        todo = "do what is named there, or let commands run unconfined: sandbox.mode: plain"
        return [_sandbox_row("commands", expected, error.message, todo, ok=False)]
    facts = sandbox.facts
    todo = _UNCONFINED if facts.tier is Tier.PLAIN else _STRONGER if facts.missing else ""
    return [_sandbox_row("commands", expected, str(facts), todo, ok=True)]


async def battery_rows(settings: Settings, environment: Environment) -> Sequence[DoctorRow]:
    """Returns what each tier of this machine adds to a command, and which hostile actions it refuses."""
    path = command_path(environment)
    there, reasons = await available(settings.sandbox, path)
    rows, tried = list[DoctorRow](), list[DoctorRow]()
    for sandbox in there:
        cost = await _start_ms(sandbox, path)
        told = (
            f"{cost:.0f} ms for a command that does nothing; missing: {', '.join(sandbox.facts.missing) or 'nothing'}"
        )
        rows.append(_sandbox_row(sandbox.facts.tier.value, "it passes its self-test", told, "", ok=True))
    for tier, reason in reasons.items():
        rows.append(_sandbox_row(tier.value, "nothing, where another tier is there", reason, "", ok=True))
    for sandbox in there:
        tried += await _action_rows(sandbox, path)
    return [*rows, *tried]


async def _action_rows(sandbox: Sandbox, path: str) -> list[DoctorRow]:
    facts = sandbox.facts
    done = await try_actions(LimitedCommandRunner(CommandSettings(), path, sandbox=sandbox))
    rows = []
    for action in ACTIONS:
        happened = done if isinstance(done, str) else "done" if action in done else "refused"
        allowed = facts.tier is Tier.PLAIN or action in tolerated(facts)
        ok = happened == "refused" or (allowed and happened == "done")
        rows.append(
            DoctorRow(
                name=action,
                group=facts.tier.value,
                expected="refused, where a tier can" if allowed else "refused",
                happened=happened,
                ok=ok,
                todo="" if ok else "use another tier: sandbox.mode",
            )
        )
    return rows


async def _start_ms(sandbox: Sandbox, path: str) -> float:
    """Median milliseconds from asking for `true` to its result."""
    runner = LimitedCommandRunner(CommandSettings(), path, sandbox=sandbox)
    taken = []
    async with scratch_folder() as folder:
        for _ in range(_STARTS):
            started = time.perf_counter()
            await runner.run(["true"], cwd=folder)
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def _sandbox_row(name: str, expected: str, happened: str, todo: str, *, ok: bool) -> DoctorRow:
    return DoctorRow(name=name, group="sandbox", expected=expected, happened=happened, ok=ok, todo=todo)


LEAST_FREE_MB = 1024
"""A worktree, an environment and a package cache per story need room."""
_NODE, _NODE_TYPESCRIPT = (20, 0), (22, 18)
_ASKING_S = 20.0


def program_rows(path: str) -> list[DoctorRow]:
    """git, Python and what it brings, node and npm, as they are found on `path`."""
    return [_git(path), _python(), *_node(path)]


def _git(path: str) -> DoctorRow:
    said, wanted = _version("git", path), f"git {_dotted(OLDEST)} or newer"
    ok = said is not None and said[0] >= OLDEST
    todo = "" if ok else "install a newer git and put it first on PATH"
    return _machine_row("git", wanted, said[1] if said else "not there", ok=ok, todo=todo)


def _python() -> DoctorRow:
    lacking = [name for name in ("venv", "ensurepip", "pytest") if find_spec(name) is None]
    happened = f"Python {sys.version.split()[0]}" + (f" without {', '.join(lacking)}" if lacking else "")
    todo = f"install {', '.join(lacking)} for {sys.executable} (Debian: python3-venv)" if lacking else ""
    return _machine_row("python", "3.11 or newer with venv, ensurepip and pytest", happened, ok=not lacking, todo=todo)


def _node(path: str) -> list[DoctorRow]:
    """Only some projects need them, so that none of it stops a run by itself."""
    node, npm = _version("node", path), _version("npm", path)
    if node is None or node[0] < _NODE:
        todo = "nothing for Python projects; for JavaScript install Node 20 or newer with npm"
    else:
        todo = (
            "" if node[0] >= _NODE_TYPESCRIPT else "nothing for JavaScript; for TypeScript install Node 22.18 or newer"
        )
    missing = "" if npm or node is None else "nothing for projects without packages; for others install npm"
    return [
        _machine_row(
            "node", "Node 20 or newer, where projects need it", node[1] if node else "not there", ok=True, todo=todo
        ),
        _machine_row("npm", "npm, where projects need it", npm[1] if npm else "not there", ok=True, todo=missing),
    ]


def _version(name: str, path: str) -> tuple[tuple[int, int], str] | None:
    """The version of a program and what it says of itself; None when it is not there or says nothing."""
    program = shutil.which(name, path=path)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], env={"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_ASKING_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return ((int(found[1]), int(found[2])), done.stdout.strip()[:80]) if found else None


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _machine_row(name: str, expected: str, happened: str, *, ok: bool, todo: str) -> DoctorRow:
    return DoctorRow(name=name, group="programs", expected=expected, happened=happened, ok=ok, todo=todo)


def folder_row(name: str, folder: Path, todo: str) -> DoctorRow:
    """Whether `folder`, or the nearest folder above it that is there, can be written and has room."""
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    free = shutil.disk_usage(there).free // 2**20
    problem = _unwritable(there) or (f"only {free} MiB free" if free < LEAST_FREE_MB else "")
    return DoctorRow(
        name=name,
        group="disk",
        expected=f"{folder} can be written and has {LEAST_FREE_MB} MiB free",
        happened=problem or f"{free} MiB free" + ("" if there == folder else ", not made yet"),
        ok=not problem,
        todo=todo if problem else "",
    )


def _unwritable(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"cannot be written: {error.strerror or error}"
    return ""


async def examine(config: Path | None, overrides: Sequence[str], *, sandbox: bool = False) -> list[DoctorRow]:
    """All rows; no key and no password is in any. Raises nothing for what it finds.

    With `sandbox`, hostile actions are tried in every tier of this machine as well: some seconds each.
    """
    try:
        settings, environment = await asyncio.to_thread(load, config, overrides)
    except ConfigError as error:
        todo = "correct it; nothing else can be looked at before"
        return [_row("settings", "configuration", "a configuration that can be read", error.message, todo)]
    return await rows_of(settings, environment, sandbox=sandbox)


async def examine_project(
    repo: Path, config: Path | None, overrides: Sequence[str], *, sandbox: bool = False
) -> ProjectLook:
    """`examine`, and what the repository's last commit comes to here: its dependencies are installed, its tests run."""
    rows = await examine(config, overrides, sandbox=sandbox)
    try:
        settings, environment = await asyncio.to_thread(load, config, overrides)
    except ConfigError:  # `examine` has a row for it
        return ProjectLook(rows=tuple(rows))
    look = await look_at_project(repo, settings, environment)
    return look.model_copy(update={"rows": (*rows, *look.rows)})


async def rows_of(settings: Settings, environment: Environment, *, sandbox: bool = False) -> list[DoctorRow]:
    """The same with settings that were read already."""
    rows = [
        *await asyncio.to_thread(_configuration, settings, environment),
        *await asyncio.to_thread(_keys, settings, environment),
        *await asyncio.to_thread(_machine, environment),
        *await tier_rows(settings, environment),
        *(await battery_rows(settings, environment) if sandbox else ()),
    ]
    known = secrets_of(environment.variables)
    return [row.model_copy(update={"happened": redact(row.happened, known)}) for row in rows]


def _row(name: str, group: str, expected: str, problem: str, todo: str, fine: str = "as expected") -> DoctorRow:
    """A row that is fine without a `problem`."""
    return DoctorRow(
        name=name,
        group=group,
        expected=expected,
        happened=problem or fine,
        ok=not problem,
        todo=todo if problem else "",
    )


def _problem(look: Callable[[], object]) -> str:
    try:
        look()
    except ConfigError as error:
        return error.message
    return ""


def _configuration(settings: Settings, environment: Environment) -> list[DoctorRow]:
    source = str(environment.config_file) if environment.config_file else "the packaged one"
    texts = [
        _row(
            f"project.{name}", "configuration", f"{environment.base_dir / value} is there",
            "" if (environment.base_dir / value).exists() else "not there",
            f"correct project.{name}, or leave it out: personas are then told nothing of it",
        )
        for name, value in (("vision", settings.project.vision), ("wireframes", settings.project.wireframes))
        if value
    ]  # fmt: skip
    prompts = _problem(lambda: prompt_library(settings, environment))
    personas = _problem(lambda: policies_of(settings))
    return [
        _row("settings", "configuration", "a configuration that can be read", "", "", source),
        _row(
            "personas", "configuration", "every persona has somebody to answer it", personas, "correct it", "they have"
        ),
        _row("prompts", "configuration", "every prompt can be read", prompts, "correct it, or prompts.dir", "they can"),
        *texts,
    ]


def _keys(settings: Settings, environment: Environment) -> list[DoctorRow]:
    """The providers in use, then keys that are there although nobody uses them."""
    if _problem(lambda: policies_of(settings)):
        return []
    used = {*seats_of(settings).values(), *stronger_of(settings).values()}
    rows = [_seat(seat, settings, environment) for seat in sorted(used, key=str)]
    idle = VENDORS.keys() - {seat.provider for seat in used}
    for name in sorted(idle):
        there = "present" if environment.variables.get(VENDORS[name].key, "").strip() else "absent"
        rows.append(_row(VENDORS[name].key, "keys", f"nothing: {name} is not in use", "", "", there))
    return rows


def _seat(seat: Seat, settings: Settings, environment: Environment) -> DoctorRow:
    if seat.provider == "scripted":
        script = settings.provider.script
        is_there = script is not None and (environment.base_dir / script).is_file()
        problem = "" if is_there else f"{script} is not there" if script else "no script is configured"
        todo = "name a model (provider.name), or a script: provider.script, or `run --script FILE`"
        return _row("scripted", "keys", "no key; a script", problem, todo, script or "")
    variable = VENDORS[seat.provider].key
    problem, todo = key_problem(seat, environment), f"name provider.model, and put the key into {variable}"
    there = "present" if environment.variables.get(variable, "").strip() else "absent, and not needed at this address"
    return _row(str(seat), "keys", f"a model, and a key in {variable}", problem, todo, f"{variable}: {there}")


def _machine(environment: Environment) -> list[DoctorRow]:
    temporary = Path(tempfile.gettempdir())
    return [
        *program_rows(command_path(environment)),
        folder_row("state folder", environment.home, "make room, or name another folder by ORCHESTRATOR_HOME"),
        folder_row("temporary files", temporary, "make room, or name another folder by TMPDIR"),
        _database(environment),
    ]


def _database(environment: Environment) -> DoctorRow:
    """The event log's database, read and not written."""
    url = environment.database_url
    expected = "the database of DATABASE_URL answers" if url else f"SQLite in {environment.home}"
    if url is None:
        file = environment.home / "events.sqlite"
        if not file.exists():
            fine = f"SQLite {sqlite3.sqlite_version}, not made yet"
            return _row("database", "database", expected, "", "", fine)
        url = f"sqlite:///{file}"
    problem = _problem(lambda: _read(str(url)))
    todo = "correct DATABASE_URL, or take it out" if environment.database_url else f"move {environment.home} away"
    return _row("database", "database", expected, problem, todo, "it answers")


def _read(url: str) -> None:
    reader = EventReader(url)
    try:
        reader.sprints()
    finally:
        reader.close()
