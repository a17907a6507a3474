"""Rows that are done with another story (`closes`): which, and who waits for whom then. Pure."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.story import Story


def closers(stories: Sequence[Story]) -> dict[str, str]:
    """Closed row → the story that is run for it, over chains; of several closers the first counts.

    Unknown ids, a story that closes itself, and circles are left out: they are findings of the checks.
    """
    direct = _direct(stories)
    result: dict[str, str] = {}
    for row, closer in direct.items():
        seen = {row}
        while closer in direct and closer not in seen:
            seen.add(closer)
            closer = direct[closer]
        if closer not in direct:
            result[row] = closer
    return result


def _direct(stories: Sequence[Story]) -> dict[str, str]:
    known = {story.id for story in stories}
    direct: dict[str, str] = {}
    for story in stories:
        for row in story.closes:
            if row in known and row != story.id:
                direct.setdefault(row, story.id)
    return direct


def done_rows(stories: Sequence[Story]) -> frozenset[str]:
    """Rows that say they are completed, and over chains the rows that those close."""
    closes: dict[str, list[str]] = {}
    for row, closer in _direct(stories).items():
        closes.setdefault(closer, []).append(row)
    waiting = [story.id for story in stories if story.completed]
    done: set[str] = set()
    while waiting:
        row = waiting.pop()
        if row not in done:
            done.add(row)
            waiting += closes.get(row, ())
    return frozenset(done)


def closed_rows(closer_of: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Closer → the rows that are done with it."""
    rows: dict[str, list[str]] = {}
    for row, closer in closer_of.items():
        rows.setdefault(closer, []).append(row)
    return {closer: tuple(names) for closer, names in rows.items()}


def effective_needs(stories: Sequence[Story]) -> dict[str, tuple[str, ...]]:
    """Story → what it waits for, for every story that is run itself.

    A need of a closed row is a need of its closer, and a closer waits also for what the rows it closes depend on. What
    a closer needs of its own rows is met by itself, and a row that is done already (`done_rows`) is met as it is.
    """
    by_id = {story.id: story for story in reversed(stories)}
    closer_of = closers(stories)
    closed, done = closed_rows(closer_of), done_rows(stories)
    needs: dict[str, tuple[str, ...]] = {}
    for story_id, story in ((story.id, by_id[story.id]) for story in stories):
        if story_id in closer_of or story_id in needs:
            continue
        wanted = list(story.dependencies)
        for row in closed.get(story_id, ()):
            wanted += () if row in done else by_id[row].dependencies
        met_by = (need if need in done else closer_of.get(need, need) for need in wanted)
        own = {story_id} if story_id in closed and story_id not in story.dependencies else set()
        needs[story_id] = tuple(need for need in dict.fromkeys(met_by) if need not in own)
    return needs


def told_of_closed(stories: Sequence[Story], closes: Mapping[str, Sequence[str]]) -> dict[str, Story]:
    """Story id → the story as its personas are told: with what the rows it closes ask for, and their wireframe."""
    told = {story.id: story for story in reversed(stories)}
    rows = dict(told)
    for closer, names in closes.items():
        closed = [rows[name] for name in names if name in rows]
        if closer in told and closed:
            story = told[closer]
            notes = "\n".join(filter(None, [story.notes, *(_demand(row) for row in closed)]))
            wireframe = next((ref for ref in (story.wireframe_ref, *(row.wireframe_ref for row in closed)) if ref), "")
            told[closer] = story.model_copy(update={"notes": notes, "wireframe_ref": wireframe})
    return told


def _demand(row: Story) -> str:
    asked = filter(None, [row.user_story, row.functional_requirements, row.constraints, *row.acceptance_criteria])
    return f"This story also completes {row.id} ({row.title}): {'; '.join(asked)}".removesuffix(": ")
