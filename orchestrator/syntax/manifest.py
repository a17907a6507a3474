"""What a manifest declares: dependencies and scripts of package.json, requirements files, pyproject.toml, setup.cfg.

It stands on this floor because the checks and the contract both read manifests.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.domain.base import Value
from orchestrator.domain.file_kinds import is_manifest
from orchestrator.domain.findings import Finding, Where, major

NPM_GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
BUILD_BACKENDS = frozenset(
    {"setuptools", "wheel", "hatchling", "hatch-vcs", "setuptools-scm", "flit-core", "poetry-core", "pdm-backend"}
    | {"uv-build", "pip"}
)
"""What `[build-system] requires` may name without being a dependency of the project."""
_HARMLESS_OPTIONS = ("-c", "--constraint", "--hash", "--no-binary", "--only-binary", "--prefer-binary", "--pre")
_INCLUDE = re.compile(r"^(-r|--requirement)[ =]?\s*(?P<file>\S+)$")
_EDITABLE = re.compile(r"^(-e|--editable)[ =]?\s*(?P<what>.+)$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = re.compile(r"^(\.$|\./|\.\[)")


class Manifest(Value):
    """What one manifest declares. Names are normalised: PEP 503 for Python, lower case for npm."""

    path: str
    dependencies: frozenset[str] = frozenset()
    """What has no name (a bare URL, another index) stands as its own text, so that nothing is added unseen."""
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
    name = basename(path).lower()
    text = text.removeprefix("\ufeff")
    reader = {"package.json": _package_json, "pyproject.toml": _pyproject, "setup.cfg": _setup_cfg}.get(name)
    try:
        found = reader(text) if reader else _requirements(text, dirname(path))
    except (ValueError, RecursionError, configparser.Error) as error:
        message = f"the manifest cannot be read: {error}"
        problem = major(code, message, where=Where(file=path), fix="Write the whole manifest anew, well-formed.")
        return Manifest(path=path, problems=(problem,))
    problems = tuple(
        major(code, text, where=Where(file=path), fix="Write it in the manifest's form.") for text in found.bad
    )
    return Manifest(
        path=path,
        dependencies=frozenset(found.names),
        scripts=frozenset(found.scripts),
        commands=tuple(found.scripts.values()),
        problems=problems,
    )


class _Found:
    """What a reader gathers."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.scripts: dict[str, str] = {}
        self.bad: list[str] = []

    def requirement(self, entry: object) -> None:
        """One PEP 508 requirement, or the note that it is none."""
        if not isinstance(entry, str):
            self.bad.append(f"a requirement is no text: {entry!r}"[:200])
            return
        try:
            self.names.add(canonicalize_name(Requirement(entry).name))
        except InvalidRequirement:
            self.bad.append(f"`{entry[:120]}` is no requirement")

    def requirements(self, entries: object, what: str) -> None:
        """A list of requirements; absent is fine."""
        if entries is None:
            return
        if not isinstance(entries, list):
            self.bad.append(f"{what} is no list")
            return
        for entry in entries:
            if not isinstance(entry, Mapping):  # {include-group = …} names a list of the same file
                self.requirement(entry)


def _table(value: object, key: str) -> Mapping[str, object]:
    inner = value.get(key, {}) if isinstance(value, Mapping) else {}
    if not isinstance(inner, Mapping):
        raise ValueError(f"`{key}` is no table")
    return inner


def _package_json(text: str) -> _Found:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    found = _Found()
    for group in NPM_GROUPS:
        found.names.update(str(name).strip().lower() for name in _table(data, group))
    found.scripts = {name: str(command) for name, command in _table(data, "scripts").items()}
    return found


def _pyproject(text: str) -> _Found:
    data = tomllib.loads(text)
    found = _Found()
    project, tool = _table(data, "project"), _table(data, "tool")
    found.requirements(project.get("dependencies"), "project.dependencies")
    for table in (_table(project, "optional-dependencies"), _table(data, "dependency-groups")):
        for group, entries in table.items():
            found.requirements(entries, group)
    found.requirements(_table(tool, "uv").get("dev-dependencies"), "tool.uv.dev-dependencies")
    for group, entries in _table(_table(tool, "pdm"), "dev-dependencies").items():
        found.requirements(entries, group)
    _poetry(_table(tool, "poetry"), found)
    backend = _Found()
    backend.requirements(_table(data, "build-system").get("requires"), "build-system.requires")
    found.names |= backend.names - BUILD_BACKENDS
    found.bad += backend.bad
    for scripts in (
        _table(project, "scripts"),
        _table(project, "gui-scripts"),
        _table(_table(tool, "poetry"), "scripts"),
    ):
        found.scripts.update({name: "" for name in scripts})
    return found


def _poetry(poetry: Mapping[str, object], found: _Found) -> None:
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(group, "dependencies") for group in _table(poetry, "group").values()]
    for table in tables:
        found.names.update(canonicalize_name(name) for name in table if name.lower() != "python")


def _setup_cfg(text: str) -> _Found:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    found = _Found()
    entries = [parser.get("options", key, fallback="") for key in ("install_requires", "tests_require")]
    if parser.has_section("options.extras_require"):
        entries += [value for _, value in parser.items("options.extras_require")]
    for line in (line.split("#")[0].strip() for entry in entries for line in entry.splitlines()):
        if line and not line.startswith("file:"):
            found.requirement(line)
    return found


def _requirements(text: str, folder: str) -> _Found:
    found = _Found()
    for line in _logical_lines(text.splitlines()):
        _requirement_line(line, folder, found)
    return found


def _logical_lines(lines: Iterable[str]) -> Iterator[str]:
    held = ""
    for line in lines:
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + " "
            continue
        yield re.sub(r"(^|\s)#.*$", "", held + line).strip()
        held = ""
    yield held.strip()


def _requirement_line(line: str, folder: str, found: _Found) -> None:
    include = _INCLUDE.match(line)
    if include and "://" not in include["file"] and is_manifest(normpath(join(folder, include["file"]))):
        return  # the included file is a manifest of its own; one that is none would hide what it asks for
    if not line or line.startswith(_HARMLESS_OPTIONS) or line == "--require-hashes":
        return
    editable = _EDITABLE.match(line)
    what = editable["what"].strip() if editable else re.split(r"\s--", line)[0].strip()
    if line.startswith("-") and not editable:
        found.names.add(line.lower())
    elif egg := _EGG.search(what):
        found.names.add(canonicalize_name(egg[1]))
    elif not _LOCAL.match(what):
        if "://" in what.split(" @ ")[0] or not _NAME.match(what):
            found.names.add(what.lower())
        else:
            found.requirement(what)
