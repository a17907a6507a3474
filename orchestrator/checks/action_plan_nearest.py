"""The text of a file that is nearest to what a FIND block looks for, and how it differs; bounded, whatever its size."""

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process

MAX_LINES = 120
"""Lines of a FIND block that are compared."""
MAX_FILE_LINES = 300_000
"""Lines of a file that are looked at."""
MAX_CHARS = 400
"""Characters of one line that are compared."""
MAX_CANDIDATES = 8
MAX_PLACES = 40
"""Places of one line that are looked at."""
MAX_DIFF = 30
LEAST = 45.0
"""Per cent of likeness below which a text is not near."""


class Nearest(NamedTuple):
    """A place that looks alike."""

    line: int
    """1-based."""
    score: float
    """Per cent."""
    diff: str
    """From the file to FIND, a few lines."""
    blanks_only: bool
    """Whether they differ in blanks only."""


def nearest(lf: str, find: str) -> Nearest | None:
    """The lines of a file that are most like FIND, or None when none are."""
    lines = lf.split("\n", MAX_FILE_LINES)[:MAX_FILE_LINES]
    want = find.removesuffix("\n").split("\n")[:MAX_LINES]
    best: tuple[float, int] | None = None
    wanted = _joined(want)
    for start in _starts(lines, want):
        score = fuzz.ratio(_joined(lines[start : start + len(want)]), wanted)
        best = max(best or (0.0, start), (score, start), key=lambda one: (one[0], -one[1]))
    if best is None or best[0] < LEAST:
        return None
    score, start = best
    there = lines[start : start + len(want)]
    diff = _diff(there, want)
    return Nearest(start + 1, score, diff, _bare(there) == _bare(want)) if diff else None


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line[:MAX_CHARS] for line in lines)


def _bare(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines if line.strip()]


def _starts(lines: Sequence[str], want: Sequence[str]) -> Iterator[int]:
    """First lines of candidates: where most of FIND's lines stand, and where its longest lines have likenesses."""
    places: dict[str, list[int]] = {" ".join(line.split()): [] for line in want if line.strip()}
    votes: dict[int, int] = {}
    for at, line in enumerate(lines):
        if len(line) <= 4 * MAX_CHARS and (found := places.get(" ".join(line.split()))) is not None:
            found.append(at)
    for number, line in enumerate(want):
        bare = " ".join(line.split())
        for at in places.get(bare, ())[:MAX_PLACES]:
            votes[at - number] = votes.get(at - number, 0) + len(bare)
    chosen = sorted(votes, key=lambda start: -votes[start])[:MAX_CANDIDATES]
    longest = sorted(range(len(want)), key=lambda number: -len(want[number]))[:2]
    short = [line[:MAX_CHARS] for line in lines]
    for number in longest:
        alike = process.extract(
            want[number][:MAX_CHARS], short, scorer=fuzz.ratio, limit=MAX_CANDIDATES, score_cutoff=LEAST
        )
        chosen += [at - number for _, _, at in alike]
    yield from dict.fromkeys(max(start, 0) for start in chosen)


def _diff(there: Sequence[str], want: Sequence[str]) -> str:
    shown = [text[:MAX_CHARS] for text in there], [text[:MAX_CHARS] for text in want]
    body = list(difflib.unified_diff(*shown, "file", "FIND", lineterm="", n=1))
    more = [f"… {len(body) - MAX_DIFF} more lines"] if len(body) > MAX_DIFF else []
    return "\n".join([*body[:MAX_DIFF], *more])
