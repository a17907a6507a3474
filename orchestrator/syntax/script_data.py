"""Pipelines and settings in YAML, JSON, TOML or INI → the shell texts in them."""

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

import yaml

from orchestrator.syntax.install_names import names_of
from orchestrator.syntax.install_sources import set_by_variable

_MAX_DEPTH = 100
_SPEAKS = frozenset(
    {"name", "description", "title", "displayname", "label", "message", "summary", "if", "author", "help"}
    | {"desc", "hint", "note", "comment", "$schema", "detail", "prompt", "markdowndescription"}
)
_RUNS = re.compile(
    r"run|script|command|cmd|entrypoint|exec|install|build|deploy|start|test|hook|args|shell|before|after|post|pre"
    r"|release|task|step|lint|setup|deps|init|scripts|check|update|attach",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"(?P<string>\"(?:\\.|[^\"\\])*\")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])", re.DOTALL)
_ERRORS = (ValueError, TypeError, RecursionError, AttributeError, yaml.YAMLError, configparser.Error)
_CARRIED = frozenset({"command", "entrypoint", "cmd", "args", "exec", "postcreatecommand", "updatecontentcommand"})
_TOX = re.compile(r"\{(?P<name>[\w./]+)(:(?P<default>[^{}]*))?\}")
_FACTOR = re.compile(r"^[\w,!{}.-]+:\s+")


class Texts(NamedTuple):
    """What a file runs (`scripts`), what may be a command as well (`doubtful`), and what it brings by name."""

    scripts: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def data_texts(path: str, text: str) -> Texts | None:
    """The commands in a file of settings, None when it cannot be read as what its name says. Never raises."""
    tree: object
    try:
        if path.endswith((".yml", ".yaml")):
            tree = _yaml_tree(text)
        elif path.endswith(".toml"):
            tree = tomllib.loads(text)
        elif path.endswith((".ini", ".cfg")):
            tree = _ini_tree(text)
        else:
            tree = json.loads(_COMMENT.sub(lambda match: match["string"] or "", text))
        return _texts(tree)
    except _ERRORS:
        return None


def _texts(tree: object) -> Texts:
    scripts: list[str] = []
    doubtful: list[str] = []
    names: list[str] = []
    for key, value in _walk(tree, "", 0):
        if isinstance(value, str):
            (scripts if _RUNS.search(key) else doubtful).append(value)
            names.append(set_by_variable(key, value))
        elif key in {"additional_dependencies", "deps"}:
            names += _dependencies(value)
        elif key in _CARRIED:
            scripts.append(shlex.join(value))
        else:
            (scripts if _RUNS.search(key) else doubtful).append("\n".join(value))
            doubtful.append(shlex.join(value))
    return Texts(tuple(scripts), tuple(doubtful), tuple(name for name in names if name))


def _dependencies(words: Sequence[str]) -> Iterator[str]:
    """Packages that pre-commit's `additional_dependencies` and tox's `deps` name."""
    for word in words:
        plain = _FACTOR.sub("", word.strip())
        tool = "npm" if re.match(r"@|[\w.-]+@[\w^~]", plain) and "://" not in plain else "pip"
        if plain and not plain.startswith(("-", "{", "#")):
            yield from names_of(tool, plain)
        elif re.match(r"-r|--requirement", plain):
            yield from (f"-r {plain[2:].strip()}" for _ in [0] if "://" in plain)


def _walk(value: object, key: str, depth: int) -> Iterator[tuple[str, str | Sequence[str]]]:
    """Every string, and every list of nothing but strings, with the key above it in lower case."""
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        if _strings(held := [value.get("command"), *_list(value.get("args"))]):
            yield "command", held
        told = ((str(name).lower(), inner) for name, inner in value.items())
        yield from (found for name, inner in told if name not in _SPEAKS for found in _walk(inner, name, depth + 1))
    elif isinstance(value, list):
        if texts := [str(item) for item in value if isinstance(item, str | int | float)]:
            yield key, texts
        yield from (found for item in value if not isinstance(item, str) for found in _walk(item, key, depth + 1))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _strings(values: Sequence[object]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(value, str) for value in values)


def _ini_tree(text: str) -> Mapping[str, object]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    plain = _TOX.sub(lambda match: "python" if match["name"] == "envpython" else match["default"] or "", text)
    parser.read_string(plain)
    return {
        section: {
            name: (value or "").splitlines() if name == "deps" else value or "" for name, value in parser.items(section)
        }
        for section in parser.sections()
    }


def _yaml_tree(text: str) -> list[object]:
    """All documents of a YAML text. An alias stands for what its anchor names, once: it brings nothing new."""
    root: list[object] = []
    open_ones: list[tuple[object, list[str]]] = [(root, [])]
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            held: object = {} if isinstance(event, yaml.MappingStartEvent) else []
            _put(open_ones[-1], held)
            open_ones.append((held, []))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            open_ones.pop()
        elif isinstance(event, yaml.ScalarEvent):
            _put(open_ones[-1], event.value)
        elif isinstance(event, yaml.AliasEvent):
            _put(open_ones[-1], "")
    return root


def _put(place: tuple[object, list[str]], value: object) -> None:
    """Add a value to a list, or to a mapping: there it is a key, or the value of the key before it."""
    held, keys = place
    if isinstance(held, list):
        held.append(value)
    elif isinstance(held, dict) and not keys:
        keys.append(value if isinstance(value, str) else "")
    elif isinstance(held, dict):
        name = keys.pop()
        held[f"{name} " if name in held else name] = value
