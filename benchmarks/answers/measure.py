"""What is measured: readings of the corpus, hostile texts, speed side by side, growth."""

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmarks.answers.draft import Case
from benchmarks.answers.drive import Failure, Missing, Reader, Reply
from benchmarks.answers.hostile import HOSTILE
from benchmarks.answers.install import Bench
from benchmarks.answers.peers import FROM_JSON, JSON_REPAIR, OURS, Peer
from benchmarks.answers.scoring import Outcome, Reading, Tally, outcome

LIMIT_S = 5.0
"""For one text."""


WARM_UP = 5
"""Texts read before the clock runs: what is imported or compiled at the first call is nobody's speed."""


def sliced(text: str) -> str | None:
    """From the first opening brace to the last closing one, as many callers do before they parse."""
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else None


@dataclass(kw_only=True)
class Read:
    """What one peer made of the corpus."""

    peer: Peer
    missing: str = ""
    """Why it could not be measured; empty when it was."""
    cases: int = 0
    help: str = ""
    """Which text gave the better result: as it came, or sliced to its outermost braces."""
    tally: Tally = field(default_factory=Tally)
    failures: dict[str, int] = field(default_factory=dict)
    valid_mb_s: float = 0.0
    faulty_mb_s: float = 0.0


def read_corpus(peer: Peer, cases: Sequence[Case], bench: Bench, budget_s: float) -> Read:
    """Every case as it is and (for others than us) sliced, as far as `budget_s` goes."""
    read = Read(peer=peer)
    helps = ("as it is",) if peer.name == OURS.name else ("as it is", "sliced")
    tallies = {name: Tally() for name in helps}
    clock: dict[bool, list[float]] = {True: [0.0, 0.0], False: [0.0, 0.0]}
    failures: dict[str, dict[str, int]] = {name: {} for name in helps}
    deadline = time.monotonic() + budget_s
    try:
        with Reader(peer, bench) as reader:
            for case in cases[:WARM_UP]:
                _asked(reader, case, case.text)
            for case in cases:
                if time.monotonic() > deadline:
                    break
                read.cases += 1
                for name in helps:
                    text = case.text if name == "as it is" else sliced(case.text)
                    reply = _asked(reader, case, text)
                    tallies[name].add(case, outcome(case, Reading(reply.value, reply.cut)))
                    if reply.failure:
                        failures[name][reply.failure] = failures[name].get(reply.failure, 0) + 1
                    elif name == "as it is":
                        clock[case.family == "valid"][0] += len(case.text.encode()) / 1e6
                        clock[case.family == "valid"][1] += reply.seconds
    except Missing as missing:
        read.missing = str(missing)
        return read
    read.help = max(helps, key=lambda name: tallies[name].rank())
    read.tally, read.failures = tallies[read.help], failures[read.help]
    read.valid_mb_s, read.faulty_mb_s = (
        megabytes / seconds if seconds else 0.0 for megabytes, seconds in (clock[True], clock[False])
    )
    return read


def _asked(reader: Reader, case: Case, text: str | None) -> Reply:
    if text is None:
        return Reply()
    return reader.ask(text, contract=case.kind.contract, items=case.kind.items, limit_s=LIMIT_S)


def read_hostile(peer: Peer, bench: Bench, size: int, limit_s: float) -> dict[str, str]:
    """Text → seconds or why there are none; empty for a peer that is missing."""
    said = {}
    try:
        with Reader(peer, bench) as reader:
            for name, made in HOSTILE.items():
                reply = reader.ask(made(size), contract="delivery", items="files", limit_s=limit_s, value=False)
                said[name] = reply.failure or f"{reply.seconds:.2f}"
    except Missing:
        return {}
    return said


@dataclass(frozen=True, kw_only=True)
class Race:
    """Two readers on the same texts, taking turns, the best of some rounds counting for each text."""

    ours: str
    other: str
    texts: int
    megabytes: float
    ours_s: float
    other_s: float
    median_ratio: float
    """The middle of `other / ours`, text by text."""

    @property
    def total_ratio(self) -> float:
        """How many times as fast as the other we are."""
        return self.other_s / self.ours_s if self.ours_s else 0.0


def race(other: Peer, cases: Sequence[tuple[str, str]], bench: Bench, rounds: int = 7) -> Race | None:
    """Time `(text, contract)` pairs; None when the other is missing."""
    best: dict[str, list[float]] = {OURS.name: [], other.name: []}
    try:
        with ExitStack() as stack:
            readers = {peer.name: stack.enter_context(Reader(peer, bench)) for peer in (OURS, other)}
            for text, contract in cases:
                seconds = dict.fromkeys(best, float("inf"))
                for _ in range(rounds):
                    for name, reader in readers.items():
                        reply = reader.ask(text, contract=contract, items="", limit_s=60, value=False)
                        seconds[name] = min(seconds[name], reply.seconds if reply.failure is None else 60.0)
                for name, least in seconds.items():
                    best[name].append(least)
    except Missing:
        return None
    ours, theirs = best[OURS.name], best[other.name]
    return Race(
        ours=OURS.name,
        other=other.name,
        texts=len(cases),
        megabytes=sum(len(text.encode()) for text, _ in cases) / 1e6,
        ours_s=sum(ours),
        other_s=sum(theirs),
        median_ratio=statistics.median(b / a for a, b in zip(ours, theirs, strict=True)) if ours else 0.0,
    )


def spread(cases: Sequence[Case], most: int) -> list[Case]:
    """At most so many of them, as evenly as can be: cases of one fault stand together."""
    kept = min(most, len(cases))
    return [cases[place * len(cases) // kept] for place in range(kept)]


def races(cases: Sequence[Case], bench: Bench, texts: int) -> dict[str, Race | None]:
    """Valid texts against the fastest strict parser, faulty ones against the best-known repairer."""
    # A key given twice is valid, but a strict parser does not say so: it would win for saying nothing.
    plain = [case for case in cases if case.family == "valid" and not any("twice" in fault for fault in case.faults)]
    valid = [(case.text, case.kind.contract) for case in spread(plain, texts)]
    broken = [case for case in cases if case.family not in ("valid", "nothing")]
    faulty = [(case.text, case.kind.contract) for case in spread(broken, texts)]
    large = [(HOSTILE["valid"](size), "delivery") for size in (20_000, 200_000, 1_000_000)]
    return {
        "valid": race(FROM_JSON, [*valid, *large], bench),
        "faulty": race(JSON_REPAIR, faulty, bench),
    }


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Processor time of our reader on one kind of text, at doubling sizes."""

    name: str
    seconds: dict[int, float]
    """Size → best of some runs."""

    @property
    def factor(self) -> float:
        """The largest factor between neighbours, of those that take long enough to be told apart."""
        times = list(self.seconds.values())
        pairs = [(a, b) for a, b in pairwise(times) if a > 0.005]
        return max((b / a for a, b in pairs), default=0.0)


def growth(bench: Bench, largest: int, doublings: int = 4, runs: int = 5) -> list[Growth]:
    """Every hostile text, from `largest` divided by two as often as told, up to `largest`."""
    sizes = [largest >> back for back in range(doublings, -1, -1)]
    measured = []
    with Reader(OURS, bench) as reader:
        for name, made in HOSTILE.items():
            seconds: dict[int, float] = {}
            for size in sizes:
                reply = reader.ask(
                    made(size), contract="delivery", items="files", limit_s=300, value=False, repeat=runs
                )
                seconds[size] = reply.cpu if reply.failure is None else float("inf")
            measured.append(Growth(name=name, seconds=seconds))
    return measured


def as_json(read: Read) -> dict[str, Any]:
    """Everything known of one peer, JSON-able."""
    counts = {str(what): read.tally.total[what] for what in Outcome}
    faults = {name: {str(what): n for what, n in counter.items()} for name, counter in read.tally.faults.items()}
    families = {name: {str(what): n for what, n in counter.items()} for name, counter in read.tally.families.items()}
    return {
        "name": read.peer.name,
        "missing": read.missing,
        "cases": read.cases,
        "help": read.help,
        "outcomes": counts,
        "families": families,
        "faults": faults,
        "failures": read.failures,
        "valid_mb_s": read.valid_mb_s,
        "faulty_mb_s": read.faulty_mb_s,
    }


def slow(said: dict[str, str]) -> list[str]:
    """The hostile texts that a reader did not survive in time."""
    return [f"{name} ({why})" for name, why in said.items() if why in set(Failure)]
