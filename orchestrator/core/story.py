"""Stories and backlogs: their cells as people write them, and which story waits for which, closed rows included."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

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
    """Returns the ids, each behind its needs, else as given; a need that would close a cycle does not count."""
    found: dict[str, None] = {}
    ids = tuple(order)

    def add(one: str, waiting: frozenset[str]) -> None:
        for need in needs.get(one, ()):
            if need in ids and need not in found and need not in waiting:
                add(need, waiting | {need})
        found.setdefault(one)

    for one in ids:
        add(one, frozenset({one}))
    return tuple(found)


def find_cycle(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Returns a cycle as a closed path (`A, B, A`), or () when there is none. Deterministic for the same input."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def cycles(needs: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Each cycle as a closed path; of cycles that share an id the first alone: the others are found once it is gone."""
    while path := find_cycle(needs):
        yield path
        needs = {one: wanted for one, wanted in needs.items() if one not in path}


_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RESERVED_IDS = frozenset({"result"})
# Word processors write `US–001`.
_TYPOGRAPHIC_HYPHEN = re.compile("(?<=[A-Za-z])[\u2010\u2011\u2012\u2013\u2212](?=[0-9])")
_CLAUSE = re.compile(r"([,;\n()\[\]])")
_WORD = re.compile(r"(?:[\w'\u2019-]|\.(?!\.))+")
# Two words, and what stands between the ends of a range.
_RANGE = re.compile(
    r"(?<![\w.-])(\w(?:[\w-]|\.(?!\.))*)"
    r"\s*(?:\.{2,}|[\u2026\u2010-\u2014\u2212]|(?<=\s)(?:--?|to|through|thru)(?=\s))\s*(\w(?:[\w-]|\.(?!\.))*)",
    re.IGNORECASE,
)
_MAX_WORD = 140
"""Characters of a word that may still be an id, or two with a hyphen between them."""
_MAX_RANGES = 50
"""In one clause; each may stand for all rows."""
_ENDS_IN_NUMBER = re.compile(r"(.*?)([0-9]{1,18})")
_JOINING = frozenset(
    {"and", "after", "on", "by", "the", "depends", "blocked", "needs", "requires", "story", "stories"}
    | {"to", "through", "thru"}
)
"""Words beside ids that say nothing more."""
_NEGATION = re.compile(
    r"(?<!\w)(not|no|never|cannot|\w+n['\u2019]t|without|except|excluding|unless|before|blocks)(?!\w)", re.IGNORECASE
)
# Letters that are taken for digits.
_LOOKALIKE = str.maketrans("lIO", "110")
# Blank, `None`, `n/a`, `no dependencies`; not `Nonesuch`.
_STATES_NONE = re.compile(
    r"\W*(\Z|(none|n\s?/\s?a|n\.\s?a\.?|na|nil|null|nothing|no dependenc\w+)(?!\w))", re.IGNORECASE
)
_YES = frozenset({"true", "yes", "1", "y", "x"})
_PRIORITY_OF = {
    word: priority
    for priority, words in {
        Priority.CRITICAL: "critical highest blocker urgent must p0 0",
        Priority.HIGH: "high major important should p1 1",
        Priority.MEDIUM: "medium normal could default p2 2",
        Priority.LOW: "low lowest minor trivial wont p3 p4 3 4 5",
    }.items()
    for word in words.split()
}
_NO_PRIORITY = frozenset({(), ("no",), ("none",), ("unprioritized",)})
_AROUND_PRIORITY = frozenset({"priority", "prio", "have"})


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
    """The priority that `text` names; MEDIUM for a blank cell and for `No priority`.

    Of several words the first counts: `P0 - blocker`. None where a word is not known: `Not urgent` is not urgent.
    """
    if not re.search(r"\w", text):
        return Priority.MEDIUM if not text.strip(" -\u2013\u2014") else None
    found = re.findall(r"[^\W\d_]+\d*|\d+", re.sub(r"['\u2019]", "", text.lower()))
    words = tuple(word for word in found if word not in _AROUND_PRIORITY)
    if words in _NO_PRIORITY:
        return Priority.MEDIUM
    known = [_PRIORITY_OF.get(word) for word in words]
    return known[0] if None not in known else None


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


def _deletions(token: str) -> Iterator[str]:
    """`token` without each of its characters in turn: what two words share that differ in one of them."""
    return (token[:at] + token[at + 1 :] for at in range(len(token)))


class IdIndex:
    """The ids of a backlog, made for finding them inside text in time linear in the text."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._exact = frozenset(ids)
        folded: dict[str, list[str]] = {}
        self._series: dict[str, list[tuple[int, str]]] = {}
        for identifier in self._exact:
            folded.setdefault(identifier.lower(), []).append(identifier)
            if numbered := _ENDS_IN_NUMBER.fullmatch(identifier):
                self._series.setdefault(numbered[1].lower(), []).append((int(numbered[2]), identifier))
        self._folded = {key: found[0] for key, found in folded.items() if len(found) == 1}
        self._families = frozenset(family for identifier in self._exact if (family := _family(identifier)))
        self._numbers = frozenset(number for series in self._series.values() for number, _ in series)
        for series in self._series.values():
            series.sort()

    @cached_property
    def _near(self) -> frozenset[str]:
        short = [identifier.lower() for identifier in self._exact if 3 <= len(identifier) <= _MAX_WORD]
        return frozenset(near for identifier in short for near in (identifier, *_deletions(identifier)))

    def find(self, token: str) -> str | None:
        """Returns the id that `token` names: exactly, else the only one that differs in case alone, else None."""
        return token if token in self._exact else self._folded.get(token.lower())

    def between(self, first: str, last: str) -> tuple[str, ...] | None:
        """Returns the ids of one series from `first` to `last`, by number; None where these are of no one series.

        `last` may be the number alone: `US-001 to 004`.
        """
        one, two = _ENDS_IN_NUMBER.fullmatch(first), _ENDS_IN_NUMBER.fullmatch(last)
        if one is None or two is None or two[1].lower() not in {one[1].lower(), ""}:
            return None
        low, high = sorted((int(one[2]), int(two[2])))
        series = self._series.get(one[1].lower(), [])
        return tuple(name for _, name in series[bisect_left(series, (low, "")) : bisect_left(series, (high + 1, ""))])

    def resembles(self, token: str) -> bool:
        """Returns whether `token` is like an id: of a series that rows use (US-777 beside US-001), or but for one
        character the id of a row (X-l beside X-1)."""
        if len(token) > _MAX_WORD:
            return False
        if _family(token) in self._families or token.translate(_LOOKALIKE).lower() in self._folded:
            return True
        shaped = len(token) >= 3 and re.search(r"[\d._-]", token[1:-1] + token[-1]) is not None
        return shaped and any(near in self._near for near in (token.lower(), *_deletions(token.lower())))

    def shares_number(self, token: str) -> bool:
        """Returns whether `token` is `task-427` beside a row BACK-427."""
        numbered = re.fullmatch(r"#?[A-Za-z]{1,20}[-_]([0-9]{1,18})", token)
        return numbered is not None and int(numbered[1]) in self._numbers

    def is_prefix(self, word: str) -> bool:
        """Returns whether ids begin with this word and a number: `US 001` means such an id."""
        return bool(word) and (word.lower(), True) in self._families


class DependencyText(Value):
    """A dependency cell as it was understood."""

    ids: tuple[str, ...] = ()
    """Ids of rows, in the order written, without duplicates."""
    unknown: tuple[str, ...] = ()
    """Words that are like an id and are no row's."""
    notes: tuple[str, ...] = ()
    """What else stands outside of brackets: no dependency, also where it names a row (`not US-003`)."""
    states_none: bool = True
    """The cell is blank or says that there is no dependency."""


def _spread(index: IdIndex, first: str, last: str) -> list[str]:
    """Returns the words that a range stands for, with its end where that is no row; [] where it is none."""
    begin, end = index.find(first), index.find(last)
    within = index.between(begin, end or last) if begin is not None else None
    if within is None:
        return []
    # `US-001 to 004` ends with US-004.
    named = end is not None or (last.isdigit() and any(int(last) == int(re.split(r"\D", one)[-1]) for one in within))
    return [*within, *([] if named else [last])]


def _without_ranges(text: str, index: IdIndex) -> str:
    """Returns a text with the words that its ranges stand for in their place; the end of one may begin another."""
    at = ranges = 0
    while ranges < _MAX_RANGES and (pair := _RANGE.search(text, at)):
        at = pair.start(2)
        if words := _spread(index, pair[1], pair[2].rstrip(".-_")):
            *before, last = words
            began = f"{text[: pair.start()]}{' '.join(before)} "
            text, at, ranges = f"{began}{last} {text[pair.end() :]}", len(began), ranges + 1
    return text


def _read_clause(text: str, index: IdIndex, *, bracketed: bool) -> tuple[list[str], list[str], str]:
    """Returns the ids between two commas, semicolons, brackets or line ends, what is like one, and what of it is a note
    ("" where nothing is).

    Numbers are ids only where nothing else is said: `after 2 weeks` is text.
    """
    said = " ".join(text.split())
    known = (word for word in _WORD.findall(text) if index.find(word.strip("._-'")) is None)
    # `not before US-003` takes nothing back, and a story may be called NEVER.
    if len(_NEGATION.findall(rest_of := " ".join(known))) % 2 and "until" not in rest_of.lower().split():
        return [], [], said
    ids: list[str] = []
    unknown: list[str] = []
    rest: list[str] = []
    numbers: list[str] = []
    before = ""
    for word in _WORD.findall(_without_ranges(text, index)):
        bare = word.strip("._-'")
        found = index.find(word) or index.find(bare)
        if word.isdigit() and index.is_prefix(before):
            unknown.append(f"{before} {word}")
            rest = [one for one in rest if one != before]
        elif word.isdigit():
            numbers.append(word)
        elif found is not None:
            ids.append(found)
        elif joined := _joined(index, bare):
            ids += (one for one in joined if index.find(one))
            unknown += (one for one in joined if not index.find(one))
        elif index.resembles(bare):
            unknown.append(bare)
        elif bare and bare.lower() not in _JOINING:
            rest.append(bare)
        before = word
    if [*_WORD.findall(text)] == rest and len(rest) == 1 and index.shares_number(rest[0]):
        return [], rest, ""
    if not rest:
        ids += (one for number in numbers if (one := index.find(number)) is not None)
        like = (number for number in numbers if index.find(number) is None and (ids or index.resembles(number)))
        unknown += like
    is_note = not bracketed and (rest or (numbers and not (ids or unknown)))
    return ids, unknown, said if is_note else ""


def _joined(index: IdIndex, word: str) -> list[str]:
    """Returns what `US-001-US-004` and `US-001-004` stand for; [] for another word."""
    places = (at for at, sign in enumerate(word[:_MAX_WORD]) if sign == "-" and index.find(word[:at]))
    return next((found for at in places if (found := _spread(index, word[:at], word[at + 1 :]))), [])


def parse_dependencies(text: str, index: IdIndex) -> DependencyText:
    """Find the ids of `index` in a cell such as `US-001 (lookup); US-009` or `US-001..US-005`; whole words only."""
    ids: list[str] = []
    unknown: list[str] = []
    notes: list[str] = []
    depth = 0
    for part in _CLAUSE.split(_TYPOGRAPHIC_HYPHEN.sub("-", text)):
        if _CLAUSE.fullmatch(part):
            depth = max(depth + (part in "([") - (part in ")]"), 0)
            continue
        named, near, note = _read_clause(part, index, bracketed=depth > 0)
        ids, unknown, notes = ids + named, unknown + near, notes + [note] * bool(note)
    none = _STATES_NONE.match(text) is not None
    found, like, told = (tuple(dict.fromkeys(parts)) for parts in (ids, unknown, () if none else notes))
    return DependencyText(ids=found, unknown=like, notes=told, states_none=none)


def closers(stories: Iterable[Story]) -> dict[str, str]:
    """Row that is done with another story → that story."""
    return {row: story.id for story in stories for row in story.closes}


def done_rows(stories: Iterable[Story]) -> frozenset[str]:
    """Rows that say they are completed, and those that are done with them."""
    return frozenset(row for story in stories if story.completed for row in (story.id, *story.closes))


def effective_needs(stories: Sequence[Story]) -> dict[str, tuple[str, ...]]:
    """Story → what it waits for, for every story that is run itself.

    A need of a closed row is a need of its closer, which also waits for what its rows depend on; what is done is met.
    """
    rows, closer_of, done = {story.id: story for story in stories}, closers(stories), done_rows(stories)
    needs: dict[str, tuple[str, ...]] = {}
    for story in (story for story in stories if story.id not in closer_of):
        closed = [rows[row] for row in story.closes if row in rows and row not in done]
        wanted = (need for row in (story, *closed) for need in row.dependencies)
        met_by = dict.fromkeys(need if need in done else closer_of.get(need, need) for need in wanted)
        needs[story.id] = tuple(need for need in met_by if need != story.id)
    return needs


def told_of_closed(stories: Sequence[Story], closes: Mapping[str, Sequence[str]]) -> dict[str, Story]:
    """Story id → the story for its personas: its notes hold what the rows that it closes ask for."""
    told = {story.id: story for story in stories}
    for closer, rows in ((one, [told[row] for row in names if row in told]) for one, names in closes.items()):
        if closer in told:
            story = told[closer]
            notes = "\n".join(filter(None, [story.notes, *(_demand(row) for row in rows)]))
            wireframe = next((ref for ref in (one.wireframe_ref for one in (story, *rows)) if ref), "")
            told[closer] = story.model_copy(update={"notes": notes, "wireframe_ref": wireframe})
    return told


def _demand(row: Story) -> str:
    asked = filter(None, [row.user_story, row.functional_requirements, row.constraints, *row.acceptance_criteria])
    return f"This story also completes {row.id} ({row.title}): {'; '.join(asked)}".removesuffix(": ")
