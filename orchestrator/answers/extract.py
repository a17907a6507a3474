"""The door every answer goes through: layers from cheap to costly, each tried when the one before found nothing."""

from collections.abc import Callable

from pydantic import BaseModel

from orchestrator.answers.choose import Choice, choose, unwrapped
from orchestrator.answers.decode import DECODERS
from orchestrator.answers.model import (
    Change,
    Extraction,
    Status,
    excerpt,
    listed,
    place,
    too_deep,
)
from orchestrator.answers.scan import Scan
from orchestrator.answers.shape import ANYTHING, Schema, Shape, fit, has_gap, shape_of
from orchestrator.answers.strict import StrictParser
from orchestrator.domain.findings import Finding, major, minor

MAX_NOTES = 50
"""Duplicate keys that are told one by one."""
_AROUND = " \t\r\n\u00a0\u200b\u200c\u200d\u2060\ufeff"


def extract(text: str, contract: type[BaseModel] | Schema | None = None) -> Extraction:
    """The value a model's `text` holds, read as strictly as it can be.

    `contract` (a pydantic model, a JSON Schema dict whose properties may carry `x-aliases`, or None) decides which
    object is the answer and where unclear strings end; the value is not validated against it. Raises TypeError for a
    `text` or `contract` of another type, and nothing else; time is linear in the text.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    shape = shape_of(contract)
    return _whole_text(text, shape) or _scanned(text, shape)


def _whole_text(text: str, shape: Shape) -> Extraction | None:
    """Layer `strict`: the text is one valid JSON document, but for white space and unseen characters around it."""
    core = text.strip(_AROUND)
    start = text.find(core)
    if core[:1] not in ("{", "[") or core[-1:] not in ("}", "]"):
        return None
    parser = StrictParser()
    try:
        value, end = parser.prefix(text, start)
    except (ValueError, RecursionError):
        return None
    if end != start + len(core) or parser.doubled or too_deep(value) or has_gap(value, shape):
        return None
    value, way = unwrapped(value, shape)
    if shape is not ANYTHING and fit(value, shape) is None:
        return _refusal(text, shape, Choice(refused="answer.unfit"), 1, start)
    changes = [Change("wrapper", start, ".".join(way), "")] if way else []
    for at, ends in ((0, text[:start]), (end, text[end:])):
        if not ends.isascii():
            changes.append(Change("unseen_character", at, ends, ""))
    status = Status.REPAIRED if changes else Status.OK
    return Extraction(value=value, status=status, layer="strict", repairs=listed(changes), complete=True, candidates=1)


def _scanned(text: str, shape: Shape) -> Extraction:
    """Layers `scan`, `repair`, `guided` and `truncation`, then `decoded`: what stands somewhere in the text."""
    scan = Scan(text, shape).run()
    choice = choose(scan)
    if shape is ANYTHING or not choice.certain:
        decoded = _decoded(text, shape, scan, choice)
        if decoded is not None:
            return decoded
    if choice.reading is None or choice.refused:
        return _refusal(text, shape, choice, scan.seen)
    return _found(choice, scan.seen, _notes(text, choice, int))


def _decoded(text: str, shape: Shape, scan: Scan, plain: Choice) -> Extraction | None:
    """Layers of `DECODERS`: the text without one layer of encoding, when that gives an answer."""
    for decoder in DECODERS:
        decoded = decoder(text)
        if decoded is None or not _stands_free(decoded.change.offset, scan, plain):
            continue
        inner = Scan(decoded.text, shape).run()
        choice = choose(inner)
        if choice.reading is None or choice.refused or not (plain.refused or choice.certain):
            continue
        moved = tuple(change._replace(offset=decoded.original(change.offset)) for change in choice.changes)
        layer = "truncation" if choice.layer == "truncation" else "decoded"
        found = Choice(choice.reading, layer, choice.value, (decoded.change, *moved))
        return _found(found, scan.seen + inner.seen, _notes(text, found, decoded.original))
    return None


def _stands_free(offset: int, scan: Scan, plain: Choice) -> bool:
    """Whether what begins at `offset` is no part of an object of the undecoded text, nor older than its answer."""
    if plain.certain and plain.reading is not None and plain.reading.start < offset:
        return False
    return not any(
        reading.start < offset and (reading.end > offset or reading.outcome != "whole")
        for reading in (candidate.reading for candidate in scan.candidates)
        if reading.keyed
    )


def _found(choice: Choice, seen: int, problems: tuple[Finding, ...]) -> Extraction:
    truncated = choice.layer == "truncation"
    layer = choice.layer if choice.changes or truncated else "scan"
    status = Status.TRUNCATED if truncated else Status.REPAIRED if choice.changes else Status.OK
    return Extraction(
        value=choice.value,
        status=status,
        layer=layer,
        repairs=listed(choice.changes),
        complete=not truncated,
        candidates=seen,
        problems=problems,
    )


def _notes(text: str, choice: Choice, original: Callable[[int], int]) -> tuple[Finding, ...]:
    """What a caller should know of an answer that was found: where it was cut, which keys came twice."""
    reading = choice.reading
    if reading is None:
        return ()
    notes = [
        minor(
            "answer.duplicate_key",
            f"The key {excerpt(double.key)!r} stands twice in one object; the last one counts.",
            where=place(text, original(double.offset)),
            fix="Write every key once.",
        )
        for double in reading.duplicates[:MAX_NOTES]
    ]
    if choice.layer == "truncation":
        cut = major(
            "answer.truncated",
            f"The answer is not whole: {reading.why}.",
            where=place(text, original(reading.end)),
            fix="Send what is missing; what came whole was kept.",
        )
        notes.insert(0, cut)
    return tuple(notes)


def _refusal(text: str, shape: Shape, choice: Choice, seen: int, start: int = 0) -> Extraction:
    """Nothing can be trusted: why, and where."""
    at = choice.reading.end if choice.reading else start
    if choice.refused == "answer.unreadable" and choice.reading:
        message = f"An answer begins at line {place(text, choice.reading.start).line} and cannot be read: "
        problem = major(
            "answer.unreadable",
            message + f"{choice.reading.why}.",
            where=place(text, at),
            fix="Send the whole answer again as valid JSON: escape quotes and line ends inside strings.",
        )
    elif choice.refused == "answer.unfit":
        at = choice.reading.start if choice.reading else start
        wanted = ", ".join(" or ".join(f"`{name}`" for name in group) for group in shape.required)
        problem = major(
            "answer.unfit",
            "No object in the text shows a key that the answer must have" + (f": {wanted}." if wanted else "."),
            where=place(text, at),
            fix="Answer with one JSON object that has these keys at its outermost level.",
        )
    elif choice.refused == "answer.too_many":
        problem = major(
            "answer.too_many",
            f"The text holds too many objects and lists to be an answer ({seen} were looked at).",
            where=place(text, start),
            fix="Answer with one JSON object and nothing else.",
        )
    else:
        problem = major(
            "answer.none",
            "The text holds no answer." if text.strip(_AROUND) else "The text is empty.",
            where=place(text, start),
            fix="Answer with one JSON object.",
        )
    return Extraction(
        value=None, status=Status.REFUSED, layer="none", complete=False, candidates=seen, problems=(problem,)
    )
