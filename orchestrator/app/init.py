"""`init`: a configuration and a backlog, packaged or proposed from a repository; `demo`: the packaged example."""

import asyncio
import csv
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.app.plan_files import project_files, read_texts, write_new
from orchestrator.app.runners import project_runner, sandbox_for
from orchestrator.app.trust import give_trust
from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import TestReport
from orchestrator.core.value import counted
from orchestrator.environments.interpreters import installed
from orchestrator.environments.proposal import is_read, propose, section
from orchestrator.git.command import run_git
from orchestrator.providers.routing import keys_there
from orchestrator.settings import Environment, Settings, packaged
from orchestrator.sprint.proposal import configuration, foundation_backlog, look
from orchestrator.story.project_scan import build_surface, scan_paths
from orchestrator.test_runners.choice import RUNNERS

CONFIG, BACKLOG, TEAM = "config.yaml", "backlog.csv", "team.jsonl"
# In a repository no scripted team is proposed: it would build the example.
_SCRIPT = "script: team.jsonl      # the example team of backlog.csv; --script FILE names another one"
_NO_SCRIPT = "script: null            # recorded answers; --script FILE names them too"


@dataclass(frozen=True, kw_only=True)
class Started:
    """The files that `init` wrote, and their origin."""

    folder: Path
    written: tuple[Path, ...]
    files: int
    """Files of the repository that were looked at; 0 for an empty folder."""
    found: tuple[str, ...]
    """Sentences on what went into the proposal."""
    keys: dict[str, str]
    """Provider → the environment variable that holds a key for it."""


async def start(
    folder: Path, variables: Mapping[str, str], take: Callable[[Sequence[str]], bool] | None = None
) -> Started:
    """Writes config.yaml and backlog.csv into `folder`, which is made when it is absent; all or none.

    An empty folder gets an example that runs: team.jsonl is the scripted team that builds its stories.

    `take` is asked whether commands that the repository's files give belong into the configuration; without it, or
    where it says no, they stand there as comments. `variables` is the process environment: nothing of it is written,
    only the names of keys that are set are reported.
    Raises ConfigError when one of them is there already, or the folder cannot be read or written.
    """
    await asyncio.to_thread(_prepare, folder)
    files = await project_files(folder)
    if any(not path.startswith(".") for path in files):  # else there is nothing to propose from
        texts, found = await _proposed(folder, files, variables, take)
    else:
        texts, found = await asyncio.to_thread(_packaged), ()
    targets = {folder / name: text for name, text in texts.items()}
    await asyncio.to_thread(write_new, targets)
    with suppress(ConfigError):  # no home folder: the user is asked for it should git ever track the file
        await asyncio.to_thread(give_trust, folder / CONFIG, variables)
    return Started(folder=folder, written=tuple(targets), files=len(files), found=found, keys=keys_there(variables))


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


async def _proposed(
    folder: Path,
    files: tuple[str, ...],
    variables: Mapping[str, str],
    take: Callable[[Sequence[str]], bool] | None,
) -> tuple[dict[str, str], tuple[str, ...]]:
    wanted = {*scan_paths(files), *(path for path in files if path in {"package.json", "pyproject.toml"})}
    texts = await asyncio.to_thread(read_texts, folder, sorted(wanted))
    # A name that does not print would break the proposed CSV.
    surface = build_surface("", tuple(path for path in files if path.isprintable()), texts)
    name = (await asyncio.to_thread(folder.resolve)).name
    found = look(name, surface, texts, RUNNERS)
    templates = await asyncio.to_thread(_packaged)
    header = next(csv.reader([templates[BACKLOG].split("\n", 1)[0]]))
    facts = {"vision": found.vision, "wireframes": found.wireframes, "test runner": found.runner}
    told = [f"{what}: {value}" for what, value in facts.items() if value]
    told += [counted(len(surface.dependencies), "package")] if surface.dependencies else []
    setups = propose(await asyncio.to_thread(read_texts, folder, filter(is_read, files)))
    commands = [f"{line.text}  ({line.source})" for line in setups.commands]
    taken = bool(commands) and take is not None and await asyncio.to_thread(take, commands)
    python = await asyncio.to_thread(installed, variables.get("PATH", "")) if setups.python else ()
    environment = section(setups, [str(one.number) for one in python if one.usable], take=taken)
    proposal = {
        CONFIG: configuration(templates[CONFIG].replace(_SCRIPT, _NO_SCRIPT), found) + environment,
        BACKLOG: foundation_backlog(header, found, surface),
    }
    return proposal, tuple(told)


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
