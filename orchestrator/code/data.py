"""Are JSON, YAML, TOML, XML and INI texts well-formed? By the parsers that other programs read them with.

JSON also with comments and trailing commas, as JSON5 and line by line. And a YAML text as plain data.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any
from xml.parsers import expat

import yaml

from orchestrator.code.grammar import MOST, Problem, Token, parse, place, unbalanced

_TEMPLATE = re.compile(r"(^|[:\-\[,]\s)[ \t]*(\{\{|\{%|<%)|\{%.*%\}|<%.*%>", re.MULTILINE)
"""Placeholders of templates: the resulting file is unknown."""
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_SURROGATES = re.compile("[\ud800-\udfff]")


def check_yaml(text: str) -> list[Problem]:
    """By PyYAML's scanner and parser: documents, anchors and tags of any kind pass, for nothing is made of them.

    A text that does not parse and holds what a template puts in is not judged.
    """
    from yaml import MarkedYAMLError, SafeLoader, YAMLError
    from yaml import parse as events

    # A PyYAML that was built without libyaml has only the slow reader.
    reader = getattr(import_module("yaml"), "CSafeLoader", SafeLoader)
    try:
        for _ in events(_SURROGATES.sub("?", text), Loader=reader):
            pass
    except MarkedYAMLError as error:
        return [] if _TEMPLATE.search(text) else [_marked(error)]
    except (YAMLError, ValueError) as error:
        at = getattr(error, "position", None)
        line, column = place(text, at) if isinstance(at, int) else (None, None)
        reason = str(getattr(error, "reason", error)).splitlines()[0]
        return [Problem(line=line, column=column, message=reason, fix="Remove the character.")]
    except RecursionError:
        return [Problem(message="it is nested too deeply", fix="Write it with less nesting.")]
    return []


def _marked(error: object) -> Problem:
    mark, opened = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    message = str(getattr(error, "problem", None) or error)
    context = getattr(error, "context", None)
    if context and opened is not None:
        message = f"{context} that begins in line {opened.line + 1}, {message}"
    at = mark or opened
    place = (at.line + 1, at.column + 1) if at is not None else (None, None)
    return Problem(line=place[0], column=place[1], message=message)


def toml(text: str) -> list[Problem]:
    """By the standard library's own reader."""
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        message = _AT.sub("", str(error))
        if found is None or found[1] is None:
            line, column = place(text, len(text.rstrip()))
            return [Problem(line=line, column=column, message=f"{message}: the file ends here")]
        return [Problem(line=int(found[1]), column=int(found[2]), message=message)]
    except RecursionError:
        return [Problem(message="it is nested too deeply", fix="Write it with less nesting.")]
    except ValueError:  # a number with more digits than Python converts, which is valid
        return []
    return []


def xml(text: str) -> list[Problem]:
    """By expat, which follows no reference to the outside; a text with entities of its own is not judged."""
    if "<!ENTITY" in text or _TEMPLATE.search(text) or not text.strip():
        return []
    reader = expat.ParserCreate()
    try:
        reader.Parse(_SURROGATES.sub("?", text.removeprefix("\ufeff")).encode(), True)
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]:
            return []
        return [Problem(line=error.lineno, column=error.offset + 1, message=expat.ErrorString(error.code) or "")]
    return []


def ini(text: str) -> list[Problem]:
    """By the reader that the Python tools with such files use."""
    try:
        configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(text)
    except configparser.Error as error:
        places = [line for line, _ in getattr(error, "errors", ())]
        line = getattr(error, "lineno", None) or min(places, default=None)
        return [Problem(line=line, column=1 if line else None, message=error.message.splitlines()[0])]
    return []


FORMS: Mapping[str, Callable[[str], list[Problem]]] = {"YAML": check_yaml, "TOML": toml, "XML": xml, "INI": ini}
"""Language → what checks it."""


# Strings are taken whole, so that what looks like a comment in one is none. Behind a comma blanks and comments are
# taken possessively: a comment that holds a bracket closes nothing.
_PIECES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?>\s|//[^\n]*|/\*.*?\*/)*+[\]}])', re.DOTALL)


def without_comments(text: str) -> str:
    """Returns the same as plain JSON, what stays at its old place."""
    return _PIECES.sub(_blank, text.removeprefix("\ufeff"))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


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
    from orchestrator.code.grammar import problems

    root = parse("javascript", f"(\n{text}\n)")
    if not root.has_error:
        return []
    last = text.count("\n") + 1
    return _cut(text, _PIECES_5) or [
        one.model_copy(update={"line": min(max((one.line or 2) - 1, 1), last)})
        for one in problems(root, f"(\n{text}\n)")
    ]


def by_line(text: str) -> list[Problem]:
    """Returns the problems of JSON lines: each line that is not blank must be a strict JSON value."""
    found: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (said := strict(line)):
            found.append(said[0].model_copy(update={"line": number}))
        if len(found) == MOST:
            break
    return found


JSON_FORMS: Mapping[str, Callable[[str], list[Problem]]] = {
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
    """Returns the bracket that lacks its other half, by the tokens that `pieces` finds."""
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


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH = 40
_OPENS, _CLOSES = (yaml.MappingStartEvent, yaml.SequenceStartEvent), (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def load_yaml(text: str) -> object:
    """The one document of `text`. Raises ValueError for what is no YAML, or is nested too deeply to be built."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
            if depth > _DEPTH:
                raise ValueError("it is nested too deeply")
        return yaml.load(text, Loader=_LOADER)  # the safe loader: plain data only
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {str(error)[:200]}") from error
