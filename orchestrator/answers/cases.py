"""Answers as cases: made from a reply without its secrets, and run again with another version. Pure."""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from orchestrator.answers.extract import extract
from orchestrator.answers.result import Extraction, Status
from orchestrator.core.case import Case, CaseSource, Seen
from orchestrator.core.value import Value

_TRUST: dict[str, int] = {Status.REFUSED: 0, Status.TRUNCATED: 1, Status.REPAIRED: 2, Status.OK: 2}


class Verdict(StrEnum):
    """How a replay compares with what was kept."""

    SAME = "same"
    OTHER_WAY = "other_way"
    """The same value, found by another layer or with another status as trustworthy."""
    BETTER = "better"
    """More is recovered: refused before, or truncated and whole now."""
    WORSE = "worse"
    """Less is recovered, or the value is another one."""


class Replayed(Value):
    """A case and what the installed version makes of it."""

    name: str
    verdict: Verdict
    before: Seen
    after: Seen
    differs_at: str | None = None
    """Where the first difference of the values is, as `tasks[1].description`; "" for the values as such."""


def exported(
    name: str, text: str, contract: dict[str, Any] | None, source: CaseSource, redact: Callable[[str], str]
) -> tuple[Case, Extraction]:
    """The case of a reply without its secrets, and the extraction of that text, which a replay compares with."""
    plain = redact(text)
    extraction = extract(plain, contract)
    if plain != text:
        changed = _changed_by_redaction(extract(text, contract), extraction, redact)
        source = source.model_copy(update={"redacted": True, "redaction_changed": changed})
    case = Case.model_construct(name=name, text=plain, contract=contract, seen=_seen(extraction), source=source)
    return case, extraction


def replay(case: Case) -> Replayed:
    """Runs the installed version over a case."""
    before, after = case.seen, _seen(extract(case.text, case.contract))
    differs = None if _json(before.value) == _json(after.value) else _first_difference(before.value, after.value)
    gain = _TRUST[after.status] - _TRUST[before.status]
    if gain:
        verdict = Verdict.BETTER if gain > 0 else Verdict.WORSE
    elif differs is not None:
        verdict = Verdict.WORSE
    else:
        same = (before.status, before.layer) == (after.status, after.layer)
        verdict = Verdict.SAME if same else Verdict.OTHER_WAY
    return Replayed(name=case.name, verdict=verdict, before=before, after=after, differs_at=differs)


def _seen(extraction: Extraction) -> Seen:
    return Seen(status=extraction.status.value, layer=extraction.layer, value=extraction.value)


def _changed_by_redaction(raw: Extraction, plain: Extraction, redact: Callable[[str], str]) -> str | None:
    if (raw.status, raw.layer) != (plain.status, plain.layer):
        return f"{raw.status} by layer {raw.layer} with the secrets, {plain.status} by {plain.layer} without"
    if _json(_without_secrets(raw.value, redact)) != _json(plain.value):
        return "the value differs in more than the secrets"
    return None


def _without_secrets(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_without_secrets(entry, redact) for entry in value]
    if isinstance(value, dict):
        return {redact(name): _without_secrets(entry, redact) for name, entry in value.items()}
    return value


def _json(value: Any) -> str:
    """Equal for equal values only: Python takes 1, 1.0 and True for the same."""
    return json.dumps(value, sort_keys=True)


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in (*one, *(name for name in other if name not in one)):
            if name not in one or name not in other or _json(one[name]) != _json(other[name]):
                below = f"{path}.{name}" if path else name
                return _first_difference(one[name], other[name], below) if name in one and name in other else below
    if isinstance(one, list) and isinstance(other, list):
        for index, (entry, twin) in enumerate(zip(one, other, strict=False)):
            if _json(entry) != _json(twin):
                return _first_difference(entry, twin, f"{path}[{index}]")
        return f"{path}[{min(len(one), len(other))}]"
    return path
