"""Recordings: a sprint's backlog, base, replies and outcome in one folder, from which it can be run again."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.core.command import GateAnswer
from orchestrator.core.errors import ConfigError
from orchestrator.core.sprint import SprintReport
from orchestrator.core.value import Value

TEAM = "team.jsonl"
"""The replies, as a script of the scripted team."""
BACKLOG, CONFIG, BASE, VISION = "backlog.json", "config.yaml", "base.bundle", "vision.md"
WIREFRAMES, PLANS = "wireframes", "plans"
RECORDING, README = "recording.json", "README.md"


class Recording(Value):
    """What came of the recorded sprint."""

    version: str
    """Of the orchestrator that wrote it."""
    sprint: str
    provider: str | None = None
    """What `run --provider` named, which goes before the settings."""
    base: str = ""
    """Commit that the sprint began from; "" when it began from nothing."""
    tree: str = ""
    """Id of the result's tree; "" when the sprint had no result."""
    report: SprintReport
    answers: dict[str, tuple[GateAnswer, ...]] = Field(default_factory=dict)
    """Story → what people answered."""


def is_recording(folder: Path) -> bool:
    """Returns whether a folder holds a recording. Blocks."""
    return (folder / RECORDING).is_file()


def expect_place(folder: Path) -> None:
    """Raises ConfigError for a folder with other things in it: a recording alone is replaced. Blocks."""
    try:
        if not is_recording(folder) and any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty and holds no recording; name another folder")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"cannot write a recording to {folder}: {error.strerror}") from error


def write_recording(folder: Path, recording: Recording, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes a recording whole or not at all; `files` are all its others by path. Raises ConfigError. Blocks."""
    expect_place(folder)
    place = folder.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        told = json.dumps(recording.model_dump(mode="json"), indent=1)
        _replace(place, (*files, (RECORDING, f"{told}\n".encode())))
    except OSError as error:
        raise ConfigError(f"cannot write the recording {folder}: {error.strerror or error}") from error


def _replace(place: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes all files beside `place`, then puts them in the place of what is there."""
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name[:100]}.", dir=place.parent))
    try:
        for name, content in files:
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            with (beside / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if place.exists():
            shutil.rmtree(place)
        beside.rename(place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def read_recording(folder: Path) -> Recording:
    """Raises ConfigError when `folder` holds none that can be read. Blocks."""
    path = folder / RECORDING
    try:
        # json.loads, because a model's text may hold half a surrogate pair, which pydantic's parser refuses.
        return Recording.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        raise ConfigError(f"{path} holds no recording that this version can read") from error
