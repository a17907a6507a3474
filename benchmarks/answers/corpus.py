"""The cases: every fault alone equally often, then faults together, valid texts and texts without an answer."""

import random
from collections.abc import Iterator

from benchmarks.answers import faults_around, faults_end, faults_strings, faults_tokens
from benchmarks.answers.draft import FAULTS, Case, Draft, Fault, Unfit, Wanted
from benchmarks.answers.truth import KINDS, answer
from benchmarks.answers.writer import Style

FAULT_MODULES = (faults_strings, faults_tokens, faults_around, faults_end)
"""Imported so that their faults are registered."""
NONE = "no answer"
TOGETHER = "faults together"
SHARE_TOGETHER = 0.25
DRAWS = 400


def _draw(rng: random.Random, number: int, faults: tuple[Fault, ...], family: str) -> Case:
    for _ in range(DRAWS):
        kind = rng.choice(KINDS)
        style = Style(indent=rng.choice((2, 2, 2, 4, 0)))
        draft = Draft(rng=rng, kind=kind, full=answer(rng, kind), style=style)
        try:
            for fault in faults:
                fault.apply(draft)
        except Unfit:
            continue
        return draft.finished(number, tuple(fault.name for fault in faults), family)
    raise LookupError(f"no answer fits {', '.join(fault.name for fault in faults)}")


def _together(rng: random.Random) -> tuple[Fault, ...]:
    """Two or three faults of different families that change different parts."""
    while True:
        chosen = rng.sample(sorted(FAULTS.values(), key=lambda fault: fault.name), rng.choice((2, 2, 3)))
        families = {fault.family for fault in chosen} - {"valid"}
        touched = [part for fault in chosen for part in fault.touches]
        if len(families) == len(chosen) and len(touched) == len(set(touched)):
            # What leaves something out comes first: the others befall what is left.
            return tuple(sorted(chosen, key=lambda fault: "said" not in fault.touches))


def single(seed: int, name: str, count: int) -> Iterator[Case]:
    """`count` cases of one fault, or of `no answer`."""
    rng = random.Random(f"{seed} {name}")
    for number in range(count):
        if name == NONE:
            kind = rng.choice(KINDS)
            text = faults_around.no_answer(rng, kind)
            yield Case(number=number, kind=kind, faults=(NONE,), family="nothing", text=text, wanted=Wanted.NOTHING,
                       full=None)  # fmt: skip
        else:
            yield _draw(rng, number, (FAULTS[name],), FAULTS[name].family)


def together(seed: int, count: int) -> Iterator[Case]:
    """`count` cases of two or three faults."""
    rng = random.Random(f"{seed} {TOGETHER}")
    for number in range(count):
        while True:
            try:
                yield _draw(rng, number, _together(rng), "together")
            except LookupError:
                continue
            break


def cases(seed: int, count: int) -> list[Case]:
    """About `count` cases in an order drawn by `seed`, so that any beginning of it is a fair sample."""
    names = (*FAULTS, NONE)
    each = max(1, round(count * (1 - SHARE_TOGETHER) / len(names)))
    drawn = [case for name in names for case in single(seed, name, each)]
    drawn += together(seed, round(count * SHARE_TOGETHER))
    random.Random(seed).shuffle(drawn)
    return drawn
