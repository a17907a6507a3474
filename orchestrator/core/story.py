"""Stories and backlogs: their cells as people write them, and which story waits for which, closed rows included."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from orchestrator.core.finding import Finding
from orchestrator.core.value import Value


class Priority(IntEnum):
    """Lower runs first among stories that are ready at once."""

    CRITICAL = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


_TEXTS = (
    "user_story",
    "functional_requirements",
    "non_functional_requirements",
    "integrations",
    "constraints",
    "notes",
)


class Story(Value):
    """One backlog row, typed. Texts are as written; `dependencies` holds ids of other rows only."""

    id: str
    title: str
    user_story: str = ""
    functional_requirements: str = ""
    non_functional_requirements: str = ""
    integrations: str = ""
    dependencies: tuple[str, ...] = ()
    """Ids of rows this story waits for, in the order written, without duplicates."""
    dependency_note: str = ""
    """The dependency cell as written."""
    constraints: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    """One entry per criterion, without its number."""
    priority: Priority = Priority.MEDIUM
    vision_ref: str = ""
    wireframe_ref: str = ""
    notes: str = ""
    sprint_id: str = ""
    execution_status: str = ""
    """The cell as written; `completed` counts as done."""
    foundation: bool = False
    closes: tuple[str, ...] = ()
    """Ids that are closed with this story, without duplicates; an id that is no row's is a finding of the checks."""
    file: str = ""
    """Name of the story's own file, where the backlog is a folder."""
    line: int = 0
    """1-based line of the row in the backlog file; 0 when it has none."""

    @property
    def completed(self) -> bool:
        """Whether the backlog itself says this story is done already."""
        return self.execution_status.strip().lower() == "completed"

    @property
    def texts(self) -> dict[str, str]:
        """What it asks for besides title and criteria: field → text."""
        told = {name: getattr(self, name).strip() for name in _TEXTS}
        return {name: text for name, text in told.items() if text}


class BacklogContent(Value):
    """A whole backlog as read: the stories in file order and every problem found on the way."""

    source: str
    """The path as the user gave it."""
    stories: tuple[Story, ...]
    problems: tuple[Finding, ...] = ()

    def story(self, story_id: str) -> Story | None:
        """Returns the row with this id, or None."""
        return next((story for story in self.stories if story.id == story_id), None)


class CellUpdate(Value):
    """New cell values of one row, by original column name (`Execution_Status`, `Sprint_ID`, …)."""

    story_id: str
    cells: dict[str, str]


def waves(
    order: Iterable[str], needs: Mapping[str, Iterable[str]]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Split `order` into waves: each holds the ids whose needs all stand in earlier waves, in the given order.

    Needs outside `order` are ignored. Returns (waves, ids that cannot be placed because of a cycle). Linear in edges.
    """
    ids = list(order)
    place = {story: number for number, story in enumerate(ids)}
    sorter = TopologicalSorter({story: [need for need in needs.get(story, ()) if need in place] for story in ids})
    with suppress(CycleError):  # what stands before the cycle can be placed all the same
        sorter.prepare()
    result: list[tuple[str, ...]] = []
    while ready := sorter.get_ready():
        result.append(tuple(sorted(ready, key=place.__getitem__)))
        sorter.done(*ready)
    placed = {story for wave in result for story in wave}
    return tuple(result), tuple(story for story in ids if story not in placed)


def topological(order: Iterable[str], needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """One order in which every id comes after its needs, else as given; ids in a cycle come last, as given."""
    ids = list(order)
    place = {story: number for number, story in enumerate(ids)}
    sorter = TopologicalSorter({story: [need for need in needs.get(story, ()) if need in place] for story in ids})
    with suppress(CycleError):
        sorter.prepare()
    found: list[str] = []
    ready = [place[story] for story in sorter.get_ready()]
    heapify(ready)
    while ready:
        found.append(ids[heappop(ready)])
        sorter.done(found[-1])
        for story in sorter.get_ready():
            heappush(ready, place[story])
    placed = {*found}
    return (*found, *(story for story in ids if story not in placed))


def find_cycle(order: Iterable[str], needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Returns a cycle as a closed path (`A, B, A`), or () when there is none. Deterministic for the same input."""
    _, stuck = waves(order, needs)
    if not stuck:
        return ()
    inside = set(stuck)
    path: list[str] = []
    seen: dict[str, int] = {}
    current = stuck[0]
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = next(need for need in needs[current] if need in inside)
    return (*path[seen[current] :], current)


def cycles(order: Iterable[str], needs: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Each cycle as a closed path; of cycles that share an id the first alone: the others are found once it is gone."""
    _, stuck = waves(order, needs)
    while path := find_cycle(stuck, needs):
        yield path
        stuck = tuple(i for i in stuck if i not in path)


_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RESERVED_IDS = frozenset({"result"})
_TOKEN = re.compile(r"[A-Za-z0-9._-]+")
# `US-1..US-3` names its two ends.
_ELLIPSIS = re.compile(r"\.{2,}")
# Word processors write `US–001`.
_TYPOGRAPHIC_HYPHEN = re.compile("(?<=[A-Za-z])[\u2010\u2011\u2012\u2013\u2212](?=[0-9])")
_ONLY_NUMBERS = re.compile(r"[\d\s,;&+/.]+")
# Blank, `None`, `n/a`, `no dependencies`; not `Nonesuch`.
_STATES_NONE = re.compile(
    r"\W*(\Z|(none|n\s?/\s?a|n\.\s?a\.?|na|nil|null|nothing|no dependenc\w+)(?!\w))", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z]+\d?|\d+")
_YES = frozenset({"true", "yes", "1", "y", "x"})
_PRIORITIES = {
    Priority.CRITICAL: ("critical", "highest", "blocker", "urgent", "must", "p0", "0"),
    Priority.HIGH: ("high", "major", "important", "should", "p1", "1"),
    Priority.MEDIUM: ("medium", "med", "normal", "moderate", "average", "default", "could", "p2", "2"),
    Priority.LOW: ("low", "lowest", "minor", "trivial", "won", "wont", "p3", "p4", "p5", "3", "4", "5"),
}
_PRIORITY_OF = {word: priority for priority, words in _PRIORITIES.items() for word in words}


def id_problem(identifier: str) -> str | None:
    """Returns why `identifier` cannot be a story or sprint id (it names branches and files), or None when it can."""
    if not _ID.fullmatch(identifier):
        return "ids are 1 to 64 of the characters A-Z a-z 0-9 . _ -"
    if identifier.startswith(".") or identifier.endswith("."):
        return "an id neither starts nor ends with a dot"
    if ".." in identifier:
        return "an id holds no two dots in a row"
    if identifier.endswith(".lock"):
        return "an id does not end with .lock"
    if identifier in _RESERVED_IDS:
        return f"the id `{identifier}` is reserved"
    return None


def priority_of(text: str) -> Priority | None:
    """The priority that `text` names by its first known word; MEDIUM for a blank cell, None when no word is known."""
    words = [word.lower() for word in _WORD.findall(text)]
    if not words:
        return None if text.strip(" -\u2013\u2014") else Priority.MEDIUM
    return next((_PRIORITY_OF[word] for word in words if word in _PRIORITY_OF), None)


def is_yes(text: str) -> bool:
    """Returns whether a flag cell says yes (true, yes, 1, y, x in any case); everything else is no."""
    return text.strip().lower() in _YES


def _family(token: str) -> tuple[str, bool] | None:
    """What ids of one series share: lower-case prefix, and whether a digit follows it. None without any digit."""
    if not any(char.isdigit() for char in token):
        return None
    cut = re.match(r"([^-_.]*)[-_.]+(.*)", token)
    if cut and any(char.isdigit() for char in cut[2]):
        return cut[1].lower(), cut[2][0].isdigit()
    return re.sub(r"[-_.]*\d.*", "", token).lower(), True


class IdIndex:
    """The ids of a backlog, made for finding them inside text in time linear in the text."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._exact = frozenset(ids)
        folded: dict[str, list[str]] = {}
        for identifier in self._exact:
            folded.setdefault(identifier.lower(), []).append(identifier)
        self._folded = {key: found[0] for key, found in folded.items() if len(found) == 1}
        self._families = frozenset(family for identifier in self._exact if (family := _family(identifier)))

    def find(self, token: str) -> str | None:
        """Returns the id that `token` names: exactly, else the only one that differs in case alone, else None."""
        return token if token in self._exact else self._folded.get(token.lower())

    def same_series(self, token: str) -> bool:
        """Returns whether `token` looks like an id of a series some row uses (US-777 beside US-001)."""
        return _family(token) in self._families


class DependencyText(Value):
    """A dependency cell as it was understood."""

    ids: tuple[str, ...] = ()
    """Ids of rows, in the order written, without duplicates."""
    unknown: tuple[str, ...] = ()
    """Tokens that look like an id of a used series and are no row's id."""
    states_none: bool = True
    """The cell is blank or says that there is no dependency."""


def _candidates(text: str) -> Iterable[tuple[str, ...]]:
    for run in _TOKEN.findall(_TYPOGRAPHIC_HYPHEN.sub("-", text)):
        for part in _ELLIPSIS.split(run):
            if any(char.isalnum() for char in part):
                yield part, part.strip("."), part.strip("._-")


def parse_dependencies(text: str, index: IdIndex) -> DependencyText:
    """Find the ids of `index` in free text such as `US-001 (lookup); US-009`; whole tokens only.

    A bare number is taken for an unknown id only in a cell of nothing but numbers: `after 2 weeks` is text.
    """
    ids: dict[str, None] = {}
    unknown: dict[str, None] = {}
    only_numbers = _ONLY_NUMBERS.fullmatch(text) is not None
    for forms in _candidates(text):
        found = next((known for form in forms if (known := index.find(form))), None)
        if found is not None:
            ids[found] = None
        elif index.same_series(forms[-1]) and (only_numbers or not forms[-1].isdigit()):
            unknown[forms[-1]] = None
    return DependencyText(ids=tuple(ids), unknown=tuple(unknown), states_none=_STATES_NONE.match(text) is not None)


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
    """Story id → the story for its personas: with the requirements and the wireframe of the rows it closes."""
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
