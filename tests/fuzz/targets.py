"""What must hold for every input. A target takes bytes and raises `Broken` when a promise is not kept."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from orchestrator.answers import Extraction, Status, extract
from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from tests.fuzz.source import Source

CONTRACTS = (None, BreakdownAnswer, DeliveryAnswer, SuiteAnswer)
PROSE = (
    "",
    "Here it is:\n\n",
    "I read the story, it's clear.\n",
    "Done.\n\n- one thing\n- another: 3 of 4\n",
    "# Answer\n",
)
TURNS = ("\n", "\n\nCorrected:\n\n", "\n\nOn second thought:\n", "\n---\n")
PLENTY = 6000
"""Characters the text of the target `linear` is repeated to."""
START_S = 0.5
PER_CHARACTER_S = 60e-6
"""Far above what is needed, and far below a quadratic reader."""


class Broken(AssertionError):
    """A promise is not kept; carries the text that shows it."""

    def __init__(self, why: str, text: str) -> None:
        super().__init__(f"{why}\ntext: {text!r}")


def _read(text: str, contract: Any) -> Extraction:
    try:
        found = extract(text, contract)
    except Exception as error:
        raise Broken(f"extract raised {type(error).__name__}: {error}", text) from error
    if (found.value is None) != (found.status is Status.REFUSED):
        raise Broken(f"status {found.status} with the value {found.value!r}", text)
    if found.complete != (found.status in (Status.OK, Status.REPAIRED)):
        raise Broken(f"status {found.status}, complete {found.complete}", text)
    if found.status is Status.OK and found.repairs:
        raise Broken(f"ok with repairs: {found.repairs}", text)
    if found.status is Status.REPAIRED and not found.repairs:
        raise Broken("repaired without repairs", text)
    if not found.complete and not found.problems:
        raise Broken(f"{found.status} without a word why", text)
    for repair in found.repairs:
        if not 0 <= repair.offset <= len(text):
            raise Broken(f"a repair outside the text: {repair}", text)
    found.model_dump_json(exclude={"value"})
    return found


def invariants(data: bytes) -> None:
    """Any text and contract: an extraction comes back, and its parts agree."""
    source = Source(data)
    contract = source.one_of(CONTRACTS)
    _read(source.rest(), contract)


def _answer(source: Source) -> tuple[dict[str, Any], Any]:
    kind = source.number(3)
    if kind == 0:
        return source.delivery(), DeliveryAnswer
    if kind == 1:
        return source.breakdown(), BreakdownAnswer
    return source.suite(), SuiteAnswer


def _written(source: Source, value: Any) -> str:
    return json.dumps(value, indent=source.one_of((None, 2, 1)), ensure_ascii=bool(source.number(2)))


def valid(data: bytes) -> None:
    """Valid JSON, alone or between prose without a value of its own, comes back whole and identical.

    One that holds half of a character lost the other half somewhere: it is never called whole. One that holds a
    backspace, or what a path or a formula becomes without its backslash, is asked for again.
    """
    source = Source(data)
    value, contract = _answer(source)
    if source.number(3) == 0:
        contract = None
    before, after, fence = source.one_of(PROSE), source.one_of(PROSE), source.number(2)
    text = _written(source, value)
    if fence:
        text = f"````json\n{text}\n````\n"
    text = before + text + ("\n\n" + after if after else "")
    found = _read(text, contract)
    halves = re.findall("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]", json.dumps(value, ensure_ascii=False))
    if halves:
        if found.complete and any(len(half) == 1 for half in halves):
            raise Broken(f"a text that lost half of a character is {found.status}", text)
        return
    if found.value is None and any("lost a backslash" in one.message for one in found.problems):
        return
    if found.value != value or not found.complete:
        raise Broken(f"valid JSON came back as {found.status}, {found.value!r}", text)
    if not (before or after or fence) and found.status is not Status.OK:
        raise Broken(f"nothing but valid JSON is {found.status}: {found.repairs}", text)


def cut(data: bytes) -> None:
    """An answer that was cut off is never called whole, and what is kept of it is right."""
    source = Source(data)
    value, contract = _answer(source)
    if source.number(3) == 0:
        contract = None
    whole = _written(source, value)
    text = source.one_of(PROSE) + whole[: 1 + source.number(1 << 16) % (len(whole) - 1)]
    found = _read(text, contract)
    if found.complete:
        raise Broken(f"a cut answer is {found.status}: {found.value!r}", text)
    if isinstance(found.value, dict) and not _is_part(found.value, value):
        raise Broken(f"kept of a cut answer: {found.value!r}", text)


def _is_part(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether every field is the whole one's, lists may end earlier."""
    return all(
        name in whole and (field == whole[name] or (isinstance(field, list) and field == whole[name][: len(field)]))
        for name, field in part.items()
    )


def _fragments(value: Any) -> Iterator[Any]:
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(child, dict | list) and child:
            yield child
        yield from _fragments(child)


def two(data: bytes) -> None:
    """Of two answers one comes back or none; and a damaged one never comes back as an inner part of itself."""
    source = Source(data)
    value, contract = _answer(source)
    later = json.loads(json.dumps(value))
    code = next(name for name in ("files", "tasks", "test_cases") if name in value)
    later[code][0]["path" if code == "files" else "task_id" if code == "tasks" else "name"] = "other"
    first, second, turn = _written(source, value), _written(source, later), source.one_of(TURNS)
    found = _read(first + turn + second, contract)
    if found.complete and found.value not in (value, later):
        raise Broken(f"neither of two answers: {found.status}, {found.value!r}", first + turn + second)
    at = source.number(1 << 16) % len(first)
    damaged = first[:at] + source.text(2) + first[at + 1 :]
    found = _read(damaged, source.one_of((contract, None)))
    if found.complete and any(found.value == part for part in _fragments(value)):
        raise Broken(f"an inner part of a damaged answer: {found.value!r}", damaged)


def linear(data: bytes) -> None:
    """Processor time stays below a line through the length of the text, whatever is repeated in it."""
    source = Source(data)
    contract, before, part = source.one_of(CONTRACTS), source.text(40), source.rest()
    text = before + part * (PLENTY // max(1, len(part)))
    allowed = START_S + PER_CHARACTER_S * len(text)
    used = _cpu_s(text, contract)
    if used > allowed and min(_cpu_s(text, contract) for _ in range(2)) > allowed:
        raise Broken(f"{used:.2f} s for {len(text)} characters, {allowed:.2f} s allowed", before + part)


def _cpu_s(text: str, contract: Any) -> float:
    begin = time.process_time()
    _read(text, contract)
    return time.process_time() - begin


TARGETS: dict[str, Callable[[bytes], None]] = {
    "invariants": invariants,
    "valid": valid,
    "cut": cut,
    "two": two,
    "linear": linear,
}
