"""Backlogs that are handed in to the daemon: checked first, then kept in the state folder and watched."""

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.app.sprints import read_checked
from orchestrator.backlogs.files import open_backlog
from orchestrator.checks.backlog import all_problems
from orchestrator.core.daemon import Submitted
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.finding import Finding
from orchestrator.daemon.backlog_watcher import SUFFIXES
from orchestrator.files.atomic_file import private, replace_content
from orchestrator.settings import Environment, Settings
from orchestrator.sprint.dry_run import DryRun, dry_run
from orchestrator.storage.state_folder import StateFolder

# It becomes a file name: no separator, and no leading dot that would hide it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def submit(folder: StateFolder, settings: Settings, name: str, suffix: str, content: bytes) -> Submitted:
    """Keeps `content` as the backlog `name`, in place of what it held. Blocks.

    Raises ConfigError for a name or a format we do not take, BacklogError with every problem of the content; what was
    there before then stays.
    """
    _check(name, suffix)
    folder.submitted.mkdir(parents=True, exist_ok=True)
    target = folder.submitted / f"{name}{suffix}"
    others = [path for path in _of(folder, name) if path != target]
    if others:
        raise ConfigError(f"the backlog {name} was handed in as {others[0].name}: withdraw it first, or take this form")
    with _beside(folder, target.name, content) as beside:
        read = read_checked(beside, settings, folder)
        replaced = target.exists()
        replace_content(target, content)
    warnings = tuple(all_problems(read))
    return Submitted(name=name, path=str(target), stories=len(read.stories), replaced=replaced, warnings=warnings)


def plan_backlog(environment: Environment, settings: Settings, name: str, suffix: str, content: bytes) -> DryRun:
    """Returns what a run of all rows would do and cost; nothing of `content` is kept. Blocks.

    Raises ConfigError for a name or a format we do not take, BacklogError for what cannot be read at all.
    """
    _check(name, suffix)
    folder = StateFolder(environment.home)
    with _beside(folder, f"{name}{suffix}", content) as beside:
        read = open_backlog(beside, settings, folder).read()
        made = dry_run(read, stories=None, settings=settings)
        return DryRun.model_validate_json(_renamed(made.model_dump_json(), f"{name}{suffix}", beside))


@contextmanager
def _beside(folder: StateFolder, name: str, content: bytes) -> Iterator[Path]:
    """The content under its own name in a folder of its own: findings name the file, and no watcher sees it."""
    beside = folder.home / "daemon" / "incoming" / secrets.token_hex(8) / name
    beside.parent.mkdir(parents=True)
    try:
        with open(beside, "wb", opener=private) as file:
            file.write(content)
        yield beside
    except BacklogError as error:
        raise _about(name, beside, error) from error
    finally:
        beside.unlink(missing_ok=True)
        beside.parent.rmdir()


def _renamed(text: str, name: str, beside: Path) -> str:
    """Returns JSON that names the file as its sender knows it."""
    return text.replace(json.dumps(str(beside))[1:-1], name)


def _about(name: str, beside: Path, error: BacklogError) -> BacklogError:
    """Returns the error with the file as its sender knows it: by its name."""
    findings = [
        Finding.model_validate_json(_renamed(finding.model_dump_json(), name, beside)) for finding in error.findings
    ]
    return BacklogError(error.message.replace(str(beside), name), findings=findings)


def withdraw(folder: StateFolder, name: str) -> None:
    """Stops watching it. Raises ConfigError when there is none of this name. Blocks."""
    _check(name, SUFFIXES[0])
    found = _of(folder, name)
    if not found:
        raise ConfigError(f"no backlog {name} was handed in")
    kept = folder.submitted / "withdrawn"
    kept.mkdir(exist_ok=True)
    for path in found:
        # What was good last is kept beside the daemon's own state: sprints that are at work go on with it.
        path.rename(kept / path.name)


def _of(folder: StateFolder, name: str) -> list[Path]:
    return [path for suffix in SUFFIXES if (path := folder.submitted / f"{name}{suffix}").exists()]


def _check(name: str, suffix: str) -> None:
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ConfigError(f"{name[:80]!r} cannot name a backlog: letters, digits, dots, dashes, at most 64")
    if suffix not in SUFFIXES:
        raise ConfigError(f"{suffix[:20]!r} is no form of a backlog that can be handed in: {', '.join(SUFFIXES)}")
