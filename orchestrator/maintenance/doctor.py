"""`doctor`: what a run needs, one row per question, each with what to do.

Nothing is changed but files that are made and removed again. With `--repo` a copy of the project's last commit is
installed and run as before a sprint; with `--sandbox` harmless hostile actions are tried in every tier.
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

from orchestrator import __version__
from orchestrator.app.runners import command_path, project_runner, sandbox_for
from orchestrator.app.team import prompt_library
from orchestrator.app.trust import load_settings
from orchestrator.checks.environment import build_failed
from orchestrator.core.daemon import DoctorRow
from orchestrator.core.errors import ConfigError, RepositoryError, WorkspaceError
from orchestrator.core.secrets import redact, secrets_of
from orchestrator.core.suite import BaseTrial, ProjectEnvironment, Tier
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.files.source_commit import source_commit
from orchestrator.git.command import OLDEST
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.providers.routing import VENDORS, key_problem
from orchestrator.providers.seats import Seat, all_seats, policies_of
from orchestrator.sandbox.choose import ACTIONS, available, tolerated, try_actions
from orchestrator.sandbox.command_runner import LimitedCommandRunner, remove_tree, scratch_folder
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings import Environment, Settings
from orchestrator.settings.model import CommandSettings
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_table import is_postgres
from orchestrator.storage.leases import living_daemons
from orchestrator.story.older_tests import holds_something, try_base

KEY = "doctor"
"""Names the runs of a project's suite, and the sprint of its workspace."""
STARTS = 7
"""Commands that are timed per tier; the median counts."""
LEAST_FREE_MB = 1024
"""A worktree, an environment and a package cache per story need disk space."""
NODE, NODE_TYPESCRIPT = (20, 0), (22, 18)
ASKING_S = 20.0
"""Seconds that a program gets to say its version."""


class ProjectLook(Value):
    """The rows; what was installed and run, unless the repository cannot be used."""

    rows: tuple[DoctorRow, ...]
    environment: ProjectEnvironment | None = None
    base: BaseTrial | None = None
    """None where nothing is there that could be tried."""


async def examine(config: Path | None, overrides: Sequence[str], *, sandbox: bool = False) -> list[DoctorRow]:
    """Returns all rows; no key and no password is in any. Raises nothing for what it finds."""
    try:
        settings, environment = await asyncio.to_thread(load_settings, config, overrides)
    except ConfigError as error:
        todo = "correct it; nothing else can be looked at before"
        return [_check("configuration", "settings", "a configuration that can be read", error.message, todo)]
    return await examine_settings(settings, environment, sandbox=sandbox)


async def examine_settings(settings: Settings, environment: Environment, *, sandbox: bool = False) -> list[DoctorRow]:
    """Returns the same with settings that were read already."""
    rows = [
        *await asyncio.to_thread(_configuration, settings, environment),
        *await asyncio.to_thread(_keys, settings, environment),
        *await asyncio.to_thread(_machine, environment),
        await _confinement(settings, environment),
        *(await _tiers(settings, environment) if sandbox else ()),
    ]
    known = secrets_of(environment.variables)
    return [row.model_copy(update={"happened": redact(row.happened, known)}) for row in rows]


async def examine_project(
    repo: Path, config: Path | None, overrides: Sequence[str], *, sandbox: bool = False
) -> ProjectLook:
    """Returns `examine`, and what installing and running the repository's last commit came to."""
    rows = await examine(config, overrides, sandbox=sandbox)
    try:
        settings, environment = await asyncio.to_thread(load_settings, config, overrides)
    except ConfigError:  # `examine` has a row for it
        return ProjectLook(rows=tuple(rows))
    try:
        async with _workspace(repo) as (workspace, folder):
            look = await _try_project(workspace, folder, repo, settings, environment)
    except (ConfigError, RepositoryError, WorkspaceError) as error:
        todo = "name a git repository with a commit, and correct what is named there"
        rows.append(_check("project", "repository", "a repository that can be read", error.message, todo))
        return ProjectLook(rows=tuple(rows))
    return look.model_copy(update={"rows": (*rows, *look.rows)})


def _row(group: str, name: str, expected: str, happened: str, todo: str = "", *, ok: bool = True) -> DoctorRow:
    return DoctorRow(name=name, group=group, expected=expected, happened=happened, ok=ok, todo=todo)


def _check(group: str, name: str, expected: str, problem: str, todo: str, fine: str = "as expected") -> DoctorRow:
    """Returns a row that is fine without a `problem`."""
    return _row(group, name, expected, problem or fine, todo if problem else "", ok=not problem)


def _problem(look: Callable[[], object]) -> str:
    try:
        look()
    except ConfigError as error:
        return error.message
    return ""


def _configuration(settings: Settings, environment: Environment) -> list[DoctorRow]:
    group, source = "configuration", str(environment.config_file or "the packaged one")
    rows = [
        _row(group, "settings", "a configuration that can be read", source),
        _check(
            group, "personas", "every persona has somebody to answer it", _problem(lambda: policies_of(settings)),
            "correct it", "each has a provider",
        ),
        _check(
            group, "prompts", "every prompt can be read", _problem(lambda: prompt_library(settings, environment)),
            "correct it, or prompts.dir", "all can be read",
        ),
    ]  # fmt: skip
    for name, value in (("vision", settings.project.vision), ("wireframes", settings.project.wireframes)):
        if value:
            path = environment.base_dir / value
            todo = f"correct project.{name}, or leave it out: personas are then told nothing of it"
            problem = "" if path.exists() else "not there"
            rows.append(_check(group, f"project.{name}", f"{path} is there", problem, todo))
    return rows


def _keys(settings: Settings, environment: Environment) -> list[DoctorRow]:
    """Returns the providers in use, then keys that are there although no provider uses them."""
    if _problem(lambda: policies_of(settings)):
        return []
    used = all_seats(settings).all
    rows = [_seat(seat, settings, environment) for seat in sorted(used, key=str)]
    asked_for = {VENDORS[seat.provider].key for seat in used if seat.provider in VENDORS}
    for variable in sorted({one.key for one in VENDORS.values()} - asked_for):
        if environment.variables.get(variable, "").strip():
            rows.append(_row("keys", variable, "nothing: no provider in use asks for it", "present"))
    return rows


def _seat(seat: Seat, settings: Settings, environment: Environment) -> DoctorRow:
    if seat.provider == "scripted":
        script = settings.provider.script
        is_there = script is not None and (environment.base_dir / script).is_file()
        problem = "" if is_there else f"{script} is not there" if script else "no script is configured"
        todo = "name a model (provider.name), or a script: provider.script, or `run --script FILE`"
        return _check("keys", "scripted", "no key; a script", problem, todo, script or "")
    variable, cloud = VENDORS[seat.provider].key, VENDORS[seat.provider].is_cloud
    present = bool(environment.variables.get(variable, "").strip())
    steps = [] if seat.model else ["name provider.model"]
    if not present and not cloud and key_problem(seat._replace(model=seat.model or "any"), environment):
        steps.append(f"put the key into {variable}")
    problem, todo = key_problem(seat, environment), ", and ".join(steps) or "correct it"
    told = f"{variable}: {'present' if present else 'absent, and not needed at this address'}"
    return _check("keys", str(seat), f"a model, and a key in {variable}", problem, todo, told)


def _machine(environment: Environment) -> list[DoctorRow]:
    path, temporary = command_path(environment), Path(tempfile.gettempdir())
    return [
        _row("programs", "orchestrator", "a version to name in a report", f"{__version__}, commit {source_commit()}"),
        _git(path),
        _python(),
        *_node(path),
        _folder("state folder", environment.home, "free disk space, or name another folder by ORCHESTRATOR_HOME"),
        _folder("temporary files", temporary, "free disk space, or name another folder by TMPDIR"),
        _database(environment),
    ]


def _git(path: str) -> DoctorRow:
    version = _version("git", path)
    ok = version is not None and version[0] >= OLDEST
    todo = "" if ok else "install a newer git and put it first on PATH"
    wanted = f"git {'.'.join(map(str, OLDEST))} or newer"
    return _row("programs", "git", wanted, version[1] if version else "not there", todo, ok=ok)


def _python() -> DoctorRow:
    lacking = ", ".join(name for name in ("venv", "ensurepip", "pytest") if find_spec(name) is None)
    happened = f"Python {sys.version.split()[0]}" + (f" without {lacking}" if lacking else "")
    todo = f"install {lacking} for {sys.executable} (Debian: python3-venv)" if lacking else ""
    wanted = "3.11 or newer with venv, ensurepip and pytest"
    return _row("programs", "python", wanted, happened, todo, ok=not lacking)


def _node(path: str) -> list[DoctorRow]:
    """Only some projects need them, so that none of it stops a run by itself."""
    node, npm = _version("node", path), _version("npm", path)
    todo = missing = ""
    if node is None or node[0] < NODE:
        todo = "nothing for Python projects; for JavaScript install Node 20 or newer with npm"
    elif node[0] < NODE_TYPESCRIPT:
        todo = "nothing for JavaScript; for TypeScript install Node 22.18 or newer"
    if node is not None and npm is None:
        missing = "nothing for projects without packages; for others install npm"
    return [
        _row("programs", "node", "Node 20 or newer, where projects need it", node[1] if node else "not there", todo),
        _row("programs", "npm", "npm, where projects need it", npm[1] if npm else "not there", missing),
    ]


def _version(name: str, path: str) -> tuple[tuple[int, int], str] | None:
    """Returns the version of a program and what it says of itself; None when it is not there or says nothing."""
    program = shutil.which(name, path=path)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], env={"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=ASKING_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):  # not installed, or it hangs
        return None
    # `git version 2.43.0`, `v20.11.1`, `10.2.4`
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return ((int(found[1]), int(found[2])), done.stdout.strip()[:80]) if found else None


def _folder(name: str, folder: Path, todo: str) -> DoctorRow:
    """Looks at `folder`, or at the nearest folder above it that is there."""
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    free = shutil.disk_usage(there).free // 2**20
    problem = f"only {free} MiB free" if free < LEAST_FREE_MB else ""
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
    expected = f"{folder} can be written and has {LEAST_FREE_MB} MiB free"
    fine = f"{free} MiB free" + ("" if there == folder else ", not made yet")
    return _check("disk", name, expected, problem, todo, fine)


def _database(environment: Environment) -> DoctorRow:
    """Reads the event log's database and writes nothing."""
    url, file = environment.database_url, environment.home / "events.sqlite"
    expected = "the database of DATABASE_URL answers" if url else f"SQLite in {environment.home}"
    if url is None and not file.exists():
        return _row("database", "database", expected, f"SQLite {sqlite3.sqlite_version}, not made yet")

    def read() -> None:
        reader = EventReader(url or f"sqlite:///{file}")
        try:
            reader.sprints()
        finally:
            reader.close()

    todo = "correct DATABASE_URL, or take it out" if url else f"move {environment.home} away"
    problem = _problem(read)
    if not problem and url is not None and is_postgres(url):
        alive = living_daemons(url)
        key = environment.variables.get("ORCHESTRATOR_MASK_KEY")
        todo = "" if key else "set ORCHESTRATOR_MASK_KEY, the same on all machines: see docs/machines.md"
        fine = f"it answers; at work: {', '.join(alive)}" if alive else "it answers; no daemon is at work"
        return _row("database", "database", expected, fine, todo)
    return _check("database", "database", expected, problem, todo, "it answers")


async def _confinement(settings: Settings, environment: Environment) -> DoctorRow:
    """Looks at the tier that the commands of a run would be in; it has passed its self-test."""
    expected = "commands that a model writes are confined"
    try:
        facts = (await sandbox_for(settings, environment)).facts
    except ConfigError as error:
        todo = "do what is named there, or let commands run unconfined: sandbox.mode: plain"
        return _row("sandbox", "commands", expected, error.message, todo, ok=False)
    todo = ""
    if facts.tier is Tier.PLAIN:
        todo = "take sandbox.mode out of the configuration, or install what the table of tiers names"
    elif facts.missing:
        todo = "nothing has to be done; a stronger tier would hold more: see `orchestrator doctor --sandbox`"
    parts = ("holds", facts.holds), ("missing", facts.missing), ("not tested", facts.untested)
    told = "; ".join(f"{name}: {', '.join(words)}" for name, words in parts if words)
    happened = f"{facts.tier}, {told}" + (f" ({facts.note})" if facts.note else "")
    return _row("sandbox", "commands", expected, happened, todo)


async def _tiers(settings: Settings, environment: Environment) -> list[DoctorRow]:
    """Returns what each tier of this machine adds to a command, and which hostile actions it refuses."""
    path = command_path(environment)
    there, reasons = await available(settings.sandbox, path)
    rows = []
    for sandbox in there:
        cost, missing = await _start_ms(sandbox, path), ", ".join(sandbox.facts.missing) or "nothing"
        told = f"{cost:.0f} ms for a command that does nothing; missing: {missing}"
        rows.append(_row("sandbox", sandbox.facts.tier.value, "it passes its self-test", told))
    for tier, reason in reasons.items():
        rows.append(_row("sandbox", tier.value, "nothing, where another tier is there", reason))
    for sandbox in there:
        rows += await _actions(sandbox, path)
    return rows


async def _actions(sandbox: Sandbox, path: str) -> list[DoctorRow]:
    facts, rows = sandbox.facts, []
    done = await try_actions(LimitedCommandRunner(CommandSettings(), path, sandbox=sandbox))
    for action in ACTIONS:
        happened = done if isinstance(done, str) else "done" if action in done else "refused"
        allowed = facts.tier is Tier.PLAIN or action in tolerated(facts)
        ok = happened == "refused" or (allowed and happened == "done")
        expected = "refused, where a tier can" if allowed else "refused"
        todo = "" if ok else "use another tier: sandbox.mode"
        rows.append(_row(facts.tier.value, action, expected, happened, todo, ok=ok))
    return rows


async def _start_ms(sandbox: Sandbox, path: str) -> float:
    """Returns the median milliseconds from asking for `true` to its result."""
    runner = LimitedCommandRunner(CommandSettings(), path, sandbox=sandbox)
    taken = []
    async with scratch_folder() as folder:
        for _ in range(STARTS):
            started = time.perf_counter()
            await runner.run(["true"], cwd=folder)
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


@asynccontextmanager
async def _workspace(repo: Path) -> AsyncIterator[tuple[GitWorkspace, Path]]:
    """Hands out the repository's last commit in a mirror of its own, and the folder around it, which is removed at the
    end. Raises RepositoryError, also for a folder that `open_repository` would make a repository of."""
    if not await asyncio.to_thread(lambda: repo.is_dir() and any(repo.iterdir())):
        raise RepositoryError(f"{repo} is not there, or empty")
    found = await open_repository(repo)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="orchestrator-doctor-"))
    workspace = GitWorkspace(
        mirror=folder / "mirror.git",
        folder=folder / "worktrees",
        sprint=KEY,
        base=found.base,
    )
    try:
        # A mirror of its own: the state folder's is for sprints.
        await workspace.prepare(found.path)
        yield workspace, folder
    finally:
        workspace.close()
        await asyncio.to_thread(remove_tree, folder)


async def _try_project(
    workspace: GitWorkspace, folder: Path, repo: Path, settings: Settings, environment: Environment
) -> ProjectLook:
    """Packages go to the state folder where there is one: a run finds them there."""
    if settings.test.custom is None and not holds_something(await workspace.files_at(workspace.base)):
        row = _row("project", "base", "the last commit can be run", "nothing to run")
        return ProjectLook(rows=(row,), environment=ProjectEnvironment())
    sandbox = await sandbox_for(settings, environment)
    if not await asyncio.to_thread(environment.home.exists):
        environment = environment.model_copy(update={"home": folder})
    base = BaseCommit(folder / "mirror.git", workspace.base, repo)
    runner = project_runner(settings, environment, folder / "environments", sandbox, base=base)

    async def install(root: Path) -> ProjectEnvironment:
        return await runner.environment(root, key=KEY)

    made = await workspace.base_tree(install)
    tried = await try_base(workspace, runner, key=KEY, timeout_s=settings.environment.base_timeout_s)
    return ProjectLook(rows=tuple(_project_rows(made, tried.trial)), environment=made, base=tried.trial)


def _project_rows(made: ProjectEnvironment, trial: BaseTrial) -> list[DoctorRow]:
    fine = f"{made.megabytes:.0f} MB in {made.seconds:.1f} s, from {', '.join(made.because) or 'no manifest'}"
    problem = f"{made.problem}\n{made.output_end}".strip() if made.problem else ""
    todo = trial.todo or "correct the manifests"
    rows = [_check("project", "environment", "the dependencies can be installed", problem, todo, fine)]
    if made.failed:
        cause = build_failed(made.failed)
        rows.append(_row("project", "native packages", "packages can be built", cause.message, cause.fix, ok=False))
    told = (trial.told if trial.usable else trial.refusal).removeprefix("base: ")
    rows.append(_row("project", "base", "the last commit can be run", told, trial.todo, ok=trial.usable))
    return rows
