"""What a reader made of a case, by rules that are the same for everybody."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from benchmarks.answers.draft import Case, Wanted
from benchmarks.answers.truth import Answer

CONTRACTS = Path(__file__).parents[2] / "contracts"


class Outcome(StrEnum):
    """From best to worst."""

    EXACT = "exact"
    """All that is wanted: deep-equal and of the same types, and a part is said to be one."""
    PREFIX = "prefix"
    """A part whose items are right, but fewer than arrived, or without a word that more is missing."""
    REFUSED = "refused"
    """No value, or a right part of a whole answer that is said to be a part: whoever asks again loses only time."""
    WRONG = "wrong"
    """Another object, which a check against the contract's schema would notice."""
    SILENT = "silent"
    """Another object that fits the schema: it would be taken for the answer."""


@dataclass(frozen=True)
class Reading:
    """What a reader handed back."""

    value: Any
    cut: bool = False
    """The reader itself says that the answer is not whole."""


def equal(value: Any, truth: Any, *, edges_free: bool = False) -> bool:
    """Deep equality with strict types; a NaN or an infinity is met by itself or by null."""
    if isinstance(truth, float) and not math.isfinite(truth):
        return value is None or (isinstance(value, float) and str(value) == str(truth))
    if isinstance(truth, dict):
        return (
            isinstance(value, dict)
            and value.keys() == truth.keys()
            and all(equal(value[key], truth[key], edges_free=edges_free) for key in truth)
        )
    if isinstance(truth, list):
        return (
            isinstance(value, list)
            and len(value) == len(truth)
            and all(equal(one, other, edges_free=edges_free) for one, other in zip(value, truth, strict=True))
        )
    if edges_free and isinstance(value, str) and isinstance(truth, str):
        return value.strip("\n") == truth.strip("\n")
    return type(value) is type(truth) and bool(value == truth)


def right_items(value: Answer, case: Case) -> int | None:
    """How many items of the answer `value` has when all it has is right, None when something in it is not."""
    if case.full is None:
        return None
    count = 0
    for name, field_value in value.items():
        if name not in case.full:
            return None
        truth = case.full[name]
        if name == case.kind.items:
            if not isinstance(field_value, list) or len(field_value) > len(truth):
                return None
            truth, count = truth[: len(field_value)], len(field_value)
        if not equal(field_value, truth, edges_free=case.edges_free):
            return None
    return count


@cache
def _validator(contract: str) -> Draft202012Validator:
    schema = json.loads((CONTRACTS / f"{contract}.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schema)


def _misread(value: Answer, case: Case) -> Outcome:
    return Outcome.SILENT if _validator(case.kind.contract).is_valid(value) else Outcome.WRONG


def outcome(case: Case, reading: Reading) -> Outcome:
    """How good `reading` is; an empty object says nothing, and neither does what is no object."""
    value = reading.value
    if not isinstance(value, dict) or not value:
        nothing_wanted = case.wanted is Wanted.NOTHING or (case.wanted is Wanted.PART and case.kept == 0)
        return Outcome.EXACT if nothing_wanted else Outcome.REFUSED
    if case.full is not None and equal(value, case.full, edges_free=case.edges_free):
        return Outcome.EXACT
    items = right_items(value, case)
    if items is None or case.wanted is Wanted.NOTHING:
        return _misread(value, case)
    if case.wanted is Wanted.WHOLE:
        return Outcome.REFUSED if reading.cut else _misread(value, case)
    return Outcome.EXACT if reading.cut and items >= case.kept else Outcome.PREFIX


@dataclass
class Tally:
    """Outcomes, counted in all, per family and per fault that came alone."""

    total: Counter[Outcome] = field(default_factory=Counter)
    families: dict[str, Counter[Outcome]] = field(default_factory=dict)
    faults: dict[str, Counter[Outcome]] = field(default_factory=dict)

    def add(self, case: Case, found: Outcome) -> None:
        """Count one case."""
        self.total[found] += 1
        self.families.setdefault(case.family, Counter())[found] += 1
        if len(case.faults) == 1:
            self.faults.setdefault(case.faults[0], Counter())[found] += 1

    @classmethod
    def of(cls, pairs: Iterable[tuple[Case, Outcome]]) -> "Tally":
        """A tally of all these."""
        tally = cls()
        for case, found in pairs:
            tally.add(case, found)
        return tally

    def rank(self) -> tuple[int, int]:
        """More exact is better, then less wrong."""
        return self.total[Outcome.EXACT], -self.total[Outcome.WRONG] - self.total[Outcome.SILENT]


def percent(counts: Counter[Outcome], what: Outcome) -> float:
    """The share of `what`, 0 for no case at all."""
    return 100 * counts[what] / max(1, counts.total())
