"""What is wrong between the rows of a backlog of any format: ids, titles, dependencies, closed rows, cycles. Pure."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rapidfuzz import process

from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding, Where, blocking, critical, major, minor
from orchestrator.core.story import (
    BacklogContent,
    IdIndex,
    Story,
    closers,
    cycles,
    effective_needs,
    id_problem,
    parse_dependencies,
)
from orchestrator.core.value import LIKE, counted, listed

SHOWN = 80
"""Characters of a foreign cell that a message repeats."""


def named(story: Story) -> str:
    """Returns a story for people: its id and where it stands, as far as that is known."""
    if story.file:
        return f"{story.id[:SHOWN]} ({story.file}:{story.line})"
    return f"{story.id[:SHOWN]} (line {story.line})" if story.line else story.id[:SHOWN]


def place_of(story: Story, source: str, field: str | None = None) -> Where:
    """Returns where the story stands, for a finding."""
    file = f"{source}/{story.file}" if story.file else source
    return Where(file=file or None, line=story.line or None, story=story.id, field=field)


def nearest(identifier: str, ids: Sequence[str]) -> str:
    """`did you mean X?` for the most similar id, "" when none is similar."""
    found = process.extractOne(identifier, ids, score_cutoff=LIKE)
    return f"did you mean {found[0]}?" if found else ""


def check_closes(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    """Findings on what cannot be done with a story: no row, a row of two stories, one that closes rows itself."""
    rows, closed_by = {story.id: story for story in stories}, closers(reversed(stories))
    for story, row in ((one, row) for one in stories for row in one.closes):
        if row not in rows:
            wrong = "is no row of the backlog"
        elif rows[row].closes:
            wrong = "closes rows itself"
        elif closed_by[row] != story.id:
            wrong = f"is closed by {named(rows[closed_by[row]])} as well"
        else:
            continue
        fix = "name rows that nothing else closes and that close none"
        message = f"{named(story)} closes {row[:SHOWN]}, which {wrong}"
        yield critical("backlog.closes", message, where=place_of(story, source, "Closes"), fix=fix)


MAX_CYCLES = 10
# The nearest id is looked for in all rows: for thousands of wrong cells that would take minutes.
MAX_SUGGESTIONS = 20
MAX_LISTED = 50


def all_problems(content: BacklogContent) -> tuple[Finding, ...]:
    """Every finding on a backlog: those of reading it and those of `check_backlog`, by file and line."""
    found = [*content.problems, *check_backlog(content.stories, source=content.source)]
    return tuple(sorted(found, key=lambda finding: (finding.where.file or "", finding.where.line or 0)))


def refusal(source: str, findings: Sequence[Finding]) -> BacklogError:
    """Returns the error that ends a start: its message lists the findings that block, its `findings` hold all given."""
    listed = [f"  {finding.message}{f' - {finding.fix}' if finding.fix else ''}" for finding in blocking(findings)]
    if len(listed) > MAX_LISTED:
        listed = [*listed[:MAX_LISTED], f"  … and {len(listed) - MAX_LISTED} more"]
    return BacklogError("\n".join([f"{source} cannot be run as it is:", *listed]), findings=findings)


def check_backlog(stories: Sequence[Story], *, source: str = "") -> tuple[Finding, ...]:
    """Findings on ids, titles, dependencies, closed rows and cycles, with stories and lines; major ones block.

    Dependencies are judged from `dependency_note`, the cell as written. Linear in rows and edges.
    """
    first = {story.id: story for story in reversed(stories)}
    unique = [story for story in stories if first[story.id] is story]
    return (
        *_row_findings(stories, first, source),
        *_dependency_findings(unique, source),
        *check_closes(unique, source),
        *_cycle_findings(unique, source),
        *_foundation_findings(unique, source),
    )


def without_criteria(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    """A minor finding that names the stories for which nobody said how they are accepted."""
    bare = [named(story) for story in stories if not story.acceptance_criteria]
    if bare:
        message = f"{counted(len(bare), 'story', 'stories')} without acceptance criteria: {listed(bare, MAX_LISTED)}"
        fix = "write Acceptance_Criteria: the tests of a story are written after them"
        yield minor("backlog.no_criteria", message, where=Where(file=source or None), fix=fix)


def _row_findings(stories: Sequence[Story], first: dict[str, Story], source: str) -> Iterator[Finding]:
    for story in stories:
        where = place_of(story, source, "Story_ID")
        problem = id_problem(story.id)
        if problem:
            place = f" in {story.file}" if story.file else f" in line {story.line}" if story.line else ""
            yield critical(
                "backlog.bad_id", f"bad id {story.id[:SHOWN]!r}{place}: {problem}", where=where, fix="rename it"
            )
        if first[story.id] is not story:
            message = f"the id of {named(story)} is taken by {named(first[story.id])}"
            yield critical("backlog.duplicate_id", message, where=where, fix="give one of the two rows another id")
        if not story.title.strip():
            message = f"{named(story)} has no title"
            yield major("backlog.missing_title", message, where=place_of(story, source, "Title"), fix="write one")


def _dependency_findings(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    ids = [story.id for story in stories]
    index = IdIndex(ids)
    suggested = 0
    for story in stories:
        cell = parse_dependencies(story.dependency_note, index)
        where = place_of(story, source, "Dependencies")
        if story.id in {*cell.ids, *story.dependencies}:
            message = f"{named(story)} depends on itself"
            yield critical("backlog.self_dependency", message, where=where, fix="take its own id out of Dependencies")
        for token in cell.unknown:
            suggested += 1
            hint = nearest(token, ids) if suggested <= MAX_SUGGESTIONS else ""
            message = f"{named(story)} depends on {token[:SHOWN]}, which is no row of the backlog"
            fix = f"{hint} Correct the id or add the row".strip()
            yield critical("backlog.unknown_dependency", message, where=where, fix=fix)
        if cell.notes:
            shown = "; ".join(cell.notes)[:SHOWN]
            what = "names no story in its dependencies" if not cell.ids else "says more than ids in its dependencies"
            message = f"{named(story)} {what} ({shown!r}); the text is read as a note"
            yield minor("backlog.dependency_note", message, where=where, fix="write story ids, or None")


def _cycle_findings(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    by_id = {story.id: story for story in stories}
    for path in islice(cycles(effective_needs(stories)), MAX_CYCLES):
        shown = path if len(path) <= MAX_LISTED else (*path[:MAX_LISTED], "…", path[-1])
        lines = ", ".join(dict.fromkeys(named(by_id[story_id]) for story_id in path[:MAX_LISTED]))
        message = f"the dependencies run in a circle: {' → '.join(shown)}; {lines}"
        where = place_of(by_id[path[0]], source, "Dependencies")
        yield critical("backlog.cycle", message, where=where, fix="remove one of these dependencies")


def _foundation_findings(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    marked = [story for story in stories if story.foundation]
    for story in marked[1:]:
        message = f"{named(story)} is marked as foundation beside {named(marked[0])}; the first one counts"
        yield minor(
            "backlog.foundation_twice", message, where=place_of(story, source, "Foundation"), fix="mark one row"
        )
