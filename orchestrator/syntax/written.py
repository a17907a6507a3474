"""YAML or JSON as a person writes it → plain data, and back: no tag builds anything, nothing is lost without a word.

A number stays the text that it is where the number would be written otherwise (`1.10` is a version). Keys that come
twice, tags, anchors and aliases are problems and not guessed at.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from orchestrator.syntax.problem import Problem, shown

MAX_DEPTH = 40
WIDTH = 100
_LINES = frozenset("\x85\u2028\u2029")
"""Line breaks that a block would read as others."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_BROKEN = re.compile(r"-?\d{1,17}\.\d{1,17}")
_LEAD = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*)?\n)*")
"""Comments and blank lines before anything else."""


def read_written(text: str) -> tuple[Any, Problem | None]:
    """The value in `text`, or why there is none. JSON where it begins as such, else YAML; never raises."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    # The lines of the lead stay, so that the problems name those of the text.
    body = "\n" * text.count("\n", 0, start) + text[start:]
    value, wrong = _yaml(body)
    if text[start : start + 1] in {"{", "["}:
        from_json, wrong_json = _json(body)
        # `{a: 1}` is good YAML and no JSON; tabs and pairs of surrogates are good JSON and no YAML.
        return (value, None) if wrong_json is not None and wrong is None else (from_json, wrong_json)
    return value, wrong


def write_data(value: Any) -> str:
    """Plain data as YAML for a person to edit, long texts as blocks; `read_written` reads the same value from it."""
    return str(yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=WIDTH))


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _write_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    block = "|" if "\n" in text else ">" if len(text) > WIDTH else None
    style = block if _LINES.isdisjoint(text) else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _write_float(writer: _Writer, number: float) -> yaml.ScalarNode:
    return writer.represent_scalar("tag:yaml.org,2002:float", repr(number))


_Writer.add_representer(str, _write_text)
_Writer.add_representer(float, _write_float)


class _Refused(ValueError):
    """What is said of a text that is not taken."""

    def __init__(self, message: str, line: int | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(message=message, line=line, fix=fix)


def _json(text: str) -> tuple[Any, Problem | None]:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_float=_number, parse_int=_number, parse_constant=_nan)
        json.dumps(value, ensure_ascii=False).encode()
        _expect_flat(value, 0)
    except _Refused as error:
        return None, error.problem
    except json.JSONDecodeError as error:
        return None, Problem(line=error.lineno, column=error.colno, message=f"it is no JSON: {error.msg}")
    except UnicodeEncodeError:
        return None, Problem(message="it holds half of a surrogate pair (`\\ud8…`)")
    except RecursionError:
        return None, Problem(message="it is nested too deeply")
    return value, None


def _expect_flat(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Refused("it is nested too deeply")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _expect_flat(one, depth + 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Refused(f"the key `{shown(name)}` stands twice", fix="Write every key once.")
        found[name] = value
    return found


def _nan(word: str) -> Any:
    raise _Refused(f"`{word}` is no value")


def _number(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    if _BROKEN.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


def _yaml(text: str) -> tuple[Any, Problem | None]:
    try:
        return _document(yaml.parse(text, Loader=_LOADER)), None
    except _Refused as error:
        return None, error.problem
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        near = text.split("\n")[max(0, line - 2) : line]
        tab = "YAML is indented with spaces, never with tabs." if any("\t" in one for one in near) else ""
        return None, Problem(line=line, message=f"it is no YAML: {error.problem or 'it cannot be read'}", fix=tab)
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        place = error.position if isinstance(error, yaml.reader.ReaderError) else error.start
        before = text[:place] if isinstance(place, int) else ""
        return None, Problem(line=before.count("\n") + 1, message="it holds a character that YAML does not allow")


def _document(events: Iterator[Any]) -> Any:
    found, value = False, None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if found:
                raise _Refused("a second document begins", _line(event), "Leave lines of `---` out.")
            found, value = True, _node(next(events), events, 0)
    return value


def _node(event: Any, events: Iterator[Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _Refused("it is nested too deeply", _line(event))
    _expect_plain(event)
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, depth)
    if isinstance(event, yaml.SequenceStartEvent):
        return [_node(one, events, depth + 1) for one in _until(yaml.SequenceEndEvent, events)]
    if not event.implicit[0]:
        return event.value
    return _WORDS[event.value] if event.value in _WORDS else _number(event.value)


def _expect_plain(event: Any) -> None:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        fix = "Write it out; put quotes around a text that begins with `*` or `&`."
        raise _Refused("anchors and aliases (`&`, `*`) are not read", _line(event), fix)
    if event.tag is not None:
        fix = "Leave the tag out; put quotes around a text that begins with `!`."
        raise _Refused(f"tags (`{shown(event.tag)}`) are not read", _line(event), fix)


def _mapping(events: Iterator[Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in _until(yaml.MappingEndEvent, events):
        _expect_plain(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _Refused("a key is no text", _line(event))
        if event.value in found:
            raise _Refused(f"the key `{shown(event.value)}` stands twice", _line(event), "Write every key once.")
        found[event.value] = _node(next(events), events, depth + 1)
    return found


def _until(end: type[Any], events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
