"""Which bracket is the one that was never closed? By kind, and by the way the text is indented."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from orchestrator.syntax.problem import Problem

CLOSER_OF = {"(": ")", "[": "]", "{": "}", "${": "}", "#{": "}", "@{": "}", "#[": "]"}
"""Opening token → its closing one."""
CLOSERS = frozenset(CLOSER_OF.values())

_FAR = 64
"""Brackets of one kind that are looked at outwards from a closing one."""


class Token(NamedTuple):
    """One bracket of a text that stands neither in a string nor in a comment."""

    text: str
    line: int
    """1-based."""
    column: int
    """1-based."""


class _Found(NamedTuple):
    unclosed: list[Token]
    strays: list[Token]


def unbalanced(tokens: Sequence[Token], text: str) -> list[Problem]:
    """The brackets among `tokens` that lack their other half, the first one first; [] when all have theirs.

    A bracket that closes one further out tells that those in between were left open; so does one that stands at the
    start of its line as far left as the line of one further out.
    """
    indents = [len(line) - len(line.lstrip()) for line in text.expandtabs(8).split("\n")]
    plain = _matched(tokens, indents, by_indent=False)
    if not plain.unclosed and not plain.strays:
        return []
    found = _matched(tokens, indents, by_indent=True)
    if not found.unclosed and not found.strays:
        found = plain
    problems = [_never_closed(found.unclosed)] if found.unclosed else []
    return problems + [
        Problem(line=token.line, column=token.column, message=f"`{token.text}` closes nothing")
        for token in found.strays[:1]
    ]


def _never_closed(unclosed: Sequence[Token]) -> Problem:
    """The innermost one at the end of a file that was cut; those around it are named."""
    first = unclosed[-1]
    others = [f"`{token.text}` of line {token.line}" for token in unclosed[:-1]][-4:]
    nor = f", nor {'is' if len(others) == 1 else 'are'} {' and '.join(others)}" if others else ""
    message = f"`{first.text}` opened in line {first.line} is never closed{nor}"
    fix = f"Close it with `{CLOSER_OF[first.text]}`, and write the whole file anew."
    return Problem(line=first.line, column=first.column, message=message, fix=fix)


def _matched(tokens: Sequence[Token], indents: Sequence[int], *, by_indent: bool) -> _Found:
    count = Counter(token.text in CLOSERS for token in tokens)
    spare = count[True] - count[False]
    open_: list[Token] = []
    found = _Found([], [])
    seen_line = 0
    for token in tokens:
        leads, seen_line = token.line != seen_line, token.line
        if token.text not in CLOSERS:
            open_.append(token)
            continue
        at = _partner(token, open_, indents if by_indent and leads else None, extra=spare > 0)
        if at < 0:
            found.strays.append(token)
            spare -= 1
        else:
            found.unclosed.extend(open_[at + 1 :])
            del open_[at:]
    # What a bracket further out closed over tells more than what the end of the file left open.
    return found if found.unclosed else _Found(open_, found.strays)


def _partner(token: Token, open_: Sequence[Token], indents: Sequence[int] | None, *, extra: bool) -> int:
    """Place in `open_` of what `token` closes; -1 when it closes nothing."""
    outwards = range(len(open_) - 1, -1, -1)
    same = list(islice((place for place in outwards if CLOSER_OF[open_[place].text] == token.text), _FAR))
    if not same:
        return -1
    if indents is None or open_[same[0]].line == token.line:
        return same[0]
    mine = indents[token.line - 1]
    theirs = indents[open_[same[0]].line - 1]
    if mine < theirs:
        return next((place for place in same if indents[open_[place].line - 1] == mine), same[0])
    return -1 if mine > theirs and extra else same[0]
