"""Answers that are not whole: cut off, or with a gap that the model tells of."""

from benchmarks.answers.draft import Draft, Unfit, Wanted, fault
from benchmarks.answers.writer import Written

END = "core after fence"


def _kept(draft: Draft, written: Written, cut: int) -> int:
    count = 0
    while written.ends.get((draft.kind.items, count), cut + 1) <= cut:
        count += 1
    return count


def _cut(draft: Draft, lowest: float, highest: float) -> None:
    draft.wanted = Wanted.PART

    def cut(draft: Draft, written: Written) -> str:
        length = len(written.text)
        at = max(1, min(length - 1, int(length * draft.rng.uniform(lowest, highest))))
        draft.kept = _kept(draft, written, at)
        return written.text[:at]

    draft.core = cut


@fault("cut off anywhere", "unfinished", END)
def cut_anywhere(draft: Draft) -> None:
    _cut(draft, 0.02, 1.0)


@fault("cut off late", "unfinished", END)
def cut_late(draft: Draft) -> None:
    if len(draft.full[draft.kind.items]) < 2:
        raise Unfit
    _cut(draft, 0.7, 1.0)


@fault("cut off in a fence", "unfinished", END)
def cut_in_fence(draft: Draft) -> None:
    draft.fence = "```json"
    _cut(draft, 0.3, 1.0)


@fault("cut inside an escape", "unfinished", END)
def cut_in_escape(draft: Draft) -> None:
    draft.wanted = Wanted.PART

    def cut(draft: Draft, written: Written) -> str:
        places = [at for at, char in enumerate(written.text) if char == "\\"]
        at = draft.rng.choice(places) + 1 if places else len(written.text) // 2
        draft.kept = _kept(draft, written, at)
        return written.text[:at] + draft.rng.choice(("", "u", "u00"))

    draft.core = cut


@fault("last closers missing", "unfinished", END)
def last_closers(draft: Draft) -> None:
    """Nothing but brackets is missing, and who knows what else."""
    draft.wanted = Wanted.PART

    def strip(draft: Draft, written: Written) -> str:
        text = written.text
        for _ in range(draft.rng.randint(1, 3)):
            if text[-1:] in ("}", "]"):
                text = text[:-1].rstrip()
        draft.kept = _kept(draft, written, len(text))
        return text

    draft.core = strip


@fault("an ellipsis for the rest", "unfinished", "commas core tails said")
def ellipsis(draft: Draft) -> None:
    items = draft.full[draft.kind.items]
    if len(items) < 2:
        raise Unfit
    kept = draft.rng.randint(1, len(items) - 1)
    draft.said = draft.full | {draft.kind.items: items[:kept]}
    draft.wanted, draft.kept = Wanted.PART, kept
    gap = draft.rng.choice(("...", "…", "// ... the remaining ones", "/* and so on, as above */", "... (rest omitted)"))
    last = (draft.kind.items, kept - 1)
    draft.style.commas[last] = ","
    draft.style.tails[last] = ("\n    " if draft.style.indent or gap.startswith("//") else " ") + gap
    if gap.startswith("//"):
        draft.style.tails[last] += "\n"
    draft.after.append("\n")


@fault("fewer than announced", "unfinished", "said core")
def fewer(draft: Draft) -> None:
    """Valid JSON, and `task_count` says that tasks are missing."""
    items = draft.full[draft.kind.items]
    if "task_count" not in draft.full or len(items) < 2:
        raise Unfit
    draft.kept = draft.rng.randint(1, len(items) - 1)
    draft.said = draft.full | {draft.kind.items: items[: draft.kept]}
    draft.wanted = Wanted.PART
    draft.after.append("\n")
