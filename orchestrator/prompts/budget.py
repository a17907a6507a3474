"""Text for prompts under a token budget: fences that hold, cuts that are told."""

import re
from collections.abc import Sequence

from orchestrator.domain.base import Value

CHARS_PER_TOKEN = 4
"""How many characters a token is taken for."""
BUDGET_TOKENS = 24_000
"""The budget of one renderer when its caller names none."""

_BACKTICKS = re.compile(r"`+")
_GAP = "\n\n"
NOTICE_CHARS = 1200
_MIN_CUT_CHARS = 200
"""A block is not cut down to less than this: a few lines mislead more than they tell."""


class ContextBlock(Value):
    """One piece of context. Heavier blocks are served first when the budget is short."""

    name: str
    """How the block is spoken of when it is left out."""
    text: str
    weight: int = 1


def tokens(text: str) -> int:
    """Estimated number of tokens of `text`, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def fence(text: str, language: str = "") -> str:
    """`text` verbatim in a code fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    bar = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{bar}{language}\n{text}{end}{bar}"


def cap(text: str, limit: int) -> str:
    """`text`, or its first `limit` characters followed by a note of how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} … ({len(text) - limit} more characters left out)"


def cap_middle(text: str, limit: int) -> str:
    """`text`, or its head and tail of `limit` characters together with a note between them."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    note = f"\n[… {len(text) - limit} characters left out …]\n"
    return text[:head] + note + (text[-tail:] if tail else "")


def _open_fence(text: str) -> str:
    """The bar of the fence that is open at the end of `text`, or ""."""
    bar = ""
    for line in text.split("\n"):
        run = _BACKTICKS.match(line)
        if run is None or len(run.group()) < 3:
            continue
        if not bar:
            bar = run.group()
        elif len(run.group()) >= len(bar) and line.rstrip() == run.group():
            bar = ""
    return bar


def _shortened(block: ContextBlock, room: int) -> str:
    """The block's first whole lines and a note of what is missing, at most `room` characters; "" when it is too few."""
    if room < _MIN_CUT_CHARS:
        return ""
    name, rest = f"[{cap(block.name, 60)}: cut here, ", f" of {len(block.text)} characters left out]"
    bar_room = len(_open_fence(block.text[:room])) + 1
    limit = room - len(name) - len(rest) - len(str(len(block.text))) - bar_room - 1
    end = block.text.rfind("\n", 0, max(limit, 0) + 1)
    kept = block.text[:end] if end > 0 else block.text[: max(limit, 0)]
    bar = _open_fence(kept)
    closed = f"{kept}\n{bar}" if bar else kept
    text = f"{closed}\n{name}{len(block.text) - len(kept)}{rest}"
    return text if kept and len(text) <= room else ""


def _left_out(names: Sequence[str], room: int) -> str:
    """One line that names what is missing, as much of it as `room` characters hold."""
    start = f"[Left out for lack of room ({len(names)})"
    best = f"{start}]"[:room]
    for shown in range(1, len(names) + 1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        line = f"{start}: {', '.join(names[:shown])}{more}]"
        if len(line) > room + len(" and 999999 more"):
            break
        best = line if len(line) <= room else best
    return best


class _Room:
    """What is placed so far, and how many characters are left."""

    def __init__(self, chars: int) -> None:
        self.chars = chars
        self.placed: dict[int, str] = {}

    def take(self, place: int, text: str) -> bool:
        """Place `text` when it fits."""
        if not text or len(text) + len(_GAP) > self.chars:
            return False
        self.placed[place] = text
        self.chars -= len(text) + len(_GAP)
        return True


def _fill(blocks: Sequence[ContextBlock], room: _Room) -> None:
    for weight in sorted({block.weight for block in blocks}, reverse=True):
        same = [(place, block) for place, block in enumerate(blocks) if block.weight == weight]
        rest = [(place, block) for place, block in same if not room.take(place, block.text)]
        for place, block in rest:
            room.take(place, _shortened(block, room.chars - len(_GAP)))


def fit(blocks: Sequence[ContextBlock], budget_tokens: int) -> str:
    """The blocks' texts in the given order, together at most `budget_tokens`; blank blocks vanish.

    When they do not fit: heavier blocks first, among equals whole ones before cut ones; a cut block ends at a line, its
    open fence closed, with a note; blocks that are missing are named in a last line.
    """
    spoken = [block for block in blocks if block.text.strip()]
    budget = max(budget_tokens, 0) * CHARS_PER_TOKEN
    whole = _GAP.join(block.text for block in spoken)
    if len(whole) <= budget:
        return whole
    notice_chars = min(budget // 4, NOTICE_CHARS)
    room = _Room(budget - notice_chars)
    _fill(spoken, room)
    parts = [room.placed[place] for place in sorted(room.placed)]
    missing = [block.name for place, block in enumerate(spoken) if place not in room.placed]
    if missing:
        parts.append(_left_out(missing, notice_chars))
    return _GAP.join(parts)
