"""TOML, JSON, YAML and XML that others wrote: the one way in which their texts are parsed, with bounds.

The parsers themselves know none: 40 kB of TOML (`a.a.a…`) took 4.6 GB, and 1 kB of YAML that merges maps has no end.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

import yaml

MAX_CHARS = 16_000_000
"""Characters of one text: lock files of large projects have some millions."""
_MAX_DEPTH = 40
_MAX_ELEMENTS_DEEP = 1_000
"""Elements of XML within each other: drawings and pages nest deeper than data."""
_MAX_PARTS = 100_000
"""Parts of dotted keys in one TOML text: each of them is a table."""
_MAX_EVENTS = 500_000
"""Events of one YAML text: for each a node is made, of some hundred bytes."""
_MAX_MERGED = 10_000
"""Pairs that `<<` may bring into one map."""
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
# As TOML's own reader cuts a text: a dot in a string or a comment is none of a key. Possessive, so that it is linear.
_DOTTED = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|'''
    r"""'''(?:[^']|'(?!''))*+'{3,5}|#[^\n]*+|"""
    rf"(?P<key>{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+)",
    re.DOTALL,
)
_EACH = re.compile(_PART)
_OPENS, _CLOSES = (yaml.MappingStartEvent, yaml.SequenceStartEvent), (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class TooLarge(ValueError):
    """The text may be right, and is not parsed: it is too long, nested too deeply, or grows too large."""


def parse_toml(text: str) -> dict[str, Any]:
    """Returns the document. Raises ValueError: tomllib.TOMLDecodeError for what is no TOML, TooLarge past a bound."""
    _expect_size(text)
    parts = 0
    for found in _DOTTED.finditer(text):
        if not found["key"] or "." not in found["key"]:
            continue
        depth = len(_EACH.findall(found["key"]))
        if depth > _MAX_DEPTH:
            raise TooLarge(f"it has a key of more than {_MAX_DEPTH} parts")
        parts += depth - 1
        if parts > _MAX_PARTS:
            raise TooLarge(f"its keys have more than {_MAX_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooLarge("it is nested too deeply") from None


def parse_json(text: str, **hooks: Any) -> Any:
    """Returns the value; `hooks` are json's own. Raises ValueError: json.JSONDecodeError, or TooLarge past a bound."""
    _expect_size(text)
    try:
        return json.loads(text, **hooks)
    except RecursionError:
        raise TooLarge("it is nested too deeply") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # plain data only
    """A PyYAML that was built without libyaml has only the slow reader."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merges that merge merges double with each line."""
        super().flatten_mapping(node)
        if len(node.value) > _MAX_MERGED:
            raise TooLarge("it merges too many maps")


def yaml_events(text: str) -> Iterator[yaml.Event]:
    """Yields what PyYAML's parser sees; nothing is made of it. Raises yaml.YAMLError, or TooLarge past a bound."""
    _expect_size(text)
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        depth += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
        if depth > _MAX_DEPTH or number > _MAX_EVENTS:
            raise TooLarge("it is nested too deeply" if depth > _MAX_DEPTH else "it has too many values")
        yield event


def parse_yaml(text: str) -> Any:
    """Returns the one document as plain data. Raises ValueError for what is no YAML, TooLarge past a bound."""
    try:
        for _ in yaml_events(text):
            pass
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {str(error)[:200]}") from error


def read_xml(text: str, reader: expat.XMLParserType) -> None:
    """Feeds the whole text to expat's `reader`, whose element handlers are taken. Raises expat.ExpatError for what is
    no XML, TooLarge past a bound."""
    _expect_size(text)
    depth = 0

    def start(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_ELEMENTS_DEEP:
            raise TooLarge("it is nested too deeply")

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    reader.StartElementHandler, reader.EndElementHandler = start, end
    reader.Parse(text.encode(), True)


def _expect_size(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise TooLarge(f"it has more than {MAX_CHARS} characters")
