"""Lock files of Python and Node: they name nothing new, but may say that a package comes from elsewhere."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from posixpath import basename

from orchestrator.code.data import load_yaml, without_comments
from orchestrator.code.manifests.declared import USUAL, host_of, leaves

_JSON = frozenset({"package-lock.json", "npm-shrinkwrap.json", "bun.lock", "deno.lock", "pipfile.lock"})
_TOML = re.compile(r"^((uv|poetry|pdm)\.lock|pylock(\..+)?\.toml)$")
_YAML = re.compile(r"^(pnpm-lock\.yaml|pixi\.lock|(.+[.-])?conda-lock\.ya?ml)$")
_LINES = re.compile(r"^(yarn\.lock|(.+[-_.])?constraints?([-_.].+)?\.(txt|in))$")
_USUAL = USUAL | {"registry.npmjs.org", "registry.yarnpkg.com"}
# `name@address` stands in yarn's and bun's files, an escaped address in yarn's archives.
_ADDRESS = re.compile(
    r"(?:[A-Za-z][\w+.-]*:(?://|%2F%2F)|https?%3A|git@[\w.-]+:|(?:github|gitlab|bitbucket|gist):)[^\s'\"<>,)\]}]*"
)
_TOLD = frozenset({"funding", "deprecated", "homepage", "bugs", "license", "author", "description", "engines"})
"""Keys under which an address is for people."""
_PATHS = frozenset({"path", "directory", "editable", "virtual", "file", "resolved"})


def is_lock(path: str) -> bool:
    """Returns whether this file fixes what is installed: a lock file, or constraints."""
    name = basename(path).lower()
    return name in _JSON or any(kind.match(name) for kind in (_TOML, _YAML, _LINES))


def read_lock(path: str, text: str) -> frozenset[str]:
    """Returns hosts other than the usual indexes, and paths out of the project, that packages are taken from.

    Raises ValueError for a text that is no such file.
    """
    name, text = basename(path).lower(), text.removeprefix("\ufeff")
    if _LINES.match(name):
        return frozenset(_hosts(re.sub(r"(?m)^\s*#.*$|\s#.*$", "", text)))
    if name in _JSON:
        data: object = json.loads(without_comments(text))
    else:
        data = tomllib.loads(text) if _TOML.match(name) else load_yaml(text)
    return frozenset(_sources(data))


def _sources(data: object) -> Iterator[str]:
    waiting: list[tuple[str, object]] = [("", data)]
    seen = set[int]()  # YAML may hold one thing in several places, or in itself
    while waiting:
        key, value = waiting.pop()
        if key in _TOLD or (isinstance(value, Mapping | list) and id(value) in seen):
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            # poetry writes the path of a folder under `url`
            local = value.get("type") == "directory"
            waiting += [("path" if local and name == "url" else str(name), inner) for name, inner in value.items()]
            yield from (host for name in value for host in _hosts(str(name)))
        elif isinstance(value, list):
            waiting += [(key, inner) for inner in value]
        elif isinstance(value, str):
            yield from _hosts(value)
            if key in _PATHS and "://" not in value and leaves(value):
                yield f"{key} {value}".lower()


def _hosts(text: str) -> Iterator[str]:
    for found in _ADDRESS.finditer(text):
        host = host_of(found[0]).lower()
        if host.partition("://")[2] not in _USUAL or not host.startswith("http"):
            yield host
