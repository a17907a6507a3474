"""Writing cells of a backlog: into its source, else into a sidecar, JSON in the state folder; one task writes them all,
so that stories that end together never lose each other's cells."""

import asyncio
import fcntl
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from pydantic import Field, ValidationError

from orchestrator.backlogs.rows import Overlay, ReadingRules, ReadRows, build_stories
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.ports import Backlog
from orchestrator.core.story import BacklogContent, CellUpdate
from orchestrator.core.value import Value
from orchestrator.files.atomic_file import replace_content


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


def _load_sidecar(path: Path) -> tuple[SidecarCells, str | None]:
    """Returns the sidecar's cells (none when it does not exist) and why it could not be read, or None. Never raises."""
    try:
        return SidecarCells.model_validate_json(path.read_bytes()), None
    except FileNotFoundError:
        return SidecarCells(), None
    except OSError as error:
        return SidecarCells(), f"{path.name} cannot be read: {error.strerror}"
    except ValidationError:
        return SidecarCells(), f"{path.name} holds no sidecar of ours"


def _save_sidecar(path: Path, cells: SidecarCells) -> None:
    """Write the sidecar atomically, making its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_content(path, cells.model_dump_json(indent=1).encode("utf-8", "replace") + b"\n")


@contextmanager
def _sidecar_to_ourselves(path: Path) -> Iterator[None]:
    """Keep other processes of this state folder out, where a lock file can be made."""
    lock = path.with_name(f"{path.name}.lock")
    with ExitStack() as stack:
        with suppress(OSError):  # a read-only folder: continue without a lock
            lock.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(lock, "ab")), fcntl.LOCK_EX)
        yield


class SidecarBacklog:
    """A backlog behind the port Backlog; `sidecar`, a file of the state folder, has cells that its source cannot take.

    `write` is for one caller at a time in a process (BacklogWriter); other processes are kept out by a file lock.
    """

    def __init__(self, path: Path, sidecar: Path, rules: ReadingRules) -> None:
        self._path = path
        self._sidecar = sidecar
        self._rules = rules
        self._unsaved: Wanted = {}

    def rows(self) -> ReadRows:
        """Rows and findings of the source alone. Raises BacklogError."""
        raise NotImplementedError

    def into_source(self, wanted: Wanted, aside: Wanted) -> tuple[Wanted, str | None]:
        """Put cells where they belong; returns what the sidecar holds then, and a sentence for people."""
        raise NotImplementedError

    def read(self) -> BacklogContent:
        """Read stories and the problems of single ones; relations between them are `checks.backlog`'s to judge.

        Sidecar cells count where the source says nothing, or says what it said when they were set aside. Raises
        BacklogError (message and finding, naming file and line) when the source cannot be read as a backlog.
        """
        source = str(self._path)
        rows, found = self.rows()
        overlay, broken = _reading_overlay(self._sidecar)
        stories, notes = build_stories(rows, source, overlay, self._rules)
        problems = [*found, *notes, *broken]
        problems.sort(key=lambda finding: (finding.where.file or "", finding.where.line or 0))
        return BacklogContent(source=source, stories=tuple(stories), problems=tuple(problems))

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        """Change cells by story id; None when all is stored, else a sentence for people. Never raises for the disk.

        Cells without a place in the source go to the sidecar without a word; what cannot be stored there either is
        tried again with the next write.
        """
        wanted = {story: dict(row) for story, row in self._unsaved.items()}
        for update in updates:
            row = wanted.setdefault(update.story_id, {})
            row.update({column: SidecarCell(value=value) for column, value in update.cells.items()})
        with _sidecar_to_ourselves(self._sidecar):
            aside = _load_sidecar(self._sidecar)[0].cells
            cells, warning = self.into_source(wanted, aside)
            self._unsaved = {}
            if cells != aside:
                try:
                    _save_sidecar(self._sidecar, SidecarCells(cells=cells))
                except OSError as error:
                    self._unsaved = wanted
                    reason = f"{self._sidecar} cannot be written: {error.strerror}"
                    return f"{warning}, and {reason}" if warning else f"cells were not stored: {reason}"
        return f"{warning}; its new cells are in {self._sidecar}" if warning else None


def set_aside(wanted: Wanted, aside: Wanted, current: Mapping[str, Mapping[str, str]]) -> Wanted:
    """Returns `aside` with `wanted` over it; `current` is what the source holds now, by story and lower-case column."""
    cells = {story: dict(row) for story, row in aside.items()}
    for story, row in wanted.items():
        for column, cell in row.items():
            was = current.get(story, {}).get(column.lower())
            cells.setdefault(story, {})[column] = SidecarCell(value=cell.value, was=was)
    return cells


def _reading_overlay(path: Path) -> tuple[Overlay, list[Finding]]:
    """How set-aside cells count while a backlog is read (see `newer_than`), and a finding on a broken sidecar."""
    aside, unreadable = _load_sidecar(path)
    by_column = {story: {name.lower(): cell for name, cell in row.items()} for story, row in aside.cells.items()}

    def overlay(story_id: str, column: str, current: str) -> str:
        cell = by_column.get(story_id, {}).get(column)
        return cell.value if cell is not None and cell.newer_than(current) else current

    if not unreadable:
        return overlay, []
    fix = "cells set aside earlier are not counted; remove the file"
    return overlay, [minor("backlog.sidecar", unreadable, where=Where(file=str(path)), fix=fix)]


REST = 20
"""Times the processor time of a write that passes before the next one, which then has the cells of more stories: a file
is read and written as a whole, and large ones would be most of a turn's cost."""
LONGEST_REST_S = 2.0


class BacklogWriter:
    """Owns a task that writes queued cells in order, several stories in one go; use it as `async with`.

    `on_warning` gets a sentence for people when cells went elsewhere; it may be a coroutine function. The same
    sentence comes once until a write succeeds. Leaving the block waits until everything queued is written; an error
    of the backlog that is no warning (a defect) is raised there.
    """

    def __init__(self, backlog: Backlog, on_warning: Callable[[str], object]) -> None:
        self._backlog = backlog
        self._on_warning = on_warning
        self._queue: asyncio.Queue[Sequence[CellUpdate] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._told: str | None = None
        self._closed = False
        self._hurried = asyncio.Event()

    async def __aenter__(self) -> "BacklogWriter":
        self._task = asyncio.create_task(self._run(), name="backlog-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._closed = True
        self._hurried.set()
        self._queue.put_nowait(None)
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self._task  # a cancelled sprint still leaves its last cells behind
            raise

    async def put(self, updates: Sequence[CellUpdate]) -> None:
        """Queue cells and return at once; later cells of the same story and column win.

        Raises RuntimeError outside the `async with` block or after the writing task died.
        """
        if self._task is None or self._closed or self._task.done():
            raise RuntimeError("the backlog writer is not running")
        if updates:
            self._queue.put_nowait(tuple(updates))

    async def flush(self) -> None:
        """Wait until everything queued before is written (or set aside with a warning)."""
        if self._task is None:
            return
        self._hurried.set()
        joined = asyncio.ensure_future(self._queue.join())
        await asyncio.wait({joined, self._task}, return_when=asyncio.FIRST_COMPLETED)
        joined.cancel()
        if not self._closed:
            self._hurried.clear()

    async def _run(self) -> None:
        closing = False
        while not closing:
            batch = [await self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            closing = None in batch
            updates = coalesced([update for group in batch if group for update in group])
            rest = min(await self._write(updates) * REST, LONGEST_REST_S) if updates else 0.0
            for _ in batch:
                self._queue.task_done()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), rest)

    async def _write(self, updates: Sequence[CellUpdate]) -> float:
        def write() -> tuple[str | None, float]:
            began = time.thread_time()
            return self._backlog.write(updates), time.thread_time() - began

        warning, took_s = await asyncio.to_thread(write)
        if warning is not None and warning != self._told:
            told = self._on_warning(warning)
            if inspect.isawaitable(told):
                await told
        self._told = warning
        return took_s


def coalesced(updates: Sequence[CellUpdate]) -> list[CellUpdate]:
    """One update per story, in order of first appearance; of one column's values the last stands."""
    merged: dict[str, dict[str, str]] = {}
    for update in updates:
        merged.setdefault(update.story_id, {}).update(update.cells)
    return [CellUpdate(story_id=story_id, cells=cells) for story_id, cells in merged.items()]
