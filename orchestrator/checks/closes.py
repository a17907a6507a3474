"""What is wrong with rows that are closed with other stories. Pure, any format."""

from collections.abc import Iterator, Sequence

from orchestrator.checks.naming import SHOWN, named, nearest, place_of
from orchestrator.domain.findings import Finding, critical
from orchestrator.domain.graph import find_cycle
from orchestrator.domain.story import Story

MAX_SUGGESTIONS = 20


def check_closes(stories: Sequence[Story], source: str) -> Iterator[Finding]:
    """Findings on ids that are no row, a story that closes itself, a row closed twice, and circles; all block."""
    if not any(story.closes for story in stories):
        return
    by_id = {story.id: story for story in stories}
    closed_by: dict[str, Story] = {}
    suggested = 0
    for story in stories:
        where = place_of(story, source, "Closes")
        for row in story.closes:
            if row == story.id:
                message = f"{named(story)} closes itself"
                yield critical("backlog.closes_itself", message, where=where, fix="take its own id out of Closes")
            elif row not in by_id:
                suggested += 1
                hint = nearest(row, list(by_id)) if suggested <= MAX_SUGGESTIONS else ""
                message = f"{named(story)} closes {row[:SHOWN]}, which is no row of the backlog"
                fix = f"{hint} Correct the id or take it out".strip()
                yield critical("backlog.unknown_closed", message, where=where, fix=fix)
            elif row in closed_by:
                message = f"{named(by_id[row])} is closed by {named(closed_by[row])} and by {named(story)}"
                yield critical("backlog.closed_twice", message, where=where, fix="let one of the two close it")
            else:
                closed_by[row] = story
    yield from _circle({row: (story.id,) for row, story in closed_by.items()}, by_id, source)


def _circle(direct: dict[str, tuple[str, ...]], by_id: dict[str, Story], source: str) -> Iterator[Finding]:
    path = find_cycle(by_id, direct)
    if path:
        message = f"stories close each other in a circle: {' ← '.join(path)}"
        where = place_of(by_id[path[0]], source, "Closes")
        yield critical("backlog.closes_cycle", message, where=where, fix="leave one of them to be run itself")
