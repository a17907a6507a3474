"""The sidecar: cells that have no place in the backlog file, kept as JSON in the state folder."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.adapters.atomic_file import replace_content
from orchestrator.adapters.private_files import private
from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.story import CellUpdate


class SidecarCell(Value):
    """One cell's value, with what the file held when it was set aside."""

    value: str
    was: str | None = None
    """The file's cell at that time; None when the file had no such row or column."""

    def newer_than(self, current: str) -> bool:
        """Whether the file's cell is still as it was; a later change by a person counts more than this value."""
        return current == (self.was or "")


Wanted = dict[str, dict[str, SidecarCell]]
"""Story id → column name → cell."""


class SidecarCells(Value):
    """All set-aside cells: story id → column name → cell."""

    version: int = 1
    cells: dict[str, dict[str, SidecarCell]] = Field(default_factory=dict)

    def each(self) -> Iterator[tuple[str, str, SidecarCell]]:
        """Every cell as (story id, column name, cell)."""
        for story_id, row in self.cells.items():
            for column, cell in row.items():
                yield story_id, column, cell


def load_sidecar(path: Path) -> tuple[SidecarCells, str | None]:
    """The sidecar's cells (none when it does not exist) and why it could not be read, or None. Never raises."""
    try:
        return SidecarCells.model_validate_json(path.read_bytes()), None
    except FileNotFoundError:
        return SidecarCells(), None
    except OSError as error:
        return SidecarCells(), f"{path.name} cannot be read: {error.strerror}"
    except ValidationError:
        return SidecarCells(), f"{path.name} holds no sidecar of ours"


def save_sidecar(path: Path, cells: SidecarCells) -> None:
    """Write the sidecar atomically, making its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_content(path, cells.model_dump_json(indent=1).encode("utf-8", "replace") + b"\n")


@contextmanager
def sidecar_to_ourselves(path: Path) -> Iterator[None]:
    """Keep other processes of this state folder out, where a lock file can be made."""
    lock = path.with_name(f"{path.name}.lock")
    with ExitStack() as stack:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(lock, "ab", opener=private)), fcntl.LOCK_EX)
        yield


def merged(unsaved: Wanted, updates: Sequence[CellUpdate]) -> Wanted:
    """What an earlier write could not store with the new cells over it."""
    wanted = {story: dict(row) for story, row in unsaved.items()}
    for update in updates:
        row = wanted.setdefault(update.story_id, {})
        row.update({column: SidecarCell(value=value) for column, value in update.cells.items()})
    return wanted


def reading_overlay(path: Path) -> tuple[Callable[[str, str, str], str], list[Finding]]:
    """How set-aside cells count while a backlog is read (see `newer_than`), and a finding on a broken sidecar."""
    aside, unreadable = load_sidecar(path)
    by_column = {story: {name.lower(): cell for name, cell in row.items()} for story, row in aside.cells.items()}

    def overlay(story_id: str, column: str, current: str) -> str:
        cell = by_column.get(story_id, {}).get(column)
        return cell.value if cell is not None and cell.newer_than(current) else current

    if not unreadable:
        return overlay, []
    fix = "cells set aside earlier are not counted; remove the file"
    return overlay, [minor("backlog.sidecar", unreadable, where=Where(file=str(path)), fix=fix)]
