"""A CSV backlog: read into stories, and single cells written back without touching another byte."""

import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.adapters.atomic_file import commit, is_read_only, stage
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
from orchestrator.adapters.csv_file import parse_csv
from orchestrator.adapters.csv_stories import Sheet
from orchestrator.domain.findings import Where, critical
from orchestrator.domain.story import BacklogContent, CellUpdate
from orchestrator.errors import BacklogError

_TRIES = 5
"""How often a write starts again because somebody saved the file meanwhile."""


class _ChangedMeanwhile(OSError):
    """Somebody saved the file between our reading it and our replacing it."""


def _read_bytes(path: Path, source: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"cannot read the backlog {source}: {error.strerror}"
        finding = critical("backlog.unreadable", message, where=Where(file=source), fix="name an existing CSV file")
        raise BacklogError(message, findings=(finding,)) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on the file itself, so that two processes do not lose each other's cells.

    The file is replaced by every write: after waiting, the lock must still be on the file the path names.
    """
    while True:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # a file system without locks: the sprint's own lock has to do
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                yield
                return
        finally:
            os.close(descriptor)


def _signature(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


class CsvBacklog:
    """One CSV file behind the port Backlog; `sidecar` is a JSON file in the state folder for cells it cannot take.

    `write` is for one caller at a time in a process (BacklogWriter); other processes are kept out by a file lock.
    """

    def __init__(self, path: Path, sidecar: Path, rules: ReadingRules) -> None:
        self._path = path
        self._sidecar = sidecar
        self._rules = rules
        self._unsaved: Wanted = {}

    def read(self) -> BacklogContent:
        """Read stories and the problems of single rows; relations between rows are `checks.backlog`'s to judge.

        Sidecar cells count for columns the file lacks, and for cells of the file unchanged since they were set aside.
        Raises BacklogError (message and finding) when the file is missing, empty, not UTF-8, has an open quote, lacks
        a required column, or holds no rows.
        """
        source = str(self._path)
        sheet = Sheet(parse_csv(_read_bytes(self._path, source), source), source)
        overlay, broken = reading_overlay(self._sidecar)
        stories, found = build_stories(sheet.rows(), source, overlay, self._rules)
        problems = [*sheet.shape_findings(), *found, *broken]
        problems.sort(key=lambda finding: finding.where.line or 0)
        return BacklogContent(source=source, stories=tuple(stories), problems=tuple(problems))

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        """Change cells by story id in the file as it is now; None when all is stored, else a sentence for people.

        Never raises for what the disk does. Cells of columns the file lacks go to the sidecar without a word; when the
        file cannot be changed at all, every cell goes there and the sentence says why.
        """
        wanted = merged(self._unsaved, updates)
        with sidecar_to_ourselves(self._sidecar):
            aside, _ = load_sidecar(self._sidecar)
            try:
                remaining, gone = self._into_file(wanted, aside)
                warning = f"no row {', '.join(gone)} is left in {self._path}" if gone else None
            except (OSError, BacklogError) as error:
                remaining = self._all_aside(wanted, aside)
                warning = f"the backlog file {self._path} was not changed ({_reason(error)})"
            return self._keep(remaining, aside, wanted, warning)

    def _keep(self, remaining: Wanted, before: SidecarCells, wanted: Wanted, warning: str | None) -> str | None:
        """Store what the file did not take; what cannot be stored either is tried again with the next write."""
        self._unsaved = {}
        if remaining != before.cells:
            try:
                save_sidecar(self._sidecar, SidecarCells(cells=remaining))
            except OSError as error:
                self._unsaved = wanted
                reason = f"{self._sidecar} cannot be written: {error.strerror}"
                return f"{warning}, and {reason}" if warning else f"cells were not stored: {reason}"
        return f"{warning}; its new cells are in {self._sidecar}" if warning else None

    def _into_file(self, wanted: Wanted, aside: SidecarCells) -> tuple[Wanted, list[str]]:
        """Put cells into the file; returns what stays in the sidecar, and wanted ids that have no row any more."""
        if is_read_only(self._path):
            raise OSError(errno.EROFS, "it or its folder is read-only")
        target = Path(os.path.realpath(self._path))
        for _ in range(_TRIES - 1):
            try:
                return self._into_file_once(target, wanted, aside)
            except _ChangedMeanwhile:
                continue
        return self._into_file_once(target, wanted, aside)

    def _into_file_once(self, target: Path, wanted: Wanted, aside: SidecarCells) -> tuple[Wanted, list[str]]:
        with _locked(target):
            signature = _signature(target)
            data = target.read_bytes()
            sheet = Sheet(parse_csv(data, str(self._path)), str(self._path))
            edits, remaining, gone = _edits(sheet, wanted, aside)
            changed = sheet.table.replaced(edits)
            if changed != data:
                beside = stage(target, changed)
                if _signature(target) != signature:
                    beside.unlink(missing_ok=True)
                    raise _ChangedMeanwhile(errno.EAGAIN, "it is being changed by somebody else")
                commit(beside, target)
        return remaining, gone

    def _all_aside(self, wanted: Wanted, aside: SidecarCells) -> Wanted:
        """Every cell for the sidecar, each with what the file holds now, as far as it can be read."""
        rows: dict[str, Mapping[str, str]] = {}
        try:
            source = str(self._path)
            sheet = Sheet(parse_csv(_read_bytes(self._path, source), source), source)
            rows = {row.story_id: row.cells for row in reversed(sheet.rows())}
        except BacklogError:
            sheet = None
        remaining = {story: dict(row) for story, row in aside.cells.items()}
        for story, row in wanted.items():
            for column, cell in row.items():
                known = sheet is not None and story in rows and column.lower() in sheet.columns
                was = rows[story].get(column.lower(), "") if known else None
                remaining.setdefault(story, {})[column] = SidecarCell(value=cell.value, was=was)
        return remaining


def _edits(sheet: Sheet, wanted: Wanted, aside: SidecarCells) -> tuple[dict[tuple[int, int], str], Wanted, list[str]]:
    """Cell edits for wanted and set-aside values; what stays in the sidecar; wanted ids without a row."""
    rows = {row.story_id: row for row in reversed(sheet.rows())}
    edits: dict[tuple[int, int], str] = {}
    remaining: Wanted = {}
    for story, column, cell in aside.each():
        place = sheet.columns.get(column.lower())
        if place is None or story not in rows:
            remaining.setdefault(story, {})[column] = cell
        elif cell.newer_than(rows[story].cells.get(column.lower(), "")):
            edits[rows[story].number, place] = cell.value
    for story, row in wanted.items():
        for column, cell in row.items():
            place = sheet.columns.get(column.lower())
            if place is None or story not in rows:
                remaining.setdefault(story, {})[column] = cell
            else:
                edits[rows[story].number, place] = cell.value
    return edits, remaining, [story for story in wanted if story not in rows]


def _reason(error: OSError | BacklogError) -> str:
    return error.message if isinstance(error, BacklogError) else (error.strerror or str(error))
