"""Backlogs in YAML, JSON and Markdown: read and never written, what a run writes goes to the sidecar."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchestrator.adapters.backlog_rows import ReadingRules, build_stories
from orchestrator.adapters.backlog_sidecar import (
    SidecarCell,
    SidecarCells,
    Wanted,
    load_sidecar,
    merged,
    reading_overlay,
    save_sidecar,
    sidecar_to_ourselves,
)
from orchestrator.adapters.backlog_text_file import read_text
from orchestrator.adapters.backlog_tree import RUN_FIELDS, ReadRows, TreeParser, story_rows, unusable
from orchestrator.adapters.markdown_story import parse_story
from orchestrator.domain.story import BacklogContent, CellUpdate
from orchestrator.errors import BacklogError

RowReader = Callable[[Path, str], ReadRows]
"""(path, source) → rows and findings. Raises BacklogError."""
_NO_STORIES = frozenset({"readme", "index", "contributing", "changelog", "license", "template"})
_MAX_BROKEN = 20
_DIGITS = re.compile(r"(\d+)")


def tree_reader(parse: TreeParser) -> RowReader:
    """A reader of one file with a list of stories."""
    return lambda path, source: story_rows(parse(read_text(path, source), source), source)


def markdown_files(folder: Path, source: str) -> list[Path]:
    """The story files in a folder, by name with numbers in order; sub-folders are not looked into.

    README, index and the like, and names that begin with `.` or `_`, are no stories. Raises BacklogError.
    """
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    except OSError as error:
        message = f"cannot read the backlog {source}: {error.strerror}"
        raise unusable("backlog.unreadable", message, source, fix="name an existing file or folder") from error
    stories = [name for name in names if name.lower().endswith(".md") and not name.startswith((".", "_"))]
    kept = [name for name in stories if name.rsplit(".", 1)[0].lower() not in _NO_STORIES]
    return [folder / name for name in sorted(kept, key=_natural)]


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = _DIGITS.split(name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], name


def markdown_rows(path: Path, source: str) -> ReadRows:
    """A row per story file. Raises BacklogError with a finding for each file that cannot be read."""
    files = markdown_files(path, source)
    if not files:
        message = f"the folder {source} holds no story files (*.md)"
        raise unusable("backlog.empty", message, source, fix="write one Markdown file per story, with front matter")
    read, broken = [], []
    for number, file in enumerate(files):
        try:
            text = read_text(file, f"{source}/{file.name}")
            read.append(parse_story(text, source, file.name, number))
        except BacklogError as error:
            broken.append(error)
    if broken:
        shown = [error.message for error in broken[:_MAX_BROKEN]]
        more = [f"… and {len(broken) - _MAX_BROKEN} more files"] if len(broken) > _MAX_BROKEN else []
        raise BacklogError("\n".join([*shown, *more]), findings=[f for error in broken for f in error.findings])
    return ReadRows([row for row, _ in read], [finding for _, found in read for finding in found])


class FileBacklog:
    """A backlog behind the port Backlog whose source never changes by a byte; `sidecar` keeps what runs write.

    `write` is for one caller at a time in a process (BacklogWriter); other processes are kept out by a file lock.
    """

    def __init__(self, path: Path, sidecar: Path, rules: ReadingRules, reader: RowReader) -> None:
        self._path, self._sidecar, self._rules, self._reader = path, sidecar, rules, reader
        self._unsaved: Wanted = {}
        self._known: tuple[object, dict[str, Mapping[str, str]]] | None = None

    def read(self) -> BacklogContent:
        """Read stories and the problems of single ones; relations between them are `checks.backlog`'s to judge.

        Sidecar cells count where the source says nothing, or says what it said when they were set aside. Raises
        BacklogError (message and finding, naming file and line) when the source cannot be read as a backlog.
        """
        source = str(self._path)
        rows, found = self._reader(self._path, source)
        overlay, broken = reading_overlay(self._sidecar)
        stories, notes = build_stories(rows, source, overlay, self._rules)
        problems = [*found, *notes, *broken]
        problems.sort(key=lambda finding: (finding.where.file or "", finding.where.line or 0))
        return BacklogContent(source=source, stories=tuple(stories), problems=tuple(problems))

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        """Keep cells in the sidecar; None when all is stored, else a sentence for people. Never raises for the disk."""
        wanted = merged(self._unsaved, updates)
        with sidecar_to_ourselves(self._sidecar):
            aside, _ = load_sidecar(self._sidecar)
            current = self._current()
            cells = {story: dict(row) for story, row in aside.cells.items()}
            for story, row in wanted.items():
                for column, cell in row.items():
                    was = current.get(story, {}).get(column.lower())
                    cells.setdefault(story, {})[column] = SidecarCell(value=cell.value, was=was)
            self._unsaved = {}
            if cells == aside.cells:
                return None
            try:
                save_sidecar(self._sidecar, SidecarCells(cells=cells))
            except OSError as error:
                self._unsaved = wanted
                return f"cells were not stored: {self._sidecar} cannot be written: {error.strerror}"
        return None

    def _current(self) -> dict[str, Mapping[str, str]]:
        """What the source itself says in the fields that runs write; read again only when the source has changed."""
        try:
            signature = self._signature()
            if self._known is None or self._known[0] != signature:
                rows, _ = self._reader(self._path, str(self._path))
                ours = {
                    row.story_id: {name: row.cells[name] for name in RUN_FIELDS if name in row.cells}
                    for row in reversed(rows)
                }
                self._known = (signature, {story: cells for story, cells in ours.items() if cells})
            return self._known[1]
        except (OSError, BacklogError):  # it is gone or broken just now: what was known of it counts
            return self._known[1] if self._known is not None else {}

    def _signature(self) -> object:
        files = markdown_files(self._path, str(self._path)) if self._path.is_dir() else [self._path]
        return [(file.name, status.st_mtime_ns, status.st_size) for file in files if (status := file.stat())]
