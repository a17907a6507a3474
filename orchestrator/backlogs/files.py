"""Which backlog a path is, by its suffix; backlogs in YAML, JSON and Markdown, which are read and never written.

A folder has one story per Markdown file: front matter between `---` lines, then a section per field.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.backlogs.rows import ReadingRules, ReadRows, Row, read_source, unusable
from orchestrator.backlogs.tree import (
    RUN_FIELDS,
    Fields,
    Node,
    Scalar,
    TreeParser,
    field_name,
    heading_field,
    hint_fields,
    parse_json,
    parse_yaml,
    story_row,
    story_rows,
    unread_of,
)
from orchestrator.backlogs.writer import SidecarBacklog, Wanted, set_aside
from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding
from orchestrator.core.ports import Backlog
from orchestrator.core.story import BacklogContent
from orchestrator.core.value import without_comments
from orchestrator.settings import Environment, Settings
from orchestrator.storage.state_folder import StateFolder

_MARKDOWN = MarkdownIt("commonmark").disable("inline")
_FIX = "begin the file with a line `---`, then `id: …`, `title: …`, and a line `---`"


class _Section(NamedTuple):
    """A heading with the text below it; level 0 is what stands in front of every heading."""

    level: int
    heading: str
    line: int
    body: str


def parse_story(text: str, source: str, file: str, number: int) -> tuple[Row, list[Finding]]:
    """Returns the story of `file` in the folder `source`.

    The id is the front matter's, else the file's name; the title the front matter's, else the first `# ` heading's,
    whose text is the description; sections that name no field are notes.
    Raises BacklogError naming file and line for a file without front matter, and broken YAML in it.
    """
    place = f"{source}/{file}"
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = _front_matter_end(lines, place)
    front = parse_yaml("\n".join(lines[1:end]), place, before=1)
    if not isinstance(front, Fields):
        what = "is empty" if front == Scalar(front.line, "") else "holds no fields"
        raise unusable("backlog.front_matter", f"the front matter of {place} {what}", place, fix=_FIX, line=front.line)
    sections = list(_sections(lines, end + 1))
    named = any(field_name(name.text) == "title" for name, _ in front.pairs)
    # A heading such as `# Notes` is the title where nothing else is.
    title = None if named else next((one for one in sections if one.level == 1), None)
    fields = [one for one in sections if one is not title and heading_field(one.heading) is not None]
    pairs: list[tuple[Scalar, Node]] = list(front.pairs)
    pairs += [(Scalar(one.line, heading_field(one.heading) or ""), Scalar(one.line, one.body)) for one in fields]
    stem = file.rsplit(".", 1)[0]
    row, found = story_row(Fields(1, tuple(pairs)), source, number=number, file=file, defaults=[("story_id", stem)])
    cells = dict(row.cells)
    if title is not None and not cells.get("title", "").strip():
        cells["title"] = _without_id(title.heading, row.story_id)
    first = next((one for one in sections if one.level == 1), None)
    for one in sections:
        # What a person wrote into a story is told, wherever it stands.
        body = without_comments(one.body).strip("\n")
        if one not in fields and body.strip():
            at_top = one is first or not one.level
            name, text = ("description", body) if at_top else ("notes", f"{one.heading}:\n{body}")
            cells[name] = "\n\n".join(filter(None, [cells.get(name, ""), text]))
    return row._replace(cells=cells), found


def _front_matter_end(lines: list[str], place: str) -> int:
    if not lines or lines[0].rstrip() != "---":
        raise unusable("backlog.front_matter", f"{place} has no front matter in line 1", place, fix=_FIX, line=1)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in {"---", "..."}:
            return number
    message = f"the front matter of {place}, begun in line 1, is never closed"
    raise unusable("backlog.front_matter", message, place, fix="close it with a line `---`", line=1)


def _sections(lines: list[str], start: int) -> Iterator[_Section]:
    """Text before the first heading, then every heading of level 1 or 2 outside of code and lists with its text."""
    tokens = _MARKDOWN.parse("\n".join(lines[start:]))
    heads = [
        (token.map[0] + start, len(token.markup), text.content)
        for token, text in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.markup in {"#", "##"} and token.map
    ]
    ends = [*(at for at, _, _ in heads), len(lines)]
    for (at, level, heading), end in zip([(start - 1, 0, ""), *heads], ends, strict=True):
        yield _Section(level, heading, max(at, start) + 1, "\n".join(lines[at + 1 : end]).strip("\n"))


def _without_id(heading: str, story_id: str) -> str:
    """`US-001: Lend a book` → `Lend a book`."""
    rest = heading.removeprefix(story_id)
    stripped = rest.lstrip(" :\u2013\u2014-")
    return stripped if rest != heading and stripped and rest[:1] in {" ", ":"} else heading


RowReader = Callable[[Path, str], ReadRows]
"""(path, source) → rows and findings. Raises BacklogError."""
_NO_STORIES = frozenset({"readme", "index", "contributing", "changelog", "license", "template"})
_MAX_BROKEN = 20  # files reported one by one
_DIGITS = re.compile(r"(\d+)")


def tree_reader(parse: TreeParser) -> RowReader:
    """A reader of one file with a list of stories."""
    return lambda path, source: story_rows(parse(read_source(path, source)[1], source), source)


def markdown_files(folder: Path, source: str) -> list[Path]:
    """Returns the story files in a folder, by name with numbers in order; sub-folders are not looked into.

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


# `US-2` comes before `US-10`.
def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = _DIGITS.split(name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], name


def markdown_rows(path: Path, source: str) -> ReadRows:
    """Returns a row per story file. Raises BacklogError with a finding for each file that cannot be read."""
    files = markdown_files(path, source)
    if not files:
        message = f"the folder {source} holds no story files (*.md)"
        raise unusable("backlog.empty", message, source, fix="write one Markdown file per story, with front matter")
    read, broken = [], []
    for number, file in enumerate(files):
        try:
            _expect_inside(file, path, f"{source}/{file.name}")
            _, text = read_source(file, f"{source}/{file.name}")
            read.append(parse_story(text, source, file.name, number))
        except BacklogError as error:
            broken.append(error)
    if broken:
        shown = [error.message for error in broken[:_MAX_BROKEN]]
        more = [f"… and {len(broken) - _MAX_BROKEN} more files"] if len(broken) > _MAX_BROKEN else []
        raise BacklogError("\n".join([*shown, *more]), findings=[f for error in broken for f in error.findings])
    rows = [row for row, _ in read]
    return ReadRows(rows, [*(one for _, found in read for one in found), *hint_fields(unread_of(rows), source)])


def _expect_inside(file: Path, folder: Path, place: str) -> None:
    """Raises BacklogError for a link out of the folder: who may write a link there could show any file to a model."""
    if file.is_symlink() and not file.resolve().is_relative_to(folder.resolve()):
        message = f"{place} is a link to a file outside of the folder, and is not read"
        raise unusable("backlog.link", message, place, fix="put the story itself into the folder")


class FileBacklog(SidecarBacklog):
    """A backlog whose source never changes by a byte: the sidecar keeps what runs write."""

    def __init__(self, path: Path, sidecar: Path, rules: ReadingRules, reader: RowReader) -> None:
        super().__init__(path, sidecar, rules)
        self._reader = reader
        self._known: tuple[object, dict[str, Mapping[str, str]]] | None = None

    def rows(self) -> ReadRows:
        """Rows and findings of the source alone. Raises BacklogError."""
        return self._reader(self._path, str(self._path))

    def into_source(self, wanted: Wanted, aside: Wanted) -> tuple[Wanted, str | None]:
        """Returns the cells, which are all in the sidecar."""
        return set_aside(wanted, aside, self._current()), None

    def _current(self) -> dict[str, Mapping[str, str]]:
        """What the source itself says in the fields that runs write; read again only when the source has changed."""
        try:
            signature = self._signature()
            if self._known is None or self._known[0] != signature:
                rows, _ = self.rows()
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


READERS: Mapping[str, RowReader] = {
    ".yaml": tree_reader(parse_yaml),
    ".yml": tree_reader(parse_yaml),
    ".json": tree_reader(parse_json),
}
"""Suffix → how a file is read that runs never write. A new format is a row here and a parser or a reader of rows."""
SUFFIXES = (".csv", *READERS)


def open_backlog(path: Path, settings: Settings, folder: StateFolder) -> Backlog:
    """Returns the backlog at `path`, with its sidecar in the state folder.

    Raises BacklogError for a file whose suffix says no format we read.
    """
    sidecar = folder.sidecar(path)
    rules = ReadingRules(foundation=settings.backlog.foundation, closes=settings.backlog.closes)
    suffix = path.suffix.lower()
    if path.is_dir():
        return FileBacklog(path, sidecar, rules, markdown_rows)
    if suffix in READERS:
        return FileBacklog(path, sidecar, rules, READERS[suffix])
    if suffix == ".csv" or not path.exists():
        return CsvBacklog(path, sidecar, rules)
    message = f"{path} is no backlog we can read: its name ends with {suffix or 'no suffix'}"
    fix = f"a backlog is a file {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, or a folder of Markdown files (*.md)"
    raise unusable("backlog.format", message, str(path), fix=fix)


def read_backlog(path: Path, settings: Settings, environment: Environment) -> BacklogContent:
    """Returns the backlog, read and validated. Raises BacklogError when nothing can be read."""
    return open_backlog(path, settings, StateFolder.of(environment)).read()
