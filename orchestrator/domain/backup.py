"""What a backup says of itself, and what became of making or restoring one."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from orchestrator.domain.base import Value

FORMAT = 1
"""Raised when an older version could not restore what a newer one writes."""
HEADER, MANIFEST = "backup.json", "manifest.json"
"""The first and the last member of the archive."""


class SprintKept(Value):
    """A sprint in a backup."""

    sprint: str
    going_on: bool
    """Whether it was not finished: after a restore it goes on."""


class BackupHeader(Value):
    """backup.json."""

    format: int = FORMAT
    version: str
    """Of the orchestrator that made it."""
    created: datetime
    """The moment that it shows."""
    home: str
    """The state folder it was."""
    database: Literal["sqlite", "postgres"]
    sprints: tuple[SprintKept, ...] = ()


class FileSum(Value):
    """One file of the archive."""

    size: int
    sha256: str


class Manifest(Value):
    """manifest.json: every other file of the archive."""

    files: dict[str, FileSum] = Field(default_factory=dict)


class BackedUp(Value):
    """A backup that was made."""

    header: BackupHeader
    path: str | None
    """None: it went to a stream."""
    files: int
    size_bytes: int
    """Of the archive."""


class Restored(Value):
    """A backup that is the state folder now."""

    header: BackupHeader
    home: str
    files: int
