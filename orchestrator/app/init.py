"""`init`: a commented configuration and a backlog; `demo`: the packaged example."""

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.app.plan_files import project_files, write_new
from orchestrator.app.runners import project_runner, sandbox_for
from orchestrator.app.trust import give_trust
from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import TestReport
from orchestrator.git.command import run_git
from orchestrator.settings import Environment, Settings, packaged

CONFIG, BACKLOG, TEAM = "config.yaml", "backlog.csv", "team.jsonl"
# In a repository there is no scripted team: it would build the example.
_SCRIPT = "script: team.jsonl      # the example team of backlog.csv; --script FILE names another one"
_NO_SCRIPT = "script: null            # recorded answers; --script FILE names them too"


async def start(folder: Path, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Writes commented files into `folder`, which is made when it is absent; all or none. Returns their paths.

    A folder without files gets an example that runs: team.jsonl is the scripted team that builds the stories of
    backlog.csv. Any other gets config.yaml and a backlog.csv without rows. `variables` is the process environment.
    Raises ConfigError when one of them is there already, or the folder cannot be read or written.
    """
    await asyncio.to_thread(_prepare, folder)
    is_empty = all(path.startswith(".") for path in await project_files(folder))
    texts = await asyncio.to_thread(_packaged)
    if not is_empty:
        header = texts[BACKLOG].partition("\n")[0]
        texts = {CONFIG: texts[CONFIG].replace(_SCRIPT, _NO_SCRIPT), BACKLOG: f"{header}\n"}
    targets = {folder / name: text for name, text in texts.items()}
    await asyncio.to_thread(write_new, targets)
    with suppress(ConfigError):  # no home folder: the user is asked for it should git ever track the file
        await asyncio.to_thread(give_trust, folder / CONFIG, variables)
    return tuple(targets)


def _prepare(folder: Path) -> None:
    try:
        for path in (folder / CONFIG, folder / BACKLOG, folder / TEAM):
            if path.exists() or path.is_symlink():
                raise ConfigError(f"{path} is there already and is never overwritten; move it, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror}") from error


def _packaged() -> dict[str, str]:
    source = packaged("examples") / "init"
    return {name: (source / name).read_text(encoding="utf-8") for name in (CONFIG, BACKLOG, TEAM)}


EXAMPLE = "library"
PARTS = ("backlog.csv", "vision.md", "config.yaml", "team.jsonl", "README.md")


def fresh_copy(parent: Path) -> Path:
    """Returns a new folder `demo-run`, `demo-run-2`, … below `parent` with the example's files. Raises ConfigError."""
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
    """Clones `branch` of `repo` into `target`, so that a person can look at it and run it. Raises WorkspaceError."""
    await run_git(
        ["clone", "--quiet", "--no-local", "--branch", branch, "--", str(repo), str(target)],
        cwd=repo.parent,
        protocols="file",
    )


async def run_suite(folder: Path, settings: Settings, environment: Environment) -> TestReport:
    """Returns the whole suite of the application in `folder`."""
    sandbox = await sandbox_for(settings, environment)
    runner = project_runner(settings, environment, environment.home / "environments", sandbox)
    return await runner.run(folder, key="demo")
