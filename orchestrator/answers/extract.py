"""The door every answer goes through: layers from cheap to costly, each tried when the one before found nothing.

What a value lost although its text parses counts as well: half of a character, code that a comment stands for.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

from pydantic import BaseModel

from orchestrator.answers.action_plan import PLAN_LAYER, plan_answer
from orchestrator.answers.json.choose import Choice, choose, unwrapped
from orchestrator.answers.json.code import PATH_OF, lost_backslash, path_of
from orchestrator.answers.json.frames import Reading, decode_strings, document
from orchestrator.answers.json.recovery import announced, before_gap, has_gap
from orchestrator.answers.json.scan import Scan, fit
from orchestrator.answers.json.shape import ANYTHING, Schema, Shape, shape_of
from orchestrator.answers.json.views import ENCODINGS, LAYOUTS, View, hunks, joined_chunks, new_side, overlapping_chunks
from orchestrator.answers.result import Change, Decoded, Extraction, Status, excerpt, listed, text_place
from orchestrator.code.check import stands_for_code
from orchestrator.core.finding import Finding, major, minor

_HALF = re.compile(r"[\ud800-\udfff]")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_COMMENT = re.compile(
    r"^[ \t]*(?:\{[ \t]*)?(?://+|#+|/\*+|<!--+|--+)(?P<said>.*?)(?:\*+/|-->)?[ \t]*\}?[ \t]*$", re.MULTILINE
)
"""A line that is only a comment: what stands behind code may well be about that code."""
_WORDS = ("...", "…", "unchanged", "omitted", "same", " here", "before", "existing", "remaining", "rest of", "Rest of")
"""One of them is in nearly all comments that stand for code: most contents need no closer look."""


_PATHS = frozenset(name for names in PATH_OF.values() for name in names if name != "name")


def join_halves(value: Any) -> Any:
    """Returns the value with the two halves of a character that stand side by side made one."""
    if isinstance(value, str):
        return value if _PAIR.search(value) is None else _PAIR.sub(_joined, value)
    if isinstance(value, dict):
        return {key: join_halves(member) for key, member in value.items()}
    return [join_halves(member) for member in value] if isinstance(value, list) else value


def _joined(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16", "surrogatepass").decode("utf-16")


def without_losses(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Returns the value without the items and outermost fields that lost something, and what each of them lost."""
    told: list[str] = []

    def is_whole(member: Any, field: str) -> bool:
        found = next(_losses(member, field), None)
        told.extend([found] if found else [])
        return found is None

    if isinstance(value, list):
        return [item for index, item in enumerate(value) if is_whole(item, f"[{index}]")], tuple(told)
    kept: dict[str, Any] = {}
    for name, member in value.items():
        if isinstance(member, str) and (elided := _elision(member, name, value)):
            told.append(f"`{name}` holds `{elided}` in place of code")
        elif isinstance(member, list) and any(isinstance(item, dict) for item in member):
            kept[name] = [item for index, item in enumerate(member) if is_whole(item, f"{name}[{index}]")]
        elif is_whole(member, name):
            kept[name] = member
    return kept, tuple(told)


def _losses(value: Any, field: str) -> Iterator[str]:
    """Yields what the strings inside a member lost; level by level, so that depth costs no stack."""
    waiting: list[tuple[str, Any]] = [(field, value)]
    for place, member in waiting:
        if isinstance(member, dict):
            for name, inner in member.items():
                if isinstance(inner, str) and (elided := _elision(inner, name, member)):
                    yield f"`{place}.{name}` holds `{elided}` in place of code"
            waiting += [(f"{place}.{name}", inner) for name, inner in member.items()]
        elif isinstance(member, list):
            waiting += [(f"{place}[{index}]", inner) for index, inner in enumerate(member)]
        elif isinstance(member, str) and not member.isascii() and _HALF.search(member):
            yield f"half of a character is missing in `{place}`"


def _broken_path(name: object, text: str) -> str:
    return text if name in _PATHS and any(char < " " for char in text) else ""


def _lost_backslashes(value: Any) -> Iterator[tuple[str, str]]:
    """Yields the path or field of each text in the value that lost a backslash, and the place."""
    waiting = [value]
    for member in waiting:
        inner = member.items() if isinstance(member, dict) else enumerate(member)
        for name, text in inner:
            if isinstance(text, str) and (shown := lost_backslash(text) or _broken_path(name, text)):
                yield path_of(str(name), member) or str(name), shown
            elif isinstance(text, dict | list):
                waiting.append(text)


def _elision(code: str, field: str, siblings: dict[str, Any]) -> str:
    """The first line of code that stands for others, "" without one: prose tells of code that its reader has."""
    if field not in PATH_OF or (path_of(field, siblings) or "").lower().endswith((".md", ".mdx", ".rst", ".txt")):
        return ""
    comments = _COMMENT.finditer(code) if any(word in code for word in _WORDS) else ()
    found = next((comment for comment in comments if stands_for_code(comment["said"])), None)
    return excerpt(found.group().strip()) if found else ""


MAX_NOTES = 50
"""Limit on the duplicate keys that are reported individually."""
_KIND = itemgetter(0)
_AROUND = " \t\r\n\u00a0\u200b\u200c\u200d\u2060\ufeff"


def extract(text: str, contract: type[BaseModel] | Schema | None = None) -> Extraction:
    """Returns the value a model's `text` holds, read as strictly as it can be.

    `contract` (a pydantic model, a JSON Schema dict whose properties may carry `x-aliases`, or None) decides which
    object is the answer and where unclear strings end; the value is not validated against it. Raises TypeError for a
    `text` or `contract` of another type, and nothing else; time is linear in the text.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    case = Case(_without_drafts(text), shape_of(contract))
    for layer in LAYERS:
        found = layer(case)
        if found is not None:
            return _without_losses(found, text, case.shape)
    return _refusal(text, case.shape, case.plain, case.scan.seen)


_CHANNEL = re.compile(r"<\|channel\|>\s*analysis\b.*?(?=<\|(?:end|start|return|call|channel)\|>|\Z)", re.DOTALL)


def _without_drafts(text: str) -> str:
    """Returns the text with blanks for what a model thought in a channel of its own; every offset stays."""
    at = text.find("<|channel|>")
    # Behind the first bracket the mark may stand in a string.
    if at < 0 or 0 <= text.find("{") < at:
        return text
    seen = _CHANNEL.sub(lambda draft: re.sub(r"[^\n]", " ", draft[0]), text)
    return seen if "{" in seen or "#" in seen else text


def _without_losses(found: Extraction, text: str, shape: Shape) -> Extraction:
    """What was found, without what is there in name only: half of a character, code that a comment stands for."""
    if found.value is None or found.layer == PLAN_LAYER:
        return found
    value = join_halves(found.value)
    if value != found.value:
        repair = Change("split_character", 0, "", "")
        found = found.model_copy(
            update={
                "value": value,
                "status": max(found.status, Status.REPAIRED, key=list(Status).index),
                "repairs": (*found.repairs, repair),
            }
        )
    for field, shown in _lost_backslashes(found.value) if shape is not ANYTHING else ():
        told = f"`{field}` lost a backslash: `{excerpt(shown.encode('unicode_escape').decode())}` was read from it"
        fix = "Send it again with every backslash of a path, a regular expression or TeX doubled."
        problem = major("answer.unreadable", told, where=text_place(text, 0), fix=fix)
        return Extraction(
            value=None,
            status=Status.REFUSED,
            layer="none",
            complete=False,
            candidates=found.candidates,
            problems=(problem,),
        )
    kept, lost = without_losses(found.value)
    if not lost:
        return found
    problems = [_not_whole(one, text, 0) for one in lost]
    return found.model_copy(
        update={
            "value": kept,
            "status": Status.TRUNCATED,
            "layer": "truncation",
            "complete": False,
            "problems": (*found.problems, *problems),
        }
    )


class Case:
    """One text and what the layers share: its candidates and the choice among them, found when first asked for."""

    def __init__(self, text: str, shape: Shape) -> None:
        self.text, self.shape = text, shape

    @cached_property
    def scan(self) -> Scan:
        """The objects and lists of the text as it stands."""
        return Scan(self.text, self.shape).run()

    @cached_property
    def plain(self) -> Choice:
        """The answer among them."""
        return choose(self.scan)


def whole_text(case: Case) -> Extraction | None:
    """Reads a text that is one valid JSON document, but for white space and unseen characters around it."""
    text, shape, start, end = case.text, case.shape, 0, len(case.text)
    found = document(text)
    if found is None and text[:1] in _AROUND and text[-1:] in _AROUND and text:
        start, end = len(text) - len(text.lstrip(_AROUND)), len(text.rstrip(_AROUND))
        found = document(text[start:end])
    if not isinstance(found, dict | list):
        return None
    decoded: list[Change] = []
    value, way = unwrapped(decode_strings(found, shape, start, decoded), shape)
    if (not way and shape is not ANYTHING and fit(value, shape) is None) or has_gap(value, shape):
        return None
    changes = [*decoded, *([Change("wrapper", start, ".".join(way), "")] if way else [])]
    for at, ends in ((0, text[:start]), (end, text[end:])):
        if not ends.isascii():
            changes.append(Change("unseen_character", at, ends, ""))
    status = Status.REPAIRED if changes else Status.OK
    return Extraction(value=value, status=status, layer="strict", repairs=listed(changes), complete=True, candidates=1)


def action_plan(case: Case) -> Extraction | None:
    """Reads an action plan where the contract takes one (`x-action-plan`) in place of JSON."""
    found = plan_answer(case.text) if case.shape.takes_plans else None
    # What is no plan that could be read may hold the answer in the other form.
    return None if found is not None and found.value is None and case.plain.certain else found


def diff(case: Case) -> Extraction | None:
    """Returns the new side of an answer in a diff; with several hunks the text between them is unknown."""
    found = hunks(case.text)
    if not found or _unmarked(case):
        return None
    # A hunk that begins behind line 1 leaves out the beginning of the answer.
    if len(found) > 1 or (found[0].lastindex and found[0][1] not in ("0", "1")):
        why = "a diff shows only parts of it"
        lost = Reading(start=found[0].start(), end=found[-1].start(), outcome="broken", why=why)
        return _refusal(case.text, case.shape, Choice(lost, refused="answer.unreadable"), 0)
    return _read(case, new_side(case.text, found[0]))


def _unmarked(case: Case) -> bool:
    """Returns whether a whole answer begins a line behind the diff: then the diff is a quotation."""
    reading = case.plain.reading if case.plain.certain else None
    return reading is not None and case.text[: reading.start].rpartition("\n")[2][:1] not in ("+", "-", " ")


def certain_answer(case: Case) -> Extraction | None:
    """Reads an object or list in the text that has all the contract requires: valid, repaired or guided."""
    if case.plain.certain and case.shape is not ANYTHING:
        if "raw_newline" in map(_KIND, case.plain.changes):
            # A string that swallowed the seam of two chunks repeats what it holds.
            joined = _viewed(case, overlapping_chunks)
            if joined is not None and joined.complete:
                return joined
        return _found(case.plain, case.scan.seen, case.shape, case.text, int)
    return None


def other_view(case: Case) -> Extraction | None:
    """Reads an answer that appears when one layer of packaging is taken off the whole text."""
    for encoding in ENCODINGS:
        found = _read(case, encoding(case.text, case.shape, partial(_stands_free, case)))
        if found is not None:
            return found
    for layout in LAYOUTS:
        found = _viewed(case, layout)
        if found is not None:
            return found
    return None


def _viewed(case: Case, layout: View) -> Extraction | None:
    plain = case.plain
    if case.shape is ANYTHING and not (plain.refused or plain.layer == "truncation"):
        return None
    return _read(case, layout(case.text, case.shape), whole_only=layout is joined_chunks)


def _read(case: Case, seen: Decoded | None, whole_only: bool = False) -> Extraction | None:
    plain = case.plain
    if seen is None:
        return None
    inner = Scan(seen.text, case.shape).run()
    choice = choose(inner)
    if choice.reading is None or choice.refused or not (choice.certain or (plain.refused and not whole_only)):
        return None
    moved = tuple(change._replace(offset=seen.original(change.offset)) for change in choice.changes)
    layer = choice.layer if choice.layer == "truncation" else "decoded"
    found = replace(choice, layer=layer, changes=(seen.change, *moved))
    return _found(found, case.scan.seen + inner.seen, case.shape, case.text, seen.original)


def partial_answer(case: Case) -> Extraction | None:
    """Returns what there is of an answer: cut off, or without all that the contract requires."""
    if case.plain.reading is None or case.plain.refused:
        return None
    return _found(case.plain, case.scan.seen, case.shape, case.text, int)


LAYERS: tuple[Callable[[Case], Extraction | None], ...] = (
    whole_text, action_plan, diff, certain_answer, other_view, partial_answer,
)  # fmt: skip
"""In the order they are tried; what none of them finds is refused. Readings inside one: see scan.py."""


def _stands_free(case: Case, offset: int) -> bool:
    """Whether what begins at `offset` is no part of an object of the undecoded text, nor older than its answer."""
    plain = case.plain
    if plain.certain and plain.reading is not None and plain.reading.start < offset:
        return False
    return not any(
        reading.start < offset and (reading.end > offset or reading.outcome != "whole")
        for reading in (candidate.reading for candidate in case.scan.candidates)
        if reading.keyed
    )


def _found(choice: Choice, seen: int, shape: Shape, text: str, original: Callable[[int], int]) -> Extraction:
    """Returns the extraction of a choice; `original` gives the offset in `text` of one in the text it was read from."""
    value, truncated = choice.value, choice.layer == "truncation"
    short = isinstance(value, dict) and not truncated and has_gap(value, shape)
    layer = "truncation" if short else choice.layer if choice.changes or truncated else "scan"
    truncated = truncated or short
    status = Status.TRUNCATED if truncated else Status.REPAIRED if choice.changes else Status.OK
    return Extraction(
        value=before_gap(value, shape) if short else value,
        status=status,
        layer=layer,
        repairs=listed(choice.changes),
        complete=not truncated,
        candidates=seen,
        problems=(*_missing(choice, shape, text, original, short), *_notes(choice, text, original)),
    )


def _missing(
    choice: Choice, shape: Shape, text: str, original: Callable[[int], int], short: bool
) -> tuple[Finding, ...]:
    """Returns why and where an answer is not whole."""
    reading = choice.reading
    if reading is None or not (short or choice.layer == "truncation"):
        return ()
    why, at = reading.why, reading.end
    if short:
        fewer = announced(choice.value, shape)
        why = f"`{fewer[0]}` has fewer items than the {fewer[1]} announced" if fewer else "items were left out"
        at = reading.start
    return (_not_whole(why, text, original(at)),)


def _notes(choice: Choice, text: str, original: Callable[[int], int]) -> tuple[Finding, ...]:
    """Returns which keys came twice."""
    doubles = choice.reading.duplicates[:MAX_NOTES] if choice.reading else ()
    return tuple(
        minor(
            "answer.duplicate_key",
            f"The key {excerpt(double.key)!r} stands twice in one object; the last one counts.",
            where=text_place(text, original(double.offset)),
            fix="Write every key once.",
        )
        for double in doubles
    )


def _refusal(text: str, shape: Shape, choice: Choice, seen: int) -> Extraction:
    """Nothing can be trusted: why, and where."""
    reading, start = choice.reading, text_place(text, 0)
    if choice.refused == "answer.unreadable" and reading:
        line, where = text_place(text, reading.start).line, text_place(text, reading.end)
        message = f"An answer begins at line {line} and cannot be read: {reading.why}."
        fix = "Send the whole answer again as valid JSON: escape quotes and line ends inside strings."
        problem = major("answer.unreadable", message, where=where, fix=fix)
    elif choice.refused == "answer.unfit":
        where = text_place(text, reading.start if reading else 0)
        wanted = ", ".join(" or ".join(f"`{name}`" for name in group) for group in shape.required)
        message = "No object in the text shows a key that the answer must have" + (f": {wanted}." if wanted else ".")
        fix = "Answer with one JSON object that has these keys at its outermost level."
        problem = major("answer.unfit", message, where=where, fix=fix)
    elif choice.refused == "answer.too_many":
        message = f"The text holds too many objects and lists to be an answer ({seen} were looked at)."
        fix = "Answer with one JSON object and nothing else."
        problem = major("answer.too_many", message, where=start, fix=fix)
    else:
        message = "The text holds no answer." if text.strip(_AROUND) else "The text is empty."
        problem = major("answer.none", message, where=start, fix="Answer with one JSON object.")
    return Extraction(
        value=None, status=Status.REFUSED, layer="none", complete=False, candidates=seen, problems=(problem,)
    )


def _not_whole(why: str, text: str, at: int) -> Finding:
    fix = "Send it again, whole and shorter."
    return major("answer.truncated", f"The answer is not whole: {why}.", where=text_place(text, at), fix=fix)
