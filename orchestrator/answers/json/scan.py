"""Finds the objects and lists of a text in one pass and reads each as strictly as it can be read.

Whether a reading can be right, by what stands behind it.

What a chat leaves around an answer: words that announce it, marks behind it.

How well a value fits a contract: what the choice among candidates goes by.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

from orchestrator.answers.json.code import broken_code
from orchestrator.answers.json.frames import GOES_ON, UNSEEN, Reading, decode_strings, prefix
from orchestrator.answers.json.guide import ended_inside
from orchestrator.answers.json.reader import Reader
from orchestrator.answers.json.shape import ANYTHING, KINDS, Shape
from orchestrator.answers.result import MAX_DEPTH, Change, too_deep

MIN_LEFT = 40
"""Characters behind an object that can be a part of it."""
_RECLOSING = frozenset(("missing_closer", "wrong_closer"))
_KIND = itemgetter(0)
# Traces of JSON after its supposed end.
_LEFT = re.compile(r"""["'}\]]\s*+,\s*+["'][\w.$-]{1,100}+["']\s*+:|["']\s*+[}\]]\s*+[}\]]""")
_PIECE = re.compile(r"""["'`]\s*+[,:}\]]""")


def reclosed(reading: Reading) -> bool:
    """Returns whether closers were put where none or others stood."""
    return not _RECLOSING.isdisjoint(map(_KIND, reading.changes))


def checked(reading: Reading, text: str) -> Reading:
    """A reading that ended inside a string is broken: its closer goes on, or it closed more than the text did."""
    if reading.outcome == "whole" and ended_inside(text, reading.end):
        why = "the closer before this stands in a string"
        return replace(reading, outcome="broken", value=None, why=why, changes=())
    if reading.outcome != "whole" or not reclosed(reading) or len(text) - reading.end < MIN_LEFT:
        return reading
    tail = text[max(reading.end, len(text) - 400) :].rstrip().rstrip("`~").rstrip()
    if not tail.endswith(("}", "]")) and _LEFT.search(text, reading.end, reading.end + 4000) is None:
        return reading
    why = "what is closed here goes on behind it"
    return replace(reading, outcome="broken", value=None, why=why, changes=())


def settled(reading: Reading, text: str, contract: Shape) -> Reading:
    """Breaks a guided reading that ran off the end of a text that does end with a closer: it lost its way.

    Without a contract so is one behind which pieces of JSON are left: a string was ended too early.
    """
    if contract is ANYTHING and reading.outcome == "whole":
        left = _PIECE.search(text, reading.end, reading.end + 4000)
        why = "it cannot be decided where a string ends"
        return replace(reading, outcome="broken", value=None, why=why, changes=()) if left else reading
    if reading.outcome != "cut" or reading.end < len(text):
        return reading
    tail = text[max(0, len(text) - 400) :].rstrip().rstrip("`~").rstrip()
    if not tail.endswith(("}", "]")):
        return reading
    why = "it cannot be decided where a string ends"
    return replace(reading, end=reading.start + 1, outcome="broken", value=None, why=why, changes=())


FINAL = re.compile(
    r"\b(?:final|answer|output|response|result)\b[^\n{}]{0,60}[:.]\**\s*(?:(?:```|~~~)\w*\s*\n)?(?=[{\[])",
    re.IGNORECASE,
)
"""Words that announce the answer itself."""
_TAIL = re.compile(
    r"(?=\s*+[<\[`~(….ot])"  # no other character begins a mark: most places are told at once
    r"(?:\s*(?:<\|[\w ]{1,40}\|>|</s>|\[/?INST\]|```|~~~|</?(?!think|reason|thought|scratch|reflect)[a-z_]{2,20}>"
    r"|(?:…|\.{3})?\s*[\[(]?\b(?:output )?truncated\b.{0,40}"
    r"|\n\s*[\[(][A-Za-z][^\])\n\"{}]{2,80}[\])]))+\s*\Z",
    re.IGNORECASE,
)
"""What is left of a chat's own marks behind a text."""
_LAST = (">", "]", ")", "`", "~")
"""What a mark ends with that has not the word `truncated` in it."""


def without_tail(text: str) -> str:
    """Returns the text without a chat's own marks behind it."""
    last = text.rstrip()[-60:]
    if last.endswith("}") or not (last.endswith(_LAST) or "truncated" in last.lower()):
        return text
    tail = _TAIL.search(text, max(0, len(text) - 200))
    return text if tail is None or "{" in tail.group() else text[: tail.start()]


class Fit(NamedTuple):
    """How well a value fits, best last when compared."""

    present: int
    """Required keys that are there (under any spelling)."""
    typed: int
    """Required keys whose value has an allowed type."""
    inner: bool
    """Every item of the required lists of objects shows its own required keys."""
    whole: bool
    """All required keys are there with the right types."""


def fit(value: object, shape: Shape) -> Fit | None:
    """Returns how well `value` answers the contract; None when it shows nothing of it and so is no answer."""
    if shape is ANYTHING:
        if not isinstance(value, dict | list):
            return None
        filled = bool(value) if isinstance(value, dict) else any(isinstance(item, dict) for item in value)
        return Fit(int(filled), 0, filled, True)
    if isinstance(value, list):
        fits = _items_fit(value, shape)
        return Fit(int(fits), 1, fits, fits) if "array" in shape.kinds else None
    if not isinstance(value, dict) or not shape.allows("object") or not shows(value, shape):
        return None
    present = typed = 0
    inner = True
    for spellings in shape.required:
        name = next((spelling for spelling in spellings if spelling in value), None)
        if name is None:
            continue
        present += 1
        below = shape.child(name)
        typed += _typed(value[name], below)
        inner = inner and _items_fit(value[name], below)
    if present and not typed:
        return None
    return Fit(present, typed, inner, present == typed == len(shape.required))


def shows(keys: Any, shape: Shape) -> bool:
    """Returns whether a container of keys holds one the contract requires (any named one when none is required)."""
    groups = shape.required or (tuple(shape.props),)
    return (
        (not shape.required and not keys) or not any(groups) or any(name in keys for group in groups for name in group)
    )


def _typed(value: object, shape: Shape) -> bool:
    """Returns whether a value has an allowed type and is no list of other things where the contract lists objects."""
    if not shape.allows(KINDS.get(type(value), "object")) or not shape.admits(value):
        return False
    items = shape.items if isinstance(value, list) and value else None
    return items is None or any(items.allows(KINDS.get(type(item), "object")) for item in value)  # type: ignore[attr-defined]


def _items_fit(value: object, shape: Shape) -> bool:
    items = shape.items
    if not isinstance(value, list) or items is None:
        return True
    needed = items.required
    return all(
        all(any(name in item for name in group) for group in needed)
        if isinstance(item, dict)
        else items.allows(KINDS.get(type(item), "object"))
        for item in value
    )


MAX_GUESSES = 8
"""Readings of one broken object with other string ends."""
SERIOUS = 60
"""Characters read before a failure that make even a text without keys an answer that did not parse."""
MAX_CANDIDATES = 20_000
"""Objects and lists, valid ones included, beyond which a text is no answer."""
MAX_LENIENT = 2000
"""Objects and lists that are read leniently; a text with more is no answer."""
MAX_STRICT_FAILURES = 100
"""Failures of the strict parser after which it is not asked again: each one counts the lines before it."""
_BLANK = rf"(?:/|\#|\Z|<!|\\[nrt]|{UNSEEN.pattern})"
_MEMBER = rf"(?:[\"'`“”„‘«「＂}},.…]|[\w$@][\w$.-]*+[\"']?\s*+[:：=]|{_BLANK})"
_ITEM = rf"(?:[\"'`“”„‘«「＂\],.…+\-\w]|{_BLANK})"
_OPENER = re.compile(
    rf"[{{\[<](?:(?<=\{{)(?=\s*+{_MEMBER})|(?<=\[)(?=\s*+(?:{_ITEM}|\{{\s*+{_MEMBER}|\[\s*+(?:{_ITEM}|\[|\{{)))"
    r"|(?<!\{)(/?)(think|thinking|reasoning|thought|scratchpad|reflection)\b[^<>\[\]\n]{0,80}[>\]])",
    re.IGNORECASE,
)
"""Where an object, a list or a reasoning tag may begin: brackets that cannot begin JSON are passed by.

What all of them begin with stands in one set before the choice: only so the search skips what lies between.
"""
_MEMBER_BEFORE = re.compile(r"""(?:["'”]|&quot;|&\#34;)\s{0,8}:\s{0,40}$""")
_CLOSE = re.compile(r"[<\[]/(think|thinking|reasoning|thought|scratchpad|reflection)\s*[>\]]", re.IGNORECASE)
_MAY_CLOSE = re.compile(r"/(?:th|reason|scratch|reflect)", re.IGNORECASE)
"""Looked for first: it is found much faster, and most texts have none."""
_EXTENT = re.compile(r'[{}\[\]]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


@dataclass(slots=True)
class Candidate:
    """An object or list that was found, as it was read."""

    reading: Reading
    layer: str
    """strict | repair | guided: how it was read."""
    fragment: bool = False
    """It stands where the value of a key would stand: the object around it was not read."""
    fit: Fit | None = None
    """How well its whole value fits, when that was looked at."""


@dataclass(slots=True)
class Scan:
    """All candidates of a text in order."""

    text: str
    contract: Shape
    candidates: list[Candidate] = field(default_factory=list)
    seen: int = 0
    budget: int = 0
    """Characters that may still be read a second time."""
    lenient: int = 0
    """How many candidates were read leniently."""
    overrun: bool = False
    """There were too many of them: nothing of the text can be trusted."""
    failures: int = 0
    """How often the strict parser gave up."""
    aside: list[Candidate] = field(default_factory=list)
    """What stands before a reasoning tag that closes: it counts only where nothing comes behind it."""
    last_close: dict[str, int] = field(default_factory=dict)
    """Name of a reasoning tag → offset of the last one that closes."""

    def run(self) -> "Scan":
        """Finds and reads; time is linear in the text, because what was read is read again only within the budget."""
        self.text = without_tail(self.text)
        # What is read again counts: without a bound many broken objects would take the square of the text.
        self.budget = 4 * len(self.text) + 200_000
        if _MAY_CLOSE.search(self.text):
            self.last_close = {match[1].lower(): match.start() for match in _CLOSE.finditer(self.text)}
        stray, at = self._stray_close(), 0
        while (match := _OPENER.search(self.text, at)) is not None:
            start = match.start()
            at = self._reasoning(match) if match.group(2) else self._candidate(start)
            if start < stray < at and not self._whole_from(start):
                self.candidates.clear()
                at = stray
        if not any(candidate.reading.keyed for candidate in self.candidates):
            self.candidates = [*self.aside, *self.candidates]
        return self

    def _whole_from(self, start: int) -> bool:
        """Returns whether the latest candidate began at `start` and is whole."""
        last = self.candidates[-1].reading if self.candidates else None
        return last is not None and last.start == start and last.outcome == "whole"

    def _stray_close(self) -> int:
        """Returns the offset after a closing reasoning tag that nothing opened, 0 without one."""
        for match in _OPENER.finditer(self.text) if self.last_close else ():
            if match.group(2):
                return match.end() if match.group(1) and not self._quoted(match) else 0
        return 0

    def _quoted(self, match: re.Match[str]) -> bool:
        """Returns whether a tag stands inside a string: before a quote, or behind an odd number of them on its line."""
        start = self.text.rfind("\n", 0, match.start()) + 1
        before = self.text[start : match.start()].replace("\\\\", "").replace('\\"', "")
        return self.text.startswith(('"', "'", "\\"), match.end()) or before.count('"') % 2 == 1

    def _reasoning(self, match: re.Match[str]) -> int:
        """Returns where the text goes on after a reasoning tag."""
        if match.group(1):
            whole = [one for one in self.candidates if one.reading.outcome == "whole" and self._fits(one)]
            self.aside, self.candidates = whole or self.aside, []
            return match.end()
        name = match.group(2).lower()
        if self.last_close.get(name, -1) >= match.end():
            closers = _CLOSE.finditer(self.text, match.end())
            return next(closer.end() for closer in closers if closer[1].lower() == name)
        before = self.text[max(0, match.start() - 80) : match.start()]
        alone = not before.rpartition("\n")[2].strip("\ufeff\u200b \t")
        return self._announced(match.end()) if alone else match.end()

    def _announced(self, start: int) -> int:
        """Where an answer begins that is announced as final in reasoning which was never closed; else the end."""
        announced = [match.end() for match in FINAL.finditer(self.text, start)]
        return announced[-1] if announced else len(self.text)

    def _candidate(self, start: int) -> int:
        """Reads what begins at `start`; where the text goes on after it."""
        self.seen += 1
        if self.lenient >= MAX_LENIENT or self.seen > MAX_CANDIDATES:
            self.overrun = True
            return len(self.text)
        candidate = self._strictly(start) or self._leniently(start)
        reading = candidate.reading
        candidate.fragment = self._is_member(start)
        if reading.outcome == "whole" or (reading.outcome == "cut" and not reading.gap):
            self.candidates.append(candidate)
            return reading.end
        if not reading.keyed and not reading.deep and reading.end - start < SERIOUS:
            return max(start + 1, reading.end)
        self.candidates.append(candidate)
        end = self._extent(start)
        if end > 0:
            return max(end, reading.end)
        return len(self.text)

    def _is_member(self, start: int) -> bool:
        """Whether what begins at `start` is the value of a key, or an item of something that could not be read."""
        if _MEMBER_BEFORE.search(self.text, max(0, start - 60), start) is not None:
            return True
        broken = any(candidate.reading.outcome == "broken" for candidate in self.candidates[-1:])
        return broken and self.text[max(0, start - 60) : start].rstrip()[-1:] in (",", "[")

    def _strictly(self, start: int) -> Candidate | None:
        """Returns the valid JSON that begins here, if it is, and if it is not one half of something."""
        if self.failures >= MAX_STRICT_FAILURES:
            return None
        try:
            value, end = prefix(self.text, start)
        except (ValueError, RecursionError):
            self.failures += 1
            return None
        decoded: list[Change] = []
        value = decode_strings(value, self.contract, start, decoded)
        found = fit(value, self.contract)
        if found is not None and not found.whole:
            return None
        if GOES_ON.match(self.text, end) or self._too_deep(value, start, end) or ended_inside(self.text, end):
            return None
        changes = tuple(decoded)
        reading = Reading(start=start, end=end, outcome="whole", value=value, changes=changes, keyed=True, fitting=True)
        return Candidate(reading, "repair" if decoded else "strict", fit=found)

    def _too_deep(self, value: Any, start: int, end: int) -> bool:
        """Returns whether the value between the offsets nests too deep; few openers cannot."""
        openers = self.text.count("{", start, end) + self.text.count("[", start, end)
        return openers > MAX_DEPTH and too_deep(value)

    def _leniently(self, start: int) -> Candidate:
        """Returns the best lenient reading: without decisions first, then with those the contract can make."""
        self.lenient += 1
        reading = Reader(self.text, start, self.contract).read()
        best = Candidate(checked(reading, self.text), "repair")
        if best.reading.outcome == "template" or self._fits(best):
            return best
        if self.contract is ANYTHING and best.reading.outcome != "broken":
            return best
        doubted: Candidate | None = None
        for candidate in self._decided(start, best.reading):
            if self._fits(candidate):
                # Code that does not parse shows that a string was ended in the wrong place.
                if candidate.layer == "repair" or not broken_code(candidate.reading.value):
                    return candidate
                doubted = doubted or candidate
            elif _rank(candidate.reading) > _rank(best.reading):
                best = candidate
        return doubted or best

    def _decided(self, start: int, first: Reading) -> Iterator[Candidate]:
        """Further readings: closers by the contract, then string ends by the contract, while the budget lasts."""
        alone = self.contract is ANYTHING and not self.text[:start].strip()
        if not (first.keyed or alone) or not first.fitting:
            return
        if first.outcome == "whole" and fit(first.value, self.contract) is None:
            return
        if (first.outcome != "whole" or reclosed(first)) and self._spend(first.end - start) and first.reclosable:
            reading = Reader(self.text, start, self.contract, reclose=True).read()
            yield Candidate(checked(reading, self.text), "repair")
        if first.outcome == "cut" and (first.gap or (first.end >= len(self.text) and self.text.find("”", start) < 0)):
            return
        # Each further reading takes back the last string end of the one before: later ends are the doubtful ones.
        banned: frozenset[int] = frozenset()
        for _ in range(MAX_GUESSES):
            if self.budget <= 0:
                return
            reading = Reader(self.text, start, self.contract, banned).read()
            self._spend(reading.end - start)
            yield Candidate(settled(reading, self.text, self.contract), "guided")
            fresh = [end for end in reading.ends if end not in banned]
            if reading.gap or not fresh:
                return
            banned |= {fresh[-1]}

    def _spend(self, characters: int) -> bool:
        self.budget -= characters
        return self.budget > 0

    def _fits(self, candidate: Candidate) -> bool:
        if candidate.reading.outcome == "whole":
            candidate.fit = fit(candidate.reading.value, self.contract)
        return candidate.fit is not None and candidate.fit.whole

    def _extent(self, start: int) -> int:
        """Returns the offset after the closer that balances the opener at `start`, strings aside; 0 when none does."""
        depth = 0
        for match in _EXTENT.finditer(self.text, start):
            character = match.group()[0]
            depth += (character in "{[") - (character in "}]")
            if depth == 0 and character in "}]":
                return match.end()
        return 0


def _rank(reading: Reading) -> int:
    return {"whole": 3, "cut": 2}.get(reading.outcome, 1)
