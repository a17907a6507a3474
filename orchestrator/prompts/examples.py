"""What a prompt shows as an example: texts that an answer must not give back as its own."""

import json
import re
from collections.abc import Iterator

from orchestrator.domain.words import squeezed

MIN_CHARS = 12
"""Characters, blanks left out, below which a text may well be somebody's own."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^[ \t]*(?P<sign>`{3,}|~{3,})", re.MULTILINE)


def examples(text: str) -> frozenset[str]:
    """Every fenced block, quoted string and code span of a prompt's text, without blanks; short ones are left out.

    Of a fenced block inside a longer fence both count; what a string escapes is read as what it stands for.
    """
    found = {squeezed(one) for one in (*_fenced(text), *_strings(text), *(span[1] for span in _SPAN.finditer(text)))}
    return frozenset(one for one in found if len(one) >= MIN_CHARS and "{{" not in one)


def _fenced(text: str) -> Iterator[str]:
    """The inside of each fence, up to the next line that begins with one at least as long."""
    fences = list(_FENCE.finditer(text))
    for place, opening in enumerate(fences):
        sign = opening["sign"]
        closing = next((one for one in fences[place + 1 :] if one["sign"].startswith(sign)), None)
        if closing is not None and (start := text.find("\n", opening.end())) >= 0:
            yield text[start : closing.start()]


def _strings(text: str) -> Iterator[str]:
    for match in _STRING.finditer(text):
        try:
            yield str(json.loads(match[0]))
        except ValueError:
            yield match[0][1:-1]
