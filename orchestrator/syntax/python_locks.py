"""Lock files and constraints of Python's tools: they name nothing new, but may say where a package comes from."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from posixpath import basename

from orchestrator.syntax.manifest_found import Found
from orchestrator.syntax.manifest_python import read_requirements
from orchestrator.syntax.python_index import host_of, is_address, is_usual, leaves

_TOML = frozenset({"uv.lock", "poetry.lock", "pdm.lock"})
_PYLOCK = re.compile(r"^pylock(\..+)?\.toml$")
_YAML = re.compile(r"^(pixi\.lock|(.+[.-])?conda-lock\.ya?ml)$")
_CONSTRAINTS = re.compile(r"^(.+[-_.])?constraints?([-_.].+)?\.(txt|in)$")
_ANY_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>,)\]}]+")
_VERSION_CONTROL = frozenset({"git", "hg", "svn", "bzr", "vcs"})
_PATHS = frozenset({"path", "directory", "editable", "virtual", "file"})


def is_lock(path: str) -> bool:
    """Whether this file fixes what is installed: a lock file, or constraints."""
    name = basename(path).lower()
    fixed = name in {*_TOML, "pipfile.lock"} or _PYLOCK.match(name) or _YAML.match(name) or _CONSTRAINTS.match(name)
    return bool(fixed)


def read_lock(path: str, text: str) -> Found:
    """Where the packages of a lock file come from, if not from the usual index. Raises ValueError for no such file."""
    found, name, text = Found(), basename(path).lower(), text.removeprefix("\ufeff")
    if _CONSTRAINTS.match(name):
        inner = read_requirements(text, path.rpartition("/")[0])
        unnamed = {entry for entry in inner.names if is_address(entry) or entry.startswith(("-", ".", "/"))}
        found.sources |= inner.sources | unnamed
        return found
    if _YAML.match(name):
        places = (address[0] for address in _ANY_ADDRESS.finditer(text))
        found.sources |= {host_of(place).lower() for place in places if not is_usual(place)}
        return found
    data = json.loads(text) if name == "pipfile.lock" else tomllib.loads(text)
    found.sources |= {source.lower() for source in _sources(data)}
    return found


def _sources(data: object) -> Iterator[str]:
    """Addresses outside the usual index, version control, and paths that leave the project, wherever they stand."""
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            held = [(str(name), inner) for name, inner in value.items()]
            local = value.get("type") == "directory"
            waiting += [("path" if local and name == "url" else name, inner) for name, inner in held]
        elif isinstance(value, list):
            waiting += [(key, inner) for inner in value]
        elif isinstance(value, str):
            if key in _VERSION_CONTROL:
                yield f"{key} {value}"
            elif is_address(value):
                yield from [] if is_usual(value) else [host_of(value)]
            elif key in _PATHS and leaves(value):
                yield f"{key} {value}"
