"""Which candidate is the answer: the one that fits the contract best, the last of equals, never a lesser one.

One answer given in several objects, each under a heading: `### Part 1`, `### Part 2`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.answers.json.code import path_of
from orchestrator.answers.json.frames import Reading, document
from orchestrator.answers.json.scan import Candidate, Fit, Scan, fit
from orchestrator.answers.json.shape import ANYTHING, Shape
from orchestrator.answers.result import Change

_NUMBER = r"(?:\d+|[A-H]|one|two|three|first|second|third|last|final)"
_UNIT = r"(?:part|half|batch|chunk|section)"
# `Part 2`, `second half`, `(2/3)`, `continued`: at most a dozen characters may stand between unit and number.
_PART = re.compile(
    rf"\b{_UNIT}\b[^\n{{]{{0,12}}\b{_NUMBER}\b|\b{_NUMBER} {_UNIT}\b"
    r"|\(\d+ ?(?:/|of) ?\d+\)|\b\d+/\d+\b|\bcontinued\b|\bcontinuation\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(?m)^(?:#{1,6} .*|\*\*[^*\n]+\*\*:?)$")
_DRAFT = re.compile(
    r"\b(?:draft|revis\w+|final|wait|instead|correct\w*|updat\w+|fix\w*|better|version|alternative\w*|option|example"
    r"|old|new|before|after|previous|attempt|try|improved?)\b",
    re.IGNORECASE,
)
"""What stands between a first and a second try; such objects are no parts of one answer."""
MAX_LED = 300
"""Characters before an object that may announce it."""


def announced_parts(text: str, readings: Sequence[Reading]) -> bool:
    """Returns whether a line before each of the objects says that it is a part."""
    leads = _leads(text, readings)
    return len(leads) > 1 and all(_PART.search(lead) for lead in leads)


def under_headings(text: str, readings: Sequence[Reading]) -> bool:
    """Returns whether each of the objects has a heading of its own, and none speaks of another try."""
    leads = _leads(text, readings)
    titles = [found[-1] if (found := _HEADING.findall(lead)) else "" for lead in leads]
    return all(titles) and len(set(titles)) == len(titles) > 1 and not any(_DRAFT.search(lead) for lead in leads)


def _leads(text: str, readings: Sequence[Reading]) -> list[str]:
    """Returns the text before each of the objects, up to the one before it."""
    ends = [0, *(reading.end for reading in readings)]
    return [
        text[max(end, reading.start - MAX_LED) : reading.start] for end, reading in zip(ends, readings, strict=False)
    ]


def join_parts(values: Sequence[dict[str, Any]], contract: Shape) -> dict[str, Any] | None:
    """Returns the one answer whose parts these are; None where they contradict or repeat each other."""
    joined: dict[str, Any] = {}
    counters = {counter for counter, _ in contract.counters}
    for value in values:
        for key, member in value.items():
            if key not in joined or joined[key] == member:
                joined[key] = member
            elif isinstance(member, list) and isinstance(joined[key], list):
                if _named(member, contract.child(key)) & _named(joined[key], contract.child(key)):
                    return None
                joined[key] = [*joined[key], *member]
            elif key not in counters:
                return None
    for counter, name in contract.counters:
        if counter in joined and isinstance(joined.get(name), list):
            told = [value[counter] for value in values if isinstance(value.get(counter), int)]
            joined[counter] = max(*told, len(joined[name]))
    return joined


def _named(items: list[Any], shape: Shape) -> set[str]:
    """What the items are called: the first key that the contract requires of them, else the items themselves."""
    required = shape.items.required if shape.items is not None else ()
    names = required[0] if required else ()
    return {
        str(next((item[name] for name in names if name in item), item)) if isinstance(item, dict) else str(item)
        for item in items
    }


WRAPPER_DEPTH = 8
"""Containers that may stand around the answer."""
MAX_WRAPPED = 50
"""Members of one container that are looked into for an answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The reading that is the answer, with the value taken out of its wrapper; `refused` says why there is none."""

    reading: Reading | None = None
    layer: str = "none"
    value: Any = None
    changes: tuple[Change, ...] = ()
    refused: str = ""
    """Code of the refusal: answer.none | unfit | unreadable | too_many; empty when there is an answer."""
    fit: Fit | None = None
    """How well a whole answer fits."""

    @property
    def certain(self) -> bool:
        """Whether it is an answer that has all the contract requires."""
        return self.fit is not None and self.fit.whole


def choose(scan: Scan) -> Choice:
    """Returns the answer among the candidates of a scan, or why there is none."""
    candidates, contract = scan.candidates, scan.contract
    if scan.overrun:
        return Choice(refused="answer.too_many")
    whole = _best_whole(candidates, contract)
    parts = _parts(scan)
    if parts is not None:
        return parts
    # An answer that was meant and cannot be read outweighs whole ones before it: those were drafts or parts of it.
    lost = _lost(candidates, contract)
    if lost is not None and (whole is None or not _stands_beside(lost, whole, contract)):
        return Choice(reading=lost, refused="answer.unreadable")
    cut = _last_cut(candidates, contract, whole)
    if cut is not None and _outweighs(cut.reading, whole, contract):
        return Choice(cut.reading, "truncation", cut.reading.value, cut.reading.changes)
    whole = whole or _gathered(candidates, contract)
    if whole is not None:
        return whole
    unfit = next((c.reading for c in reversed(candidates) if c.reading.outcome == "whole"), None)
    return Choice(reading=unfit, refused="answer.unfit" if unfit else "answer.none")


def _parts(scan: Scan) -> Choice | None:
    """One answer in several objects: joined, or cut where it is said to be in parts and they do not fit together."""
    contract = scan.contract
    listed = [name for names in contract.required for name in names if contract.child(name).lists_objects]
    readings = [candidate.reading for candidate in scan.candidates if not candidate.fragment]
    parts = [
        reading
        for reading in readings
        if reading.outcome == "whole"
        and isinstance(reading.value, dict)
        and any(isinstance(reading.value.get(name), list) and reading.value[name] for name in listed)
    ]
    announced = len(parts) > 1 and announced_parts(scan.text, parts)
    if not announced and not (len(parts) > 1 and under_headings(scan.text, parts)):
        return None
    value = join_parts([reading.value for reading in parts], contract)
    changes = [change for reading in parts for change in reading.changes]
    fits = fit(value, contract) if value is not None else None
    if fits is not None and fits.whole:
        changes.append(Change("joined_parts", parts[1].start, "", ""))
        return Choice(parts[-1], "repair", value, tuple(changes), fit=fits)
    if not announced:
        return None
    cut = replace(parts[0], outcome="cut", why="it is one of several parts, which do not fit together")
    return Choice(cut, "truncation", cut.value, tuple(changes))


def _gathered(candidates: list[Candidate], contract: Shape) -> Choice | None:
    """Returns the list a contract wants, when its items stand one after another without a list around them (NDJSON)."""
    found = [candidate.reading for candidate in candidates]
    if contract.kinds != {"array"} or any(r.outcome != "whole" or not isinstance(r.value, dict) for r in found):
        return None
    value = [reading.value for reading in found]
    fits = fit(value, contract)
    if not value or fits is None or not fits.whole:
        return None
    changes = [change for reading in found for change in reading.changes]
    changes.append(Change("joined_documents", found[0].start, "", "["))
    return Choice(found[-1], "repair", value, tuple(changes), fit=fits)


def _outweighs(cut: Reading, whole: Choice | None, contract: Shape) -> bool:
    """Whether a cut answer counts more than the best whole one: it came later, or it shows more of the contract."""
    if whole is None or whole.reading is None or whole.fit is None or cut.start > whole.reading.start:
        return True
    shown = sum(any(name in cut.shown for name in group) for group in contract.required)
    return not whole.fit.whole and shown > whole.fit.present


def unwrapped(value: Any, contract: Shape) -> tuple[Any, tuple[str, ...]]:
    """Returns the answer inside wrappers that are none themselves, and the way in; the value itself without such.

    A wrapper may be an envelope of a tool call: a list with other blocks beside it, an answer written as a string.
    """
    if contract is ANYTHING or fit(value, contract) is not None:
        return value, ()
    # Level by level: the shallowest container counts, and two at one depth leave it open which is meant.
    level: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    for _ in range(WRAPPER_DEPTH):
        level = [(inner, (*way, name)) for outer, way in level for inner, name in _members(outer, contract)]
        found = [(inner, way) for inner, way in level if _is_whole(inner, contract)]
        if found:
            return found[0] if len(found) == 1 else (value, ())
    return value, ()


def _members(outer: Any, contract: Shape) -> Iterator[tuple[Any, str]]:
    """Containers inside `outer`, those written as strings decoded, each with its name."""
    named: list[tuple[str, Any]] = []
    if isinstance(outer, list):
        named = [(f"[{index}]", inner) for index, inner in enumerate(outer[:MAX_WRAPPED])]
    elif isinstance(outer, dict) and not _is_schema(outer):
        named = list(outer.items())[:MAX_WRAPPED]
    for name, inner in named:
        if isinstance(inner, str) and "{" in inner and not (isinstance(outer, dict) and path_of(name, outer)):
            inner = _decoded(inner, contract)
        if isinstance(inner, dict | list):
            yield inner, name


def _is_schema(value: dict[str, Any]) -> bool:
    """Returns whether this is a JSON Schema: what it says of an answer is none."""
    return isinstance(value.get("properties"), dict) and ("type" in value or "$schema" in value or "$defs" in value)


def _decoded(text: str, contract: Shape) -> Any:
    """Returns the container a string holds, valid or to be repaired; None without one."""
    found = document(text)
    if found is not None:
        return found
    choice = choose(Scan(text, contract).run())
    return choice.value if choice.certain else None


def _is_whole(value: Any, contract: Shape) -> bool:
    found = fit(value, contract)
    return found is not None and found.whole


def _best_whole(candidates: list[Candidate], contract: Shape) -> Choice | None:
    best: tuple[tuple[bool, Fit], Choice] | None = None
    for candidate in candidates:
        reading = candidate.reading
        if reading.outcome != "whole" or candidate.fragment:
            continue
        value, found = reading.value, candidate.fit or fit(reading.value, contract)
        way: tuple[str, ...] = ()
        if found is None:
            value, way = unwrapped(reading.value, contract)
            found = fit(value, contract) if way else None
        if found is None:
            continue
        # Of equals the last one counts: models correct themselves further down.
        rank = (contract is not ANYTHING or not reading.loose, found)
        if best is None or rank >= best[0]:
            changes = reading.changes
            if way:
                changes += (Change("wrapper", reading.start, ".".join(way), ""),)
            best = (rank, Choice(reading, candidate.layer, value, changes, fit=found))
    return best[1] if best else None


def _lost(candidates: list[Candidate], contract: Shape) -> Reading | None:
    """Returns the last candidate that was meant as an answer and could not be read."""
    for candidate in reversed(candidates):
        reading = candidate.reading
        if reading.outcome == "broken" and (reading.deep or (reading.keyed and reading.fitting)):
            return reading
    return None


def _stands_beside(lost: Reading, whole: Choice, contract: Shape) -> bool:
    """Returns whether the whole answer is clearly not a part or an earlier draft of the one that was lost."""
    after = whole.reading is not None and whole.reading.start > lost.start
    return after and contract is not ANYTHING and _is_whole(whole.value, contract)


def _last_cut(candidates: list[Candidate], contract: Shape, whole: Choice | None) -> Candidate | None:
    for candidate in reversed(candidates):
        reading = candidate.reading
        if reading.outcome != "cut" or candidate.fragment or not reading.fitting:
            continue
        if contract is ANYTHING and not _repeats(reading, whole):
            continue
        return candidate
    return None


def _repeats(reading: Reading, whole: Choice | None) -> bool:
    """Without a contract: whether the cut text is an answer of its own (the first, or one with the same keys)."""
    if whole is None or not isinstance(whole.value, dict):
        return reading.keyed or bool(reading.value)
    return any(key in whole.value for key in reading.shown)
