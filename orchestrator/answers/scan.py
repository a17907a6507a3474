"""Finds the objects and lists of a text in one pass and reads each as strictly as it can be read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answers.chat import FINAL, without_tail
from orchestrator.answers.code import broken_code
from orchestrator.answers.fit import Fit, fit
from orchestrator.answers.frames import GOES_ON, Reading
from orchestrator.answers.guide import ended_inside
from orchestrator.answers.marks import back_to
from orchestrator.answers.model import MAX_DEPTH, too_deep
from orchestrator.answers.reader import Reader
from orchestrator.answers.shape import ANYTHING, Shape
from orchestrator.answers.strict import prefix
from orchestrator.answers.surroundings import checked, reclosed, settled
from orchestrator.answers.swift import swift_reading
from orchestrator.answers.tokens import UNSEEN

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
MAX_RESTARTS = 16
"""Places after an object that never closes where a fresh one is looked for."""

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
_RESTART = re.compile(r"(?:\n[ \t]*\n|\n(?:```|~~~)[^\n`]{0,40}\n)(?=\{)")
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
    passed: int = 0
    """Characters that the swift reader may have looked at."""
    overrun: bool = False
    """There were too many of them: nothing of the text can be trusted."""
    failures: int = 0
    """How often the strict parser gave up."""
    last_close: dict[str, int] = field(default_factory=dict)
    """Name of a reasoning tag → offset of the last one that closes."""

    def run(self) -> "Scan":
        """Find and read; time is linear in the text, because what was read is read again only within the budget."""
        self.text = without_tail(self.text)
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
        return self

    def _whole_from(self, start: int) -> bool:
        """Whether the latest candidate began at `start` and is whole."""
        last = self.candidates[-1].reading if self.candidates else None
        return last is not None and last.start == start and last.outcome == "whole"

    def _stray_close(self) -> int:
        """Offset after a closing reasoning tag that nothing opened, 0 without one."""
        for match in _OPENER.finditer(self.text) if self.last_close else ():
            if match.group(2):
                return match.end() if match.group(1) and not self._quoted(match) else 0
        return 0

    def _quoted(self, match: re.Match[str]) -> bool:
        """Whether a tag stands inside a string: before a quote, or behind an odd number of them on its line."""
        start = self.text.rfind("\n", 0, match.start()) + 1
        before = self.text[start : match.start()].replace("\\\\", "").replace('\\"', "")
        return self.text.startswith(('"', "'", "\\"), match.end()) or before.count('"') % 2 == 1

    def _reasoning(self, match: re.Match[str]) -> int:
        """Where the text goes on after a reasoning tag."""
        if match.group(1):
            self.candidates.clear()
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
        """Read what begins at `start`; where the text goes on after it."""
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
        self._restart(reading.end)
        return len(self.text)

    def _is_member(self, start: int) -> bool:
        """Whether what begins at `start` is the value of a key, or an item of something that could not be read."""
        if _MEMBER_BEFORE.search(self.text, max(0, start - 60), start) is not None:
            return True
        broken = any(candidate.reading.outcome == "broken" for candidate in self.candidates[-1:])
        return broken and self.text[max(0, start - 60) : start].rstrip()[-1:] in (",", "[")

    def _strictly(self, start: int) -> Candidate | None:
        """The valid JSON that begins here, if it is, and if it is not one half of something."""
        if self.failures >= MAX_STRICT_FAILURES:
            return None
        try:
            value, end = prefix(self.text, start)
        except (ValueError, RecursionError):
            self.failures += 1
            return None
        found = fit(value, self.contract)
        if found is not None and not found.whole:
            return None
        if GOES_ON.match(self.text, end) or self._too_deep(value, start, end) or ended_inside(self.text, end):
            return None
        reading = Reading(start=start, end=end, outcome="whole", value=value, keyed=True, fitting=True)
        return Candidate(reading, "strict", fit=found)

    def _too_deep(self, value: Any, start: int, end: int) -> bool:
        """Whether the value between the offsets nests too deep; few openers cannot."""
        openers = self.text.count("{", start, end) + self.text.count("[", start, end)
        return openers > MAX_DEPTH and too_deep(value)

    def _leniently(self, start: int) -> Candidate:
        """The best lenient reading: without decisions first, then with those the contract can make."""
        self.lenient += 1
        reading = self._swiftly(start) or Reader(self.text, start, self.contract).read()
        best = Candidate(checked(reading, self.text), "repair")
        if best.reading.outcome == "template" or self._fits(best):
            return best
        if self.contract is ANYTHING and best.reading.outcome != "broken":
            return best
        doubted: Candidate | None = None
        for candidate in self._decided(start, best.reading):
            if self._fits(candidate):
                if candidate.layer == "repair" or not broken_code(candidate.reading.value):
                    return candidate
                doubted = doubted or candidate
            elif _rank(candidate.reading) > _rank(best.reading):
                best = candidate
        return doubted or best

    def _swiftly(self, start: int) -> Reading | None:
        """The same in one pass over the text, while few characters were passed over for nothing."""
        if self.text[start] != "{" or self.passed > 2 * len(self.text):
            return None
        reading = swift_reading(self.text, start)
        self.passed += len(self.text) - start
        return reading

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
        if first.outcome == "cut" and (first.gap or first.end >= len(self.text)):
            return
        banned: frozenset[int] = frozenset()
        reader = Reader(self.text, start, self.contract, banned)
        for _ in range(MAX_GUESSES):
            if self.budget <= 0:
                return
            reading = reader.read()
            self._spend(reading.end - start)
            yield Candidate(settled(reading, self.text, self.contract), "guided")
            fresh = [end for end in reading.ends if end not in banned]
            if reading.gap or not fresh:
                return
            banned |= {fresh[-1]}
            if not back_to(reader, fresh[-1]):
                reader = Reader(self.text, start, self.contract, banned)

    def _spend(self, characters: int) -> bool:
        self.budget -= characters
        return self.budget > 0

    def _fits(self, candidate: Candidate) -> bool:
        if candidate.reading.outcome == "whole":
            candidate.fit = fit(candidate.reading.value, self.contract)
        return candidate.fit is not None and candidate.fit.whole

    def _extent(self, start: int) -> int:
        """Offset after the closer that balances the opener at `start`, strings aside; 0 when none does."""
        depth = 0
        for match in _EXTENT.finditer(self.text, start):
            character = match.group()[0]
            depth += (character in "{[") - (character in "}]")
            if depth == 0 and character in "}]":
                return match.end()
        return 0

    def _restart(self, at: int) -> None:
        """After an object that never closes: a valid one that begins afresh and fits the whole contract counts."""
        for number, match in enumerate(_RESTART.finditer(self.text, at)):
            if number >= MAX_RESTARTS or not self._spend(1000):
                return
            candidate = self._strictly(match.end())
            if candidate is None:
                continue
            end = candidate.reading.end
            self._spend(end - match.end())
            if self._fits(candidate) and not re.search(r"[}\]\"]", self.text[end : end + 2000]):
                self.seen += 1
                self.candidates.append(candidate)


def _rank(reading: Reading) -> int:
    return {"whole": 3, "cut": 2}.get(reading.outcome, 1)
