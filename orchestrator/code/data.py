"""Are JSON, YAML, TOML, XML and INI texts well-formed? By the parsers that other programs read them with.

JSON also with comments and trailing commas, and line by line.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from xml.parsers import expat

import yaml

from orchestrator.code.grammar import MOST, Problem, Token, problem_at, unbalanced
from orchestrator.code.parsers import TooLarge, parse_json, parse_toml, read_xml, yaml_events

_TEMPLATE = re.compile(r"(^|[:\-\[,]\s)[ \t]*(\{\{|\{%|<%)|\{%.*%\}|<%.*%>", re.MULTILINE)
"""Where a template puts in what it makes: what the file will be cannot be known here."""
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_SURROGATES = re.compile("[\ud800-\udfff]")


def check_yaml(text: str) -> list[Problem]:
    """By PyYAML's scanner and parser: documents, anchors and tags of any kind pass, for nothing is made of them.

    A text that does not parse and holds what a template puts in is not judged.
    """
    try:
        for _ in yaml_events(_SURROGATES.sub("?", text)):
            pass
    except TooLarge as error:
        return [_unread(error)]
    except yaml.MarkedYAMLError as error:
        return [] if _TEMPLATE.search(text) else [_marked(error)]
    except (yaml.YAMLError, ValueError) as error:
        at = getattr(error, "position", None)
        reason, fix = str(getattr(error, "reason", error)).splitlines()[0], "Remove the character."
        return [problem_at(text, at, reason, fix) if isinstance(at, int) else Problem(message=reason, fix=fix)]
    return []


def _unread(error: TooLarge) -> Problem:
    return Problem(message=str(error), fix="Write it with less nesting, or divide it.")


def _marked(error: object) -> Problem:
    mark, opened = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    message = str(getattr(error, "problem", None) or error)
    context = getattr(error, "context", None)
    if context and opened is not None:
        message = f"{context} that begins in line {opened.line + 1}, {message}"
    at = mark or opened
    place = (at.line + 1, at.column + 1) if at is not None else (None, None)
    return Problem(line=place[0], column=place[1], message=message)


def check_toml(text: str) -> list[Problem]:
    """By the standard library's own reader."""
    try:
        parse_toml(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        message = _AT.sub("", str(error))
        if found is None or found[1] is None:
            return [problem_at(text, len(text.rstrip()), f"{message}: the file ends here")]
        return [Problem(line=int(found[1]), column=int(found[2]), message=message)]
    except TooLarge as error:
        return [_unread(error)]
    except ValueError:  # a number longer than Python makes one of: right, and of no concern here
        return []
    return []


def check_xml(text: str) -> list[Problem]:
    """By expat, which follows no reference to the outside; a text with entities of its own is not judged."""
    if "<!ENTITY" in text or _TEMPLATE.search(text) or not text.strip():
        return []
    try:
        read_xml(_SURROGATES.sub("?", text.removeprefix("\ufeff")), expat.ParserCreate())
    except TooLarge as error:
        return [_unread(error)]
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]:
            return []
        return [Problem(line=error.lineno, column=error.offset + 1, message=expat.ErrorString(error.code) or "")]
    return []


def check_ini(text: str) -> list[Problem]:
    """By the reader that the Python tools with such files use."""
    try:
        configparser.RawConfigParser(strict=False, allow_no_value=True).read_string(text)
    except configparser.Error as error:
        places = [line for line, _ in getattr(error, "errors", ())]
        line = getattr(error, "lineno", None) or min(places, default=None)
        return [Problem(line=line, column=1 if line else None, message=error.message.splitlines()[0])]
    return []


# Strings are taken whole, so that what looks like a comment in one is none. Behind a comma blanks and comments are
# taken possessively: a comment that holds a bracket closes nothing.
_PIECES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?>\s|//[^\n]*|/\*.*?\*/)*+[\]}])', re.DOTALL)


def without_comments(text: str) -> str:
    """Returns the same as plain JSON, what stays at its old place."""
    return _PIECES.sub(_blank, text.removeprefix("\ufeff"))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]|\n')
_COMMENT = re.compile(r"\s*(//|/\*)")


def check_json(text: str) -> list[Problem]:
    """RFC 8259, as Python reads it, and without NaN and its like."""
    try:
        parse_json(text, parse_constant=_no_constant, parse_int=_digits)
    except json.JSONDecodeError as error:
        return _located(text, error)
    except TooLarge as error:
        return [_unread(error)]
    except ValueError as error:
        return [Problem(message=str(error), fix="Use null or a number.")]
    return []


def check_json_with_comments(text: str) -> list[Problem]:
    """Comments and commas before a closing bracket are allowed."""
    return check_json(without_comments(text)) if text.strip() else []


def check_json_lines(text: str) -> list[Problem]:
    """A strict JSON value in each line that is not blank."""
    found: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and (said := check_json(line)):
            found.append(said[0].model_copy(update={"line": number}))
        if len(found) == MOST:
            break
    return found


FORMS: Mapping[str, Callable[[str], list[Problem]]] = {
    "YAML": check_yaml,
    "TOML": check_toml,
    "XML": check_xml,
    "INI": check_ini,
    "JSON": check_json,
    "JSON with comments": check_json_with_comments,
    "JSON lines": check_json_lines,
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


def _cut(text: str) -> list[Problem]:
    """Returns the bracket that lacks its other half."""
    tokens: list[Token] = []
    line, start = 1, 0
    for match in _BRACKETS.finditer(text):
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
