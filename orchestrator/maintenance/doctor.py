"""`doctor`: what a run needs, one row per question, each with what to do.

Nothing is changed but files that are made and removed again. With `--repo` a copy of the project's last commit is
installed and run as before a sprint.
"""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from orchestrator import __version__
from orchestrator.app.runners import command_path, project_runner, sandbox_for
from orchestrator.app.team import prompt_library
from orchestrator.app.trust import load_settings
from orchestrator.checks.environment import build_failed
from orchestrator.core.errors import ConfigError, RepositoryError, WorkspaceError
from orchestrator.core.secrets import redact, secrets_of
from orchestrator.core.suite import BaseTrial, ProjectEnvironment
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.files.source_commit import source_commit
from orchestrator.git.command import OLDEST
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.providers.routing import VENDORS, key_problem
from orchestrator.providers.seats import Seat, all_seats, policies_of
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.settings import Environment, Settings
from orchestrator.storage.event_reader import EventReader
from orchestrator.story.older_tests import holds_something, try_base

KEY = "doctor"
"""Names the runs of a project's suite, and the sprint of its workspace."""
LEAST_FREE_MB = 1024
"""A worktree, an environment and a package cache per story need disk space."""


class Row(Value):
    """One thing that was looked at."""

    name: str
    ok: bool
    """Whether a run can do with it."""
    happened: str
    """What is there; never a key or a password."""
    todo: str = ""
    """What a person does about it; not empty where `ok` is False."""


class Examined(Value):
    """The rows; with a repository also what was installed and run."""

    rows: tuple[Row, ...]
    environment: ProjectEnvironment | None = None
    base: BaseTrial | None = None
    """None where nothing could be tried."""


async def examine(config: Path | None, overrides: Sequence[str], repo: Path | None = None) -> Examined:
    """Returns all rows, those of `repo` after them. Raises nothing for what it finds."""
    try:
        settings, environment = await asyncio.to_thread(load_settings, config, overrides)
    except ConfigError as error:
        row = Row(name="settings", ok=False, happened=error.message, todo="correct them; the rest is looked at then")
        return Examined(rows=(row,))
    rows = [*await asyncio.to_thread(_machine, settings, environment), await _sandbox(settings, environment)]
    tried = Examined(rows=())
    if repo is not None:
        try:
            tried = await _try_project(repo, settings, environment)
        except (ConfigError, RepositoryError, WorkspaceError) as error:
            rows.append(
                Row(name="repository", ok=False, happened=error.message, todo="name a repository with a commit")
            )
    known = secrets_of(environment.variables)
    told = (row.model_copy(update={"happened": redact(row.happened, known)}) for row in (*rows, *tried.rows))
    return tried.model_copy(update={"rows": tuple(told)})


def _row(name: str, fine: str, todo: str, look: Callable[[], object]) -> Row:
    """Returns a row that says `fine`, or why `look` raised."""
    try:
        look()
    except (ConfigError, OSError) as error:
        return Row(name=name, ok=False, happened=str(error), todo=todo)
    return Row(name=name, ok=True, happened=fine)


def _machine(settings: Settings, environment: Environment) -> list[Row]:
    path, home = command_path(environment), environment.home
    lacking = ", ".join(name for name in ("venv", "ensurepip", "pytest") if find_spec(name) is None)
    rows = [
        Row(name="orchestrator", ok=True, happened=f"{__version__}, commit {source_commit()}"),
        Row(name="settings", ok=True, happened=str(environment.config_file or "the packaged ones")),
        _row("personas", "each has a provider", "correct it", lambda: policies_of(settings)),
        _row("prompts", "all can be read", "correct prompts.dir", lambda: prompt_library(settings, environment)),
    ]
    for name, value in (("vision", settings.project.vision), ("wireframes", settings.project.wireframes)):
        if value:
            file, todo = environment.base_dir / value, f"correct project.{name}, or leave it out"
            rows.append(_row(f"project.{name}", str(file), todo, file.stat))
    if rows[2].ok:
        rows += [_seat(seat, settings, environment) for seat in sorted(all_seats(settings).all, key=str)]
    git, wanted = _version("git", path), ".".join(map(str, OLDEST))
    is_new = git is not None and git[0] >= OLDEST
    told = git[1] if git else "not there"
    rows.append(Row(name="git", ok=is_new, happened=told, todo="" if is_new else f"put git {wanted} or newer on PATH"))
    told, todo = (f"without {lacking}", f"install {lacking} for {sys.executable}") if lacking else ("", "")
    rows.append(Row(name="python", ok=not lacking, happened=f"{sys.version.split()[0]} {told}".strip(), todo=todo))
    for name in ("node", "npm"):  # only some projects need them, so neither stops a run
        found = _version(name, path)
        todo = "" if found else f"nothing for Python projects; for others install {name}"
        rows.append(Row(name=name, ok=True, happened=found[1] if found else "not there", todo=todo))
    for name, folder, variable in (
        ("state folder", home, "ORCHESTRATOR_HOME"), ("temporary files", Path(tempfile.gettempdir()), "TMPDIR"),
    ):  # fmt: skip
        rows.append(_row(name, str(folder), f"name another folder by {variable}", partial(_write, folder)))
    url = environment.database_url or f"sqlite:///{home / 'events.sqlite'}"
    todo = "correct DATABASE_URL, or take it out" if environment.database_url else f"move {home} away"
    if environment.database_url or (home / "events.sqlite").exists():
        rows.append(_row("database", "it answers", todo, lambda: _read(url)))
    else:
        rows.append(Row(name="database", ok=True, happened="SQLite, not made yet"))
    return rows


def _seat(seat: Seat, settings: Settings, environment: Environment) -> Row:
    if seat.provider == "scripted":
        script = settings.provider.script
        is_there = script is not None and (environment.base_dir / script).is_file()
        told = (script or "") if is_there else f"{script} is not there" if script else "no script is configured"
        todo = "" if is_there else "name a model (provider.name), or a script: provider.script, or `run --script FILE`"
        return Row(name="scripted", ok=is_there, happened=told, todo=todo)
    variable = VENDORS[seat.provider].key
    is_present = bool(environment.variables.get(variable, "").strip())
    problem = key_problem(seat, environment)
    fine = f"{variable}: {'present' if is_present else 'absent, and not needed at this address'}"
    todo = f"name provider.model, and put the key into {variable}" if problem else ""
    return Row(name=str(seat), ok=not problem, happened=problem or fine, todo=todo)


def _version(name: str, path: str) -> tuple[tuple[int, int], str] | None:
    """Returns the version of a program and what it says of itself; None when it is not there or says nothing."""
    program = shutil.which(name, path=path)
    if program is None:
        return None
    asked = [program, "--version"]
    try:
        done = subprocess.run(asked, env={"PATH": path}, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):  # not installed, or it hangs
        return None
    # `git version 2.43.0`, `v20.11.1`, `10.2.4`
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return ((int(found[1]), int(found[2])), done.stdout.strip()[:80]) if found else None


def _write(folder: Path) -> None:
    """Writes into `folder`, or into the nearest folder above it that is there. Raises ConfigError, OSError."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"x")
    free = shutil.disk_usage(there).free // 2**20
    if free < LEAST_FREE_MB:
        raise ConfigError(f"{folder} has only {free} MiB free, less than {LEAST_FREE_MB}")


def _read(url: str) -> None:
    reader = EventReader(url)
    try:
        reader.sprints()
    finally:
        reader.close()


async def _sandbox(settings: Settings, environment: Environment) -> Row:
    """Looks at the tier that the commands of a run would be in; it has passed its self-test."""
    try:
        facts = (await sandbox_for(settings, environment)).facts
    except ConfigError as error:
        todo = "do what is named there, or let commands run unconfined: sandbox.mode: plain"
        return Row(name="sandbox", ok=False, happened=error.message, todo=todo)
    parts = ("holds", facts.holds), ("missing", facts.missing), ("not tested", facts.untested)
    told = "; ".join((facts.tier, *(f"{name}: {', '.join(words)}" for name, words in parts if words)))
    todo = "nothing has to be done; a stronger tier would hold more: see docs/sandbox.md" if facts.missing else ""
    return Row(name="sandbox", ok=True, happened=told + (f" ({facts.note})" if facts.note else ""), todo=todo)


async def _try_project(repo: Path, settings: Settings, environment: Environment) -> Examined:
    """Tries the repository's last commit in a mirror of its own, which is removed at the end; packages go to the state
    folder where there is one: a run finds them there. Raises RepositoryError, also for an empty folder, of which
    `open_repository` would make a repository."""
    if not await asyncio.to_thread(lambda: repo.is_dir() and any(repo.iterdir())):
        raise RepositoryError(f"{repo} is not there, or empty")
    found = await open_repository(repo)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="orchestrator-doctor-"))
    mirror = folder / "mirror.git"
    workspace = GitWorkspace(mirror=mirror, folder=folder / "worktrees", sprint=KEY, base=found.base)
    try:
        await workspace.prepare(found.path)
        if settings.test.custom is None and not holds_something(await workspace.files_at(workspace.base)):
            row = Row(name="base", ok=True, happened="nothing to run")
            return Examined(rows=(row,), environment=ProjectEnvironment())
        sandbox = await sandbox_for(settings, environment)
        if not await asyncio.to_thread(environment.home.exists):
            environment = environment.model_copy(update={"home": folder})
        base = BaseCommit(mirror, workspace.base, repo)
        runner = project_runner(settings, environment, folder / "environments", sandbox, base=base)

        async def install(root: Path) -> ProjectEnvironment:
            return await runner.environment(root, key=KEY)

        made = await workspace.base_tree(install)
        trial = (await try_base(workspace, runner, key=KEY, timeout_s=settings.environment.base_timeout_s)).trial
    finally:
        workspace.close()
        await asyncio.to_thread(remove_tree, folder)
    fine = f"{made.megabytes:.0f} MB in {made.seconds:.1f} s, from {', '.join(made.because) or 'no manifest'}"
    problem = f"{made.problem}\n{made.output_end}".strip() if made.problem else ""
    todo = trial.todo or "correct the manifests" if problem else ""
    if made.failed:
        problem = f"{problem}\n{build_failed(made.failed).message}".strip()
        todo = todo or build_failed(made.failed).fix
    rows = (
        Row(name="environment", ok=not problem, happened=problem or fine, todo=todo),
        Row(name="base", ok=trial.usable, happened=trial.told if trial.usable else trial.refusal, todo=trial.todo),
    )
    return Examined(rows=rows, environment=made, base=trial)
