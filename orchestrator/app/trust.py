"""Trust in what lies in a repository: its settings count once their user has said so, its state folder never."""

import asyncio
import hashlib
import shlex
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from orchestrator.core.errors import ConfigError
from orchestrator.git.tracked import find_tracking_repository
from orchestrator.settings import Environment, Settings, find_config, is_stream, load, packaged, process_variables

T = TypeVar("T")


def load_settings(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    *,
    found: Path | None = None,
) -> tuple[Settings, Environment]:
    """Reads settings as `load` does, and refuses what a repository brought. Raises ConfigError. Blocks.

    `config` was named by the user and counts as it is. Without it, `found`, or the config.yaml of the current folder,
    counts if no repository tracks it, or if its user has trusted this content. A state folder is refused that a
    repository tracks, or that is reached through a link that one tracks.
    """
    variables = process_variables() if variables is None else variables
    here = config or found or find_config(Path.cwd())
    if config is None and here is not None and not _is_packaged(here):
        _expect_trusted(here, variables)
    settings, environment = load(here, overrides, variables)
    if (top := _run(find_tracking_repository(environment.home))) is not None:
        raise ConfigError(
            f"the state folder {environment.home} came with the repository {top}: git tracks it, or a link that leads "
            "to it, and its records could be anybody's; name another folder by ORCHESTRATOR_HOME, or delete this one "
            "from the repository and from the disk"
        )
    return settings, environment


def _is_packaged(path: Path) -> bool:
    own = (packaged("config.yaml"), packaged("examples"))
    return any(path.resolve().is_relative_to(place.resolve()) for place in own)


def _expect_trusted(path: Path, variables: Mapping[str, str]) -> None:
    top = _run(find_tracking_repository(path))
    if top is None:
        return
    with suppress(ConfigError):  # there is no home folder, where trust would be kept
        if _trust_file(_read(path), variables).exists():
            return
    named = shlex.quote(str(path))
    raise ConfigError(
        f"{path} came with the repository {top}: its settings decide where keys are sent and what runs on this "
        f"machine, so they count only once you have read and trusted them: `orchestrator trust {named}`, or "
        f"name the file with this command: `--config {named}`"
    )


def give_trust(path: Path, variables: Mapping[str, str]) -> str:
    """Keeps that the user trusts the file's content as it is now; returns its SHA-256. Raises ConfigError. Blocks."""
    content = _read(path)
    kept = _trust_file(content, variables)
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept.write_text(f"{path.absolute()}\n", encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"trust cannot be kept in {kept.parent}: {error.strerror}") from error
    return kept.name


def _trust_file(content: bytes, variables: Mapping[str, str]) -> Path:
    """Returns the file that is there once the content is trusted: below XDG_STATE_HOME, in no repository."""
    state, home = Path(variables.get("XDG_STATE_HOME", "")), Path(variables.get("HOME", ""))
    # A relative one would lie wherever the command is given, in a repository too.
    if not state.is_absolute():
        if not home.is_absolute() or not home.is_dir():
            raise ConfigError("trust is kept in the home folder, and HOME names none: use --config")
        state = home / ".local" / "state"
    return state / "orchestrator" / "trusted" / hashlib.sha256(content).hexdigest()


def _read(path: Path) -> bytes:
    if is_stream(path) or not path.is_file():
        raise ConfigError(f"{path} is no file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read configuration {path}: {error.strerror}") from error


def _run(work: Coroutine[object, object, T]) -> T:
    """Runs `work` on a loop of its own, wherever the caller is."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
