"""What manifests declare, package.json and Python's, and where lock files take packages from.

It stands on this floor because the checks and the contract both read manifests."""

import configparser
import re
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname

from orchestrator.code.data import without_comments
from orchestrator.code.manifests import python
from orchestrator.code.manifests.declared import USUAL, Found, host_of, leaves
from orchestrator.code.manifests.npm import read_package_json
from orchestrator.code.parsers import parse_json, parse_toml, parse_yaml
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.paths import is_manifest
from orchestrator.core.value import Value


class Manifest(Value):
    """What one manifest declares. Names are normalised: PEP 503 for Python, lower case for npm."""

    path: str
    dependencies: frozenset[str] = frozenset()
    """What has no name (a bare URL, another index) stands as its own text, so that nothing is added unseen."""
    pinned: frozenset[str] = frozenset()
    """Packages named only to be bundled, or to be replaced wherever they occur (overrides, resolutions)."""
    linked: frozenset[str] = frozenset()
    """Those dependencies that are folders of the project itself: nothing is fetched for them."""
    sources: frozenset[str] = frozenset()
    """`name @ address` where a package comes from elsewhere than the index, `index address` for another index."""
    local: frozenset[str] = frozenset()
    """The project's own name, under which it may be imported."""
    scripts: frozenset[str] = frozenset()
    """Names of scripts and entry points."""
    commands: tuple[str, ...] = ()
    """The command lines of package.json's scripts."""
    problems: tuple[Finding, ...] = ()
    """Major findings for what could not be read; the other fields then hold what could."""


def read_manifest(path: str, text: str, *, code: str = "manifest.unreadable") -> Manifest:
    """Read the manifest at `path`; never raises. A path that is no manifest gives an empty one."""
    if not is_manifest(path):
        return Manifest(path=path)
    try:
        found = _read(path, text.removeprefix("\ufeff"))
    except (ValueError, RecursionError, configparser.Error) as error:
        message = f"the manifest cannot be read: {error}"
        problem = major(code, message, where=Where(file=path), fix="Write the whole manifest again, well-formed.")
        return Manifest(path=path, problems=(problem,))
    problems = tuple(
        major(code, text, where=Where(file=path), fix="Write it in the manifest's form.") for text in found.bad
    )
    return Manifest(
        path=path,
        dependencies=frozenset(found.names),
        pinned=frozenset(found.pinned),
        linked=frozenset(found.linked),
        sources=frozenset(found.sources),
        local=frozenset(found.local),
        scripts=frozenset(found.scripts),
        commands=tuple(found.scripts.values()),
        problems=problems,
    )


def _read(path: str, text: str) -> Found:
    name, folder = basename(path).lower(), dirname(path)
    if name == "package.json":
        return read_package_json(text, folder)
    if name == "setup.py":
        return python.read_setup_py(text)
    if name.endswith(".toml") or name == "pipfile":
        return python.read_toml(name, text, folder)
    if name == "setup.cfg":
        return python.read_setup_cfg(text, folder)
    read = python.read_environment if name.endswith((".yml", ".yaml")) else python.read_requirements
    return read(text, folder)


# ---- lock files: they name nothing new, but may say that a package comes from elsewhere

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
        data: object = parse_json(without_comments(text))
    else:
        data = parse_toml(text) if _TOML.match(name) else parse_yaml(text)
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
