"""Selects the stories of a run, its sprint id, and the dependencies of each story. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence

from orchestrator.checks.backlog import all_problems, named, nearest, place_of, refusal
from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Finding, blocking, major, minor
from orchestrator.core.story import BacklogContent, Story, closers, done_rows, effective_needs, id_problem
from orchestrator.core.value import Value, listed

# Nine digits: a longer number is a name, not a count.
_NUMBERED_SPRINT = re.compile(r"SP-(\d{1,9})", re.IGNORECASE)


class Selection(Value):
    """The stories of one sprint, frozen at its first start."""

    sprint: str
    story_ids: tuple[str, ...]
    """Stories to run, in backlog order; never empty."""
    done_ids: tuple[str, ...]
    """Completed rows and the rows they close, in backlog order: dependencies that are met already."""
    warnings: tuple[Finding, ...]
    """Minor findings on the backlog and on dependencies outside the selection."""
    needs: dict[str, tuple[str, ...]]
    """Selected story → the selected stories it waits for, the foundation included; a key for every selected story."""
    closes: dict[str, tuple[str, ...]] = {}
    """Selected story → the rows that are done with it; these are never selected themselves."""


def select(
    content: BacklogContent,
    *,
    sprint: str | None,
    stories: Sequence[str],
    taken_sprints: Collection[str],
    strict: bool,
) -> Selection:
    """Selects the stories of a new sprint.

    `sprint` None makes the next free SP-nnn over the backlog's cells and `taken_sprints`; `stories` narrows when not
    empty. Raises BacklogError for problems of major severity or worse anywhere in the backlog, a bad sprint id, a story
    that cannot be selected, an empty selection, and with `strict` for an unmet dependency outside the selection.
    """
    if blocking(problems := all_problems(content)):
        raise refusal(content.source, problems)
    name = sprint.strip() if sprint is not None else next_sprint_id(content.stories, taken_sprints)
    if bad := id_problem(name):
        raise BacklogError(f"bad sprint id {name[:80]!r}: {bad}")
    asked = name if sprint is not None else None
    eligible = _of_sprint(content.stories, asked)
    closer_of = closers(content.stories)
    chosen = [story for story in eligible if not story.completed and story.id not in closer_of]
    if stories:
        chosen = _narrowed(content.stories, chosen, stories, closer_of, asked)
    if not chosen:
        raise BacklogError(_why_empty(content, asked))
    if blocking(outside := outside_dependencies(content, chosen, strict=strict)):
        raise refusal(content.source, outside)
    selected, done = frozenset(story.id for story in chosen), done_rows(content.stories)
    return Selection(
        sprint=name,
        story_ids=tuple(story.id for story in chosen),
        done_ids=tuple(story.id for story in content.stories if story.id in done),
        warnings=(*problems, *outside),
        needs=needs_within(content.stories, selected),
        closes={story.id: rows for story in chosen if (rows := tuple(row for row in story.closes if row not in done))},
    )


def next_sprint_id(stories: Sequence[Story], taken: Collection[str]) -> str:
    """Returns SP-nnn, one above the highest number in any Sprint_ID cell or in `taken`; SP-001 when there is none."""
    names = [*(story.sprint_id.strip() for story in stories), *taken]
    numbers = [int(match[1]) for name in names if (match := _NUMBERED_SPRINT.fullmatch(name))]
    return f"SP-{max(numbers, default=0) + 1:03d}"


def outside_dependencies(content: BacklogContent, chosen: Sequence[Story], *, strict: bool) -> tuple[Finding, ...]:
    """Returns a finding per dependency that is neither among `chosen` nor completed: minor, major when `strict`.

    Dependencies on or of a closed row count for the story that closes it.
    """
    needs, done = effective_needs(content.stories), done_rows(content.stories)
    by_id = {story.id: story for story in content.stories}
    selected = {story.id for story in chosen}
    weigh = major if strict else minor
    found: list[Finding] = []
    for story in chosen:
        for need in needs.get(story.id, ()):
            if need not in selected and need in by_id and need not in done:
                message = f"{named(story)} depends on {named(by_id[need])}, which is not in this run and not completed"
                where = place_of(story, content.source, "Dependencies")
                fix = f"take {need} into the run, or mark it completed when it is done"
                found.append(weigh("backlog.dependency_outside", message, where=where, fix=fix))
    return tuple(found)


def _of_sprint(stories: Sequence[Story], sprint: str | None) -> list[Story]:
    """Returns rows with this sprint id; if there are none, or without a sprint, rows without an id."""
    carrying = [story for story in stories if sprint is not None and story.sprint_id.strip() == sprint]
    return carrying or [story for story in stories if not story.sprint_id.strip()]


def _narrowed(
    rows: Sequence[Story],
    chosen: Sequence[Story],
    wanted: Sequence[str],
    closer_of: Mapping[str, str],
    sprint: str | None,
) -> list[Story]:
    names = dict.fromkeys(name.strip() for name in wanted if name.strip())
    by_id, selectable = {story.id: story for story in rows}, {story.id for story in chosen}
    if not names:
        raise BacklogError("--stories names no story")
    if refused := [_why_not(name, by_id, closer_of, sprint) for name in names if name not in selectable]:
        raise BacklogError("; ".join(refused))
    return [story for story in chosen if story.id in names]


def _why_not(name: str, by_id: dict[str, Story], closer_of: Mapping[str, str], sprint: str | None) -> str:
    """Returns why the story called `name` cannot be selected."""
    story = by_id.get(name)
    if story is None:
        return f"the backlog has no story {name[:80]!r}; {nearest(name, list(by_id)) or 'see its column Story_ID'}"
    if name in closer_of:
        return f"{named(story)} is done with {closer_of[name]}, which closes it; take that one"
    if story.completed:
        return f"{named(story)} is completed already; `reset {name}` makes it run again"
    if theirs := story.sprint_id.strip():
        return f"{named(story)} belongs to sprint {theirs}; name it with --sprint {theirs}"
    return f"{named(story)} belongs to no sprint, but other rows carry {sprint}; write {sprint} into its Sprint_ID"


def _why_empty(content: BacklogContent, sprint: str | None) -> str:
    of = f"carries {sprint}" if sprint else "has no Sprint_ID"
    others = dict.fromkeys(story.sprint_id.strip() for story in content.stories if not story.completed)
    names = listed([name for name in others if name], 5)
    more = f"open rows belong to {names}: resume one with --sprint, or `reset STORY`" if names else "`reset` one"
    return f"nothing to run in {content.source}: no row that {of} is open; {more} to run it again"


def _foundation(stories: Sequence[Story]) -> str | None:
    closer_of = closers(stories)
    return next((closer_of.get(story.id, story.id) for story in stories if story.foundation), None)


def needs_within(stories: Sequence[Story], selected: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns each selected story's selected dependencies, and the foundation unless that depends on the story."""
    wanted, foundation = effective_needs(stories), _foundation(stories)
    before: set[str] = set()
    if foundation in selected:
        todo = [foundation]
        while todo:
            story = todo.pop()
            if story is not None and story not in before:
                before.add(story)
                todo += wanted.get(story, ())
    needs: dict[str, tuple[str, ...]] = {}
    for story_id in (story_id for story_id in wanted if story_id in selected):
        direct = [need for need in wanted[story_id] if need in selected]
        if foundation is not None and foundation in selected and story_id not in before and foundation not in direct:
            direct.append(foundation)
        needs[story_id] = tuple(direct)
    return needs
