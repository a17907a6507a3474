"""A cut answer and the model's continuation of it, as one text."""

import re

RESUMED = re.compile(
    r"\n[^{}\[\]\n\"]{0,60}[\[(]?\b(?:continu(?:ing|ed|ation)|continue (?:from|with|here|where)"
    r"|resum(?:ing|ed)|picking up|here is the rest|the rest of|cont['.)\]]|part \d)(?![\w(=.])"
    r"[^{}\n\"]{0,120}[^\w\s;][ \t*_]*\n",
    re.IGNORECASE,
)
"""A line in words that says that an answer which was broken off goes on: it is part of no string."""
_WORDS = ("continu", "cont'", "cont.", "cont)", "cont]", "resum", "picking up", "the rest", "part ")
MAX_OVERLAP = 2000
"""Characters of repeated text that are looked for at the seam; models repeat a line or two, not pages."""

_FIRST = 8
"""Characters of a repeated text that are looked for first."""


def may_resume(text: str) -> bool:
    """Whether RESUMED can match somewhere: it is slow, and most texts have none of its words."""
    small = text.lower()
    return any(word in small for word in _WORDS)


def join(cut: str, continuation: str) -> str:
    """`cut` followed by `continuation`, with what the continuation repeats of the cut's end left out once."""
    return cut + continuation[overlap(cut, continuation) :]


def overlap(cut: str, continuation: str) -> int:
    """How many characters at the start of `continuation` repeat the end of `cut`: the most, up to MAX_OVERLAP.

    Looked for where its first characters stand, at most MAX_OVERLAP places.
    """
    head, tail = continuation[:MAX_OVERLAP], cut[-MAX_OVERLAP:]
    first = head[:_FIRST]
    at = tail.find(first, max(0, len(tail) - len(head)))
    while at >= 0:
        if head.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(first, at + 1)
    shorter = range(min(len(first), len(tail)), 0, -1)
    return next((length for length in shorter if tail.endswith(head[:length])), 0)
