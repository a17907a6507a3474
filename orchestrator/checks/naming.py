"""Stories named for people, and the id somebody may have meant."""

from collections.abc import Sequence

from rapidfuzz import process

from orchestrator.domain.findings import Where
from orchestrator.domain.story import Story

SHOWN = 80
"""Characters of a foreign cell that a message repeats."""


def named(story: Story) -> str:
    """A story for people: its id and where it stands, as far as that is known."""
    if story.file:
        return f"{story.id[:SHOWN]} ({story.file}:{story.line})"
    return f"{story.id[:SHOWN]} (line {story.line})" if story.line else story.id[:SHOWN]


def place_of(story: Story, source: str, field: str | None = None) -> Where:
    """Where the story stands, for a finding."""
    file = f"{source}/{story.file}" if story.file else source
    return Where(file=file or None, line=story.line or None, story=story.id, field=field)


def nearest(identifier: str, ids: Sequence[str]) -> str:
    """`did you mean X?` for the most similar id, "" when none is similar."""
    found = process.extractOne(identifier, ids, score_cutoff=60)
    return f"did you mean {found[0]}?" if found else ""
