"""One story in a Markdown file: front matter between `---` lines, then a section per field. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.adapters.backlog_rows import Row
from orchestrator.adapters.backlog_tree import Fields, Node, Scalar, field_name, story_row, unusable
from orchestrator.adapters.yaml_tree import parse_yaml
from orchestrator.domain.findings import Finding, minor

_HEADING = re.compile(r"(#{1,2})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FIX = "begin the file with a line `---`, then `id: …`, `title: …`, and a line `---`"


class _Section(NamedTuple):
    """A heading with the text below it; level 0 is what stands in front of every heading."""

    level: int
    heading: str
    line: int
    body: str


def parse_story(text: str, source: str, file: str, number: int) -> tuple[Row, list[Finding]]:
    """The story of `file` in the folder `source`.

    The id is the front matter's, else the file's name; the title the front matter's, else the first `# ` heading's.
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
    pairs: list[tuple[Scalar, Node]] = list(front.pairs)
    pairs += [
        (Scalar(section.line, section.heading), Scalar(section.line, section.body))
        for section in sections
        if section.level == 2 and field_name(section.heading) is not None
    ]
    heading = next((section.heading for section in sections if section.level == 1), "")
    stem = file.rsplit(".", 1)[0]
    defaults = [("story_id", stem)]
    row, found = story_row(Fields(1, tuple(pairs)), source, number=number, file=file, defaults=defaults)
    if not row.cells.get("title", "").strip() and heading:
        row = row._replace(cells={**row.cells, "title": _without_id(heading, row.story_id)})
    return row, [*found, *_unread(row, sections, source)]


def _front_matter_end(lines: list[str], place: str) -> int:
    if not lines or lines[0].rstrip() != "---":
        raise unusable("backlog.front_matter", f"{place} has no front matter in line 1", place, fix=_FIX, line=1)
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in {"---", "..."}:
            return number
    message = f"the front matter of {place}, begun in line 1, is never closed"
    raise unusable("backlog.front_matter", message, place, fix="close it with a line `---`", line=1)


def _sections(lines: list[str], start: int) -> Iterator[_Section]:
    """Text before the first heading, then every heading of level 1 or 2 outside fenced code with its text."""
    level, heading, line, body = 0, "", start + 1, list[str]()
    fence = ""
    for number, text in enumerate(lines[start:], start=start + 1):
        fence, marker = _fence_after(fence, text)
        found = None if fence or marker else _HEADING.fullmatch(text)
        if found is None:
            body.append(text)
            continue
        yield _Section(level, heading, line, "\n".join(body).strip("\n"))
        level, heading, line, body = len(found[1]), found[2].strip(), number, []
    yield _Section(level, heading, line, "\n".join(body).strip("\n"))


def _fence_after(fence: str, text: str) -> tuple[str, bool]:
    """The open fence behind this line ("" when none is), and whether the line is a fence's mark itself."""
    mark = _FENCE.match(text)
    if mark is None:
        return fence, False
    if not fence:
        return mark[1], True
    closes = mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not text[mark.end() :].strip()
    return ("" if closes else fence), True


def _without_id(heading: str, story_id: str) -> str:
    """`US-001: Lend a book` → `Lend a book`."""
    rest = heading.removeprefix(story_id)
    stripped = rest.lstrip(" :\u2013\u2014-")
    return stripped if rest != heading and stripped and rest[:1] in {" ", ":"} else heading


def _unread(row: Row, sections: list[_Section], source: str) -> Iterator[Finding]:
    """A note on text that no field takes, for a person may think that it is read."""
    for section in sections:
        known = section.level == 2 and field_name(section.heading) is not None
        if known or not section.body.strip():
            continue
        name = f"the section {section.heading[:60]!r}" if section.level == 2 else "the text before the first section"
        message = f"{row.file}:{section.line}: {name} is not read"
        where = row.where(source).model_copy(update={"line": section.line})
        yield minor("backlog.section", message, where=where, fix="put it below a heading such as `## Notes`")
