"""A second look at a command, by its bare text: an installer with its verb that a reader of shells may have missed."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from orchestrator.syntax.install_use import tool_of, use_of

_BLANK = re.compile(r"\$\{IFS\}|\$IFS\b")
_DRESS = re.compile(r"\\\r?\n|\$(?=['\"])|[\"'\\]")
_ENDS = re.compile(r"[\n;&|()<>`]")
_KNOWN = re.compile(r"^[@\w][\w./@-]*$")
_VERBS = frozenset({"install", "i", "add", "download", "require", "get"})
_MAX_WORDS, _MAX_CALLS, _NEAR = 200, 600, 12


def caught(text: str, read: Iterable[str], data: Iterable[str]) -> Iterator[str]:
    """Names behind installing verbs in the text without its quotes, of calls of which nothing is known yet.

    A call counts as known when one of its names was read, or stands in data behind such a verb. Only what is surely a
    name counts: variables, patterns and addresses are the reader's.
    """
    calls = list(_calls(text))
    known = set(read)
    if all(not known.isdisjoint(names) for names in calls):
        return
    known.update(name for names in _calls("\n".join(data)) for name in names)
    for names in calls:
        if known.isdisjoint(names):
            known.update(names)
            yield from names


def _calls(text: str) -> Iterator[list[str]]:
    left = _MAX_CALLS
    for part in _ENDS.split(_DRESS.sub("", _BLANK.sub(" ", text))):
        words = part.split()
        for place, word in enumerate(words):
            tool = tool_of(word.rsplit("/", 1)[-1])
            behind = words[place + 1 : place + _MAX_WORDS]
            if tool and left and not _VERBS.isdisjoint(behind[:_NEAR]):
                left -= 1
                names = list(takewhile(_KNOWN.match, use_of(tool, behind).names))
                if names:
                    yield names
