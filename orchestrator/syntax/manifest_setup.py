"""setup.cfg and setup.py: what they ask for, as far as it stands there."""

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

from orchestrator.syntax.manifest_found import Found
from orchestrator.syntax.manifest_pyproject import BUILD_BACKENDS
from orchestrator.syntax.python_index import is_usual
from orchestrator.syntax.python_source import parse

_LISTS = ("install_requires", "tests_require", "setup_requires")
_DEEPEST = 20
_MARKER = re.compile(r";[^;]*(==|!=|<|>|\bin\b)[^;]*['\"]")


def read_setup_cfg(text: str, folder: str) -> Found:
    """What setup.cfg declares, with `_` or `-` in its keys. Raises configparser.Error when it is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    found = Found()
    options = _section(parser, "options")
    for key in ("install_requires", "tests_require"):
        _entries(options.get(key, ""), folder, found)
    build = Found()
    _entries(options.get("setup_requires", ""), folder, build)
    found.names |= build.names - BUILD_BACKENDS
    found.sources |= build.sources
    found.bad += build.bad
    for value in _section(parser, "options.extras_require").values():
        _entries(value, folder, found)
    for line in options.get("dependency_links", "").split():
        found.sources.add(f"index {line}".lower())
    for name in ("easy_install", "develop", "install"):
        for key, value in _section(parser, name).items():
            if key in {"index_url", "find_links"}:
                found.sources |= {f"index {where}".lower() for where in value.split() if not is_usual(where)}
    return found


def _section(parser: configparser.ConfigParser, name: str) -> Mapping[str, str]:
    held = parser[name] if parser.has_section(name) else {}
    return {key.lower().replace("-", "_"): value or "" for key, value in held.items()}


def _entries(value: str, folder: str, found: Found) -> None:
    for line in _lines(value):
        if line.startswith("file:"):
            for file in line.removeprefix("file:").split(","):
                found.included(file.strip(), folder, "file:")
        else:
            found.requirement(line)


def _lines(entry: str) -> Iterator[str]:
    """A list that dangles, or one line whose `;` part requirements where no marker follows it."""
    for line in (line.split(" #")[0].strip() for line in entry.splitlines()):
        if ";" in line and not _MARKER.search(line):
            yield from (part.strip() for part in line.split(";") if part.strip())
        elif line and not line.startswith("#"):
            yield line


def read_setup_py(text: str) -> Found:
    """Returns what setup.py hands to `setup(…)` as lists and dictionaries, in place or under a name of the file.

    What is computed is not known, and is left out. Raises ValueError.
    """
    tree = parse(text)
    if tree is None:
        raise ValueError("it does not compile")
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = Found()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for name, value in ((word.arg or "", word.value) for call in calls for word in call.keywords):
        if name == "dependency_links":
            found.sources |= {f"index {entry}".lower() for entry in _literals(value, named)}
        elif name in _LISTS:
            inner = Found()
            inner.requirements(_literals(value, named), name)
            found.names |= inner.names - (BUILD_BACKENDS if name == "setup_requires" else frozenset())
            found.sources |= inner.sources
            found.bad += inner.bad
        elif name == "extras_require":
            held = named.get(value.id, value) if isinstance(value, ast.Name) else value
            for inner_value in held.values if isinstance(held, ast.Dict) else ():
                found.requirements(_literals(inner_value, named), name)
    return found


def _literals(node: ast.expr, named: Mapping[str, ast.expr], depth: int = 0) -> list[str]:
    """The texts of a list, which may be put together of others; a text of several lines is one of them each."""
    if depth > _DEEPEST:
        return []
    if (text := _text(node, named)) is not None:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(node, ast.Name) and node.id in named:
        return _literals(named[node.id], named, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literals(node.left, named, depth + 1) + _literals(node.right, named, depth + 1)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [text for part in node.elts for text in _literals(part, named, depth + 1)]
    if isinstance(node, ast.Starred):
        return _literals(node.value, named, depth + 1)
    return []


def _text(node: ast.expr, named: Mapping[str, ast.expr], depth: int = 0) -> str | None:
    """One text, which may be put together of others (`"uvloop; " + MARKER`)."""
    if isinstance(node, ast.Name) and node.id in named and depth < _DEEPEST:
        return _text(named[node.id], named, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < _DEEPEST:
        left, right = _text(node.left, named, depth + 1), _text(node.right, named, depth + 1)
        return None if left is None or right is None else left + right
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
