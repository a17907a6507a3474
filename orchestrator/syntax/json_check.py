"""Does a JSON text parse: strictly, with comments, as JSON5, or line by line?"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

from orchestrator.syntax.brackets import Token, unbalanced
from orchestrator.syntax.grammar import parse
from orchestrator.syntax.json_comments import without_comments
from orchestrator.syntax.problem import MOST, Problem

_DEEP = Problem(message="it is nested too deeply", fix="Write it with less nesting.")
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]|\n')
_PIECES_5 = re.compile(r"'(?:[^'\\\n]|\\.)*'|//[^\n]*|" + _BRACKETS.pattern)
_COMMENT = re.compile(r"\s*(//|/\*)")


def strict(text: str) -> list[Problem]:
    """RFC 8259, as Python reads it, and without NaN and its like."""
    try:
        json.loads(text, parse_constant=_no_constant, parse_int=_digits)
    except json.JSONDecodeError as error:
        return _located(text, error)
    except ValueError as error:
        return [Problem(message=str(error), fix="Use null or a number.")]
    except RecursionError:
        return [_DEEP]
    return []


def with_comments(text: str) -> list[Problem]:
    """Comments and commas before a closing bracket are allowed."""
    return strict(without_comments(text)) if text.strip() else []


def json5(text: str) -> list[Problem]:
    """What JavaScript takes for one value."""
    from orchestrator.syntax.tree_problems import problems

    root = parse("javascript", f"(\n{text}\n)")
    if not root.has_error:
        return []
    last = text.count("\n") + 1
    return _cut(text, _PIECES_5) or [
        one.model_copy(update={"line": min(max((one.line or 2) - 1, 1), last)})
        for one in problems(root, f"(\n{text}\n)")
    ]


def by_line(text: str) -> list[Problem]:
    """A strict JSON value in each line that is not blank."""
    found: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (said := strict(line)):
            found.append(said[0].model_copy(update={"line": number}))
        if len(found) == MOST:
            break
    return found


FORMS: Mapping[str, Callable[[str], list[Problem]]] = {
    "JSON": partial(strict),
    "JSON with comments": with_comments,
    "JSON5": json5,
    "JSON lines": by_line,
}
"""Language → what checks it."""


def _located(text: str, error: json.JSONDecodeError) -> list[Problem]:
    message = error.msg
    if _COMMENT.match(text, error.pos):
        message, fix = "JSON has no comments", "Leave the comment out."
    elif error.pos >= len(text.rstrip()):
        return _cut(text) or [Problem(line=error.lineno, column=error.colno, message=f"{message}: the file ends here")]
    elif re.match(r"\s*[\]}]", text[error.pos :]) and text[: error.pos].rstrip().endswith(","):
        message, fix = "a comma stands before the closing bracket", "Leave the last comma out."
    else:
        fix = "Write the whole file as strict JSON."
    return [Problem(line=error.lineno, column=error.colno, message=message, fix=fix)]


def _cut(text: str, pieces: re.Pattern[str] = _BRACKETS) -> list[Problem]:
    """The bracket that lacks its other half, by the tokens that `pieces` finds."""
    tokens: list[Token] = []
    line, start = 1, 0
    for match in pieces.finditer(text):
        if match[0] == "\n":
            line, start = line + 1, match.end()
        elif match[0] in "[]{}":
            tokens.append(Token(match[0], line, match.start() - start + 1))
    return unbalanced(tokens, text)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def _digits(digits: str) -> int:
    """Stands in for int(), which refuses numbers of more than 4300 digits that JSON allows."""
    return len(digits)
