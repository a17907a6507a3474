"""What people write into backlog cells, read without guessing: ids, dependencies, priorities, flags."""

import re
from collections.abc import Iterable

from orchestrator.domain.base import Value
from orchestrator.domain.story import Priority

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RESERVED_IDS = frozenset({"result"})
_TOKEN = re.compile(r"[A-Za-z0-9._-]+")
_ELLIPSIS = re.compile(r"\.{2,}")
_TYPOGRAPHIC_HYPHEN = re.compile("(?<=[A-Za-z])[\u2010\u2011\u2012\u2013\u2212](?=[0-9])")
_ONLY_NUMBERS = re.compile(r"[\d\s,;&+/.]+")
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
    """Why `identifier` cannot be a story or sprint id (it names branches and files), or None when it can."""
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
    """Whether a flag cell says yes (true, yes, 1, y, x in any case); everything else is no."""
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
        """The id that `token` names: exactly, else the only one that differs in case alone, else None."""
        return token if token in self._exact else self._folded.get(token.lower())

    def same_series(self, token: str) -> bool:
        """Whether `token` looks like an id of a series some row uses (US-777 beside US-001)."""
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
