"""The packaged example: a fresh copy of it, and the application it leads to."""

import shutil
from pathlib import Path

from orchestrator.adapters.git import run_git
from orchestrator.domain.testing import TestReport
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings, packaged
from orchestrator.wiring.runners import project_runner
from orchestrator.wiring.sandboxes import sandbox_for

EXAMPLE = "library"
PARTS = ("backlog.csv", "vision.md", "config.yaml", "team.jsonl", "README.md")


def fresh_copy(parent: Path) -> Path:
    """A new folder `demo-run`, `demo-run-2`, … below `parent` with the example's files. Raises ConfigError."""
    source = packaged("examples") / EXAMPLE
    number = 1
    while (place := parent.absolute() / ("demo-run" if number == 1 else f"demo-run-{number}")).exists():
        number += 1
    try:
        place.mkdir(parents=True)
        for name in PARTS:
            shutil.copyfile(source / name, place / name)
    except OSError as error:
        raise ConfigError(f"cannot set up the example in {place}: {error.strerror}") from error
    return place


async def check_out(repo: Path, branch: str, target: Path) -> None:
    """Clone `branch` of `repo` into `target`, so that a person can look at it and run it. Raises WorkspaceError."""
    await run_git(
        ["clone", "--quiet", "--no-local", "--branch", branch, "--", str(repo), str(target)],
        cwd=repo.parent,
        protocols="file",
    )


async def run_suite(folder: Path, settings: Settings, environment: Environment) -> TestReport:
    """The whole suite of the application in `folder`."""
    sandbox = await sandbox_for(settings, environment)
    runner = project_runner(settings, environment, environment.home / "environments", sandbox)
    return await runner.run(folder, key="demo")
