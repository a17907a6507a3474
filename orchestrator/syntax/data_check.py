"""Do YAML, TOML, XML and INI texts parse? By the parsers that other programs read them with."""

import configparser
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from xml.parsers import expat

from orchestrator.syntax.problem import Problem, place

_TEMPLATE = re.compile(r"(^|[:\-\[,]\s)[ \t]*(\{\{|\{%|<%)|\{%.*%\}|<%.*%>", re.MULTILINE)
"""Where a template puts in what it makes: what the file will be, nobody can say here."""
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_SURROGATES = re.compile("[\ud800-\udfff]")


def yaml(text: str) -> list[Problem]:
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
    except ValueError:  # a number longer than Python makes one of: right, and nobody's concern here
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


FORMS: Mapping[str, Callable[[str], list[Problem]]] = {"YAML": yaml, "TOML": toml, "XML": xml, "INI": ini}
"""Language → what checks it."""
