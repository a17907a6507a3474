"""The sidecar: cells that have no place in the backlog file, kept as JSON in the state folder (DESIGN 5.9)."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.adapters.atomic_file import replace_content
from orchestrator.domain.base import Value


class SidecarCell(Value):
    """One cell's value, with what the file held when it was set aside."""

    value: str
    was: str | None = None
    """The file's cell at that time; None when the file had no such row or column."""

    def newer_than(self, current: str) -> bool:
        """Whether the file's cell is still as it was; a later change by a person counts more than this value."""
        return current == (self.was or "")


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
