"""`doctor --repo`: a project's dependencies and tests, tried as before a sprint, on a copy of its last commit."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.repository import Repository, open_repository
from orchestrator.checks.environment import build_failed
from orchestrator.domain.base import Value
from orchestrator.domain.base_trial import BaseTrial
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.project_environment import ProjectEnvironment
from orchestrator.errors import ConfigError, RepositoryError, WorkspaceError
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.base import holds_something, try_base
from orchestrator.wiring.runners import project_runner
from orchestrator.wiring.sandboxes import sandbox_for

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
        return ProjectLook(rows=(_row("repository", "a repository that can be read", error.message, todo, ok=False),))


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
        fine = _row("base", "the last commit can be run", "base: nothing to run", "", ok=True)
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
        _row(
            "environment", "the dependencies can be installed", f"{made.problem}\n{made.output_end}".strip() or told,
            (trial.todo or "correct the manifests") if made.problem else "", ok=not made.problem,
        )
    ]  # fmt: skip
    if made.failed:
        cause = build_failed(made.failed)
        rows.append(_row("native packages", "packages can be built", cause.message, cause.fix, ok=False))
    usable = trial.usable
    told = trial.told if usable else trial.refusal
    return [*rows, _row("base", "the last commit can be run", told, trial.todo, ok=usable)]


def _row(name: str, expected: str, happened: str, todo: str, *, ok: bool) -> DoctorRow:
    return DoctorRow(name=name, group="project", expected=expected, happened=happened, ok=ok, todo=todo)
