"""Whether a reading can be right, by what stands behind it."""

import re
from dataclasses import replace
from operator import itemgetter

from orchestrator.answers.frames import Reading
from orchestrator.answers.guide import ended_inside
from orchestrator.answers.shape import ANYTHING, Shape

MIN_LEFT = 40
"""Characters behind an object that can be a part of it."""
_RECLOSING = frozenset(("missing_closer", "wrong_closer"))
_KIND = itemgetter(0)
_LEFT = re.compile(r"""["'}\]]\s*+,\s*+["'][\w.$-]{1,100}+["']\s*+:|["']\s*+[}\]]\s*+[}\]]""")
_PIECE = re.compile(r"""["'`]\s*+[,:}\]]""")


def reclosed(reading: Reading) -> bool:
    """Whether closers were put where none or others stood."""
    return not _RECLOSING.isdisjoint(map(_KIND, reading.changes))


def checked(reading: Reading, text: str) -> Reading:
    """A reading that ended inside a string is broken: its closer goes on, or it closed more than the text did."""
    if reading.outcome == "whole" and ended_inside(text, reading.end):
        why = "the closer before this stands in a string"
        return replace(reading, outcome="broken", value=None, why=why, changes=())
    if reading.outcome != "whole" or not reclosed(reading) or len(text) - reading.end < MIN_LEFT:
        return reading
    tail = text[max(reading.end, len(text) - 400) :].rstrip().rstrip("`~").rstrip()
    if not tail.endswith(("}", "]")) and _LEFT.search(text, reading.end, reading.end + 4000) is None:
        return reading
    why = "what is closed here goes on behind it"
    return replace(reading, outcome="broken", value=None, why=why, changes=())


def settled(reading: Reading, text: str, contract: Shape) -> Reading:
    """A guided reading that ran off the end of a text that does end with a closer lost its way: it is broken.

    Without a contract so is one behind which pieces of JSON are left: a string was ended too early.
    """
    if contract is ANYTHING and reading.outcome == "whole":
        left = _PIECE.search(text, reading.end, reading.end + 4000)
        why = "it cannot be decided where a string ends"
        return replace(reading, outcome="broken", value=None, why=why, changes=()) if left else reading
    if reading.outcome != "cut" or reading.end < len(text):
        return reading
    tail = text[max(0, len(text) - 400) :].rstrip().rstrip("`~").rstrip()
    if not tail.endswith(("}", "]")):
        return reading
    why = "it cannot be decided where a string ends"
    return replace(reading, end=reading.start + 1, outcome="broken", value=None, why=why, changes=())
