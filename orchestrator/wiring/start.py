"""`init`: a configuration and a backlog to begin with, packaged ones or proposed from what is there."""

import asyncio
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.environment_proposal import is_read, propose, section
from orchestrator.adapters.interpreters import installed
from orchestrator.adapters.project_survey import project_files, read_texts, write_new
from orchestrator.adapters.runner_choice import RUNNERS
from orchestrator.domain.words import counted
from orchestrator.errors import ConfigError
from orchestrator.settings import packaged
from orchestrator.sprint.proposal import configuration, foundation_backlog, look
from orchestrator.sprint.scan import build_surface, scan_paths
from orchestrator.wiring.providers import keys_there

CONFIG, BACKLOG = "config.yaml", "backlog.csv"


@dataclass(frozen=True, kw_only=True)
class Started:
    """What `init` wrote, and from what."""

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
    """Write config.yaml and backlog.csv into `folder`, which is made when it is absent; both or none.

    `take` is asked whether commands that the repository's files give belong into the configuration; without it, or
    where it says no, they stand there as comments. `variables` is the process environment: nothing of it is written,
    only the names of keys that are set are told.
    Raises ConfigError when one of them is there already, or the folder cannot be read or written.
    """
    await asyncio.to_thread(_prepare, folder)
    files = await project_files(folder)
    if files:
        texts, found = await _proposed(folder, files, variables, take)
    else:
        texts, found = await asyncio.to_thread(_packaged), ()
    targets = {folder / name: text for name, text in texts.items()}
    await asyncio.to_thread(write_new, targets)
    return Started(folder=folder, written=tuple(targets), files=len(files), found=found, keys=keys_there(variables))


def _prepare(folder: Path) -> None:
    try:
        for path in (folder / CONFIG, folder / BACKLOG):
            if path.exists() or path.is_symlink():
                raise ConfigError(f"{path} is there already and is never overwritten; move it, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror}") from error


def _packaged() -> dict[str, str]:
    source = packaged("examples") / "init"
    return {name: (source / name).read_text(encoding="utf-8") for name in (CONFIG, BACKLOG)}


async def _proposed(
    folder: Path,
    files: tuple[str, ...],
    variables: Mapping[str, str],
    take: Callable[[Sequence[str]], bool] | None,
) -> tuple[dict[str, str], tuple[str, ...]]:
    wanted = {*scan_paths(files), *(path for path in files if path in {"package.json", "pyproject.toml"})}
    texts = await asyncio.to_thread(read_texts, folder, sorted(wanted))
    surface = build_surface("", tuple(path for path in files if path.isprintable()), texts)
    name = (await asyncio.to_thread(folder.resolve)).name
    found = look(name, surface, texts, RUNNERS)
    templates = await asyncio.to_thread(_packaged)
    header = next(csv.reader([templates[BACKLOG].split("\n", 1)[0]]))
    facts = {"vision": found.vision, "wireframes": found.wireframes, "test runner": found.runner}
    told = [f"{what}: {value}" for what, value in facts.items() if value]
    counts = {"package": surface.dependencies, "endpoint": surface.endpoints, "table": surface.tables}
    told += [counted(len(values), what) for what, values in counts.items() if values]
    setups = propose(await asyncio.to_thread(read_texts, folder, filter(is_read, files)))
    commands = [f"{line.text}  ({line.source})" for line in setups.commands]
    taken = bool(commands) and take is not None and await asyncio.to_thread(take, commands)
    python = await asyncio.to_thread(installed, variables.get("PATH", "")) if setups.python else ()
    environment = section(setups, [str(one.number) for one in python if one.usable], take=taken)
    proposal = {
        CONFIG: configuration(templates[CONFIG], found) + environment,
        BACKLOG: foundation_backlog(header, found, surface),
    }
    return proposal, tuple(told)
