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
# A sign or word between the ends of a range, a word, or what ends a clause; a dot inside of a word belongs to it.
_PIECE = re.compile(
    r"(?P<range>\.{2,}|[\u2026\u2010-\u2014\u2212]|(?<!\S)--?(?!\S)|(?<![\w-])(?:to|through|thru)(?![\w-]))"
    r"|(?P<word>(?:[\w'\u2019-]|\.(?!\.))+)|(?P<end>[,;\n()\[\]])",
    re.IGNORECASE,
)
_MAX_WORD = 140
"""Characters of a word that may still be an id, or two with a hyphen between them."""
_MAX_RANGES = 50
"""In one cell; each may stand for all rows."""
_ENDS_IN_NUMBER = re.compile(r"(.*?)([0-9]{1,18})")
_JOINING = frozenset({"and", "after", "on", "by", "the", "depends", "blocked", "needs", "requires", "story", "stories"})
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


class _Clause:
    """What stands between two commas, semicolons, brackets or line ends."""

    def __init__(self, index: IdIndex, ranges: list[str], *, bracketed: bool) -> None:
        """`ranges` gets the ends of those that are read, and is common to the clauses of a cell."""
        self._index, self._ranges, self._bracketed = index, ranges, bracketed
        self.ids: list[str] = []
        self.unknown: list[str] = []
        self._said: list[str] = []
        self._rest: list[str] = []
        self._numbers: list[str] = []
        self._open = False
        """Whether a range has begun that lacks its end."""

    def add(self, piece: re.Match[str]) -> None:
        """Reads the next word, or sign of a range."""
        self._said.append(piece[0])
        if piece["range"]:
            self._open = bool(self.ids)
            return
        word, begun, self._open = piece[0], self._open, False
        forms = dict.fromkeys((word, word.strip("."), word.strip("._-'")))
        found = next((known for form in forms if (known := self._index.find(form))), None)
        if begun and self._close(found or word.strip("._-'")):
            return
        if found is not None and not found.isdigit():
            self.ids.append(found)
        elif found is not None or word.isdigit():
            self._number(word)
        elif not self._joined(word):
            self._other(word.strip("._-'"))

    def _close(self, last: str) -> bool:
        """Reads the end of a range; returns whether it was one."""
        if len(self._ranges) == _MAX_RANGES:
            self._rest.append(last)
            return True
        self._ranges.append(last)
        within = self._index.between(self.ids[-1], last)
        if within is None:
            return False
        self.ids += within
        ends = [_ENDS_IN_NUMBER.fullmatch(one) for one in within[:1] + within[-1:]]
        there = last.isdigit() and any(one is not None and int(one[2]) == int(last) for one in ends)
        if not there and self._index.find(last) is None:
            self.unknown.append(last)
        return True

    def _number(self, word: str) -> None:
        before = self._said[-2] if len(self._said) > 1 else ""
        if self._index.is_prefix(before):
            self.unknown.append(f"{before} {word}")
            self._rest.remove(before)
        else:
            self._numbers.append(word)

    def _joined(self, word: str) -> bool:
        """Reads `US-001-US-004` and `US-001-004`; returns whether it was that."""
        for at, sign in enumerate(word[:_MAX_WORD]):
            if sign == "-" and (first := self._index.find(word[:at])) and word[at + 1 :]:
                self.ids.append(first)
                if self._close(self._index.find(word[at + 1 :]) or word[at + 1 :]):
                    return True
                self.ids.pop()
        return False

    def _other(self, word: str) -> None:
        if self._index.resembles(word):
            self.unknown.append(word)
        elif word and word.lower() not in _JOINING:
            self._rest.append(word)

    def read(self) -> tuple[list[str], list[str], str]:
        """Returns its ids, what is like one, and what of it is a note ("" where nothing is).

        Numbers are ids only where nothing else is said: `after 2 weeks` is text.
        """
        text = " ".join(self._said)
        if len(self._said) == len(self._rest) == 1 and self._index.shares_number(self._rest[0]):
            return [], self._rest, ""
        # `not before US-003` takes nothing back, and a story may be called NEVER.
        words = " ".join(word for word in self._said if self._index.find(word.strip("._-'")) is None)
        if len(_NEGATION.findall(words)) % 2 and "until" not in words.lower().split():
            return [], [], text
        for number in self._numbers:
            known = None if self._rest else self._index.find(number)
            if known is not None:
                self.ids.append(known)
            elif not self._rest and (self.ids or self._index.resembles(number)):
                self.unknown.append(number)
        note = "" if self._bracketed or not (self._rest or self._open) else text
        if self._numbers and not (self.ids or self.unknown or self._bracketed):
            note = text
        return self.ids, self.unknown, note


def parse_dependencies(text: str, index: IdIndex) -> DependencyText:
    """Find the ids of `index` in a cell such as `US-001 (lookup); US-009` or `US-001..US-005`; whole words only."""
    ids: dict[str, None] = {}
    unknown: dict[str, None] = {}
    notes: dict[str, None] = {}
    ranges: list[str] = []
    depth = 0
    clause = _Clause(index, ranges, bracketed=False)

    def end() -> None:
        named, like, note = clause.read()
        ids.update(dict.fromkeys(named))
        unknown.update(dict.fromkeys(like))
        notes.update(dict.fromkeys(filter(None, [note])))

    for piece in _PIECE.finditer(_TYPOGRAPHIC_HYPHEN.sub("-", text)):
        if not piece["end"]:
            clause.add(piece)
            continue
        end()
        depth = max(depth + (piece[0] in "([") - (piece[0] in ")]"), 0)
        clause = _Clause(index, ranges, bracketed=depth > 0)
    end()
    none = _STATES_NONE.match(text) is not None
    return DependencyText(ids=tuple(ids), unknown=tuple(unknown), notes=() if none else tuple(notes), states_none=none)


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
