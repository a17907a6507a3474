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


def may_resume(text: str) -> bool:
    """Whether RESUMED can match somewhere: it is slow, and most texts have none of its words."""
    small = text.lower()
    return any(word in small for word in _WORDS)


def join(cut: str, continuation: str) -> str:
    """`cut` followed by `continuation`, with what the continuation repeats of the cut's end left out once."""
    return cut + continuation[overlap(cut, continuation) :]


def overlap(cut: str, continuation: str) -> int:
    """How many characters at the start of `continuation` repeat the end of `cut`: the most, up to MAX_OVERLAP.

    Linear: a prefix function over at most 2 x MAX_OVERLAP characters finds it.
    """
    head, tail = continuation[:MAX_OVERLAP], cut[-MAX_OVERLAP:]
    text = [*head, None, *tail]
    borders = [0] * len(text)
    for index in range(1, len(text)):
        length = borders[index - 1]
        while length and text[index] != text[length]:
            length = borders[length - 1]
        borders[index] = length + (text[index] == text[length])
    return borders[-1] if tail else 0
