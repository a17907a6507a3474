"""Reads a project's requirements from pyproject.toml, setup.cfg and lock files (pure: text in, values out).

A lock file is a preference, not a rule: it may be older than the manifests beside it, which define what is tested.

Also classifies names of groups, extras, files and packages by their purpose (pure).
"""

import configparser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.code.manifests.python import logical_lines
from orchestrator.code.parsers import parse_json, parse_toml

_TESTS = frozenset({"test", "tests", "testing", "pytest", "unittest"})
_DEVELOPMENT = frozenset({"dev", "devel", "develop", "development"})
_OTHER = frozenset(
    {"doc", "docs", "documentation", "lint", "linter", "linters", "linting", "style", "format", "formatting", "fmt"}
    | {"type", "types", "typing", "typecheck", "typechecks", "typechecking", "mypy", "pyright", "stubs", "precommit"}
    | {"release", "publish", "packaging", "build", "wheels", "update", "bench", "benchmark", "benchmarks"}
    | {"conda"}
)
_TOOLS = frozenset(
    {"ruff", "black", "isort", "flake8", "pylint", "mypy", "pyright", "basedpyright", "ty", "pyrefly", "pytype"}
    | {"bandit", "codespell", "autopep8", "autoflake", "yapf", "pyupgrade", "pydocstyle", "docformatter", "pycodestyle"}
    | {"pyflakes", "pre-commit", "prek", "tox", "nox", "twine", "check-manifest", "towncrier", "commitizen"}
    | {"bump2version", "bumpversion", "bump-my-version", "furo", "myst-parser", "pdoc", "codecov", "coveralls"}
)
_TOOL_FAMILIES = re.compile(r"^(sphinx|mkdocs|types-|flake8-|pylint-|tox-)|-stubs$")
_RUNNER = re.compile(r"^(pytest|nose|testtools|unittest2)")


class Purpose(Enum):
    """The purpose of a group, an extra or a requirements file, judged by its name."""

    TESTS = "tests"
    DEVELOPMENT = "development"
    OTHER = "other"
    """Linters, stubs, documentation, releases: no test needs it."""
    UNKNOWN = "unknown"


def purpose(name: str) -> Purpose:
    """`tests-py39` → TESTS, `requirements/dev` → DEVELOPMENT, `test-docs` → OTHER."""
    words = set(_words(name))
    held = ((Purpose.OTHER, _OTHER), (Purpose.TESTS, _TESTS), (Purpose.DEVELOPMENT, _DEVELOPMENT))
    return next((found for found, known in held if words & known), Purpose.UNKNOWN)


def for_tests(names: Iterable[str]) -> list[str]:
    """Returns the names for tests: the plain ones (`test`, `tests`, `testing`), else those like `test-xyz`.

    Beside a plain name, another is for a special run: `tests-random` would change the order of a project's tests.
    """
    return _plain_ones(name for name in names if purpose(name) is Purpose.TESTS)


def for_development(names: Iterable[str]) -> list[str]:
    """Returns the names like `dev`; beside a plain one, urllib3's `dev-min-pyopenssl` is for a special run as well."""
    return _plain_ones(name for name in names if purpose(name) is Purpose.DEVELOPMENT)


def _plain_ones(names: Iterable[str]) -> list[str]:
    found = [*names]
    return [name for name in found if len(_words(name)) == 1] or found


def package_of(line: str) -> str:
    """Returns the normalised name that a requirement begins with, "" for an option or a path."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
    return canonicalize_name(found[0]) if found else ""


def is_tool(line: str) -> bool:
    """Returns whether a requirement is a linter, a formatter, stubs, or a tool for documentation or releases."""
    name = package_of(line)
    return name in _TOOLS or bool(_TOOL_FAMILIES.search(name))


def is_runner(line: str) -> bool:
    """Returns whether a requirement is a test runner."""
    return bool(_RUNNER.match(package_of(line)))


def _words(name: str) -> list[str]:
    """Returns the words of a name, without a trailing version (`tests39`) and words such as `requirements`."""
    words = (re.sub(r"\d+$", "", word) for word in re.split(r"[^a-z0-9]+", name.lower()))
    return [word for word in words if word not in {"", "requirements", "reqs", "txt"}]


@dataclass(frozen=True, kw_only=True)
class Include:
    """`{include-group = "name"}` in a group."""

    group: str


Entries = Sequence[str | Include]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The requirements of one manifest; names of extras and groups are normalised."""

    name: str = ""
    """The project's own, normalised, under which its lists may name its extras (`name[extra]`)."""
    dependencies: Sequence[str] = ()
    extras: Mapping[str, Entries] = field(default_factory=dict)
    groups: Mapping[str, Entries] = field(default_factory=dict)
    python: str = ""
    """Which versions of Python it is for (`requires-python`)."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where requirements come from that are in no registry, by name: a folder, an address, "" for the workspace."""

    def lines(self, *, extras: Iterable[str] = (), groups: Iterable[str] = (), tools: bool = True) -> list[str]:
        """Returns requirements of these extras and groups, with included ones; without `tools`, only those for tests.

        Raises LookupError when an included group is missing.
        """
        seen = set[tuple[str, str]]()
        waiting = [*(("group", canonicalize_name(one)) for one in groups), *(("extra", one) for one in extras)]
        found: list[str] = []
        while waiting:
            kind, name = waiting.pop(0)
            if (kind, name) in seen:
                continue
            seen.add((kind, name))
            for entry in self.groups[name] if kind == "group" else self.extras.get(canonicalize_name(name), ()):
                named = [("group", canonicalize_name(entry.group))] if isinstance(entry, Include) else self._own(entry)
                waiting += [one for one in named if tools or purpose(one[1]) is not Purpose.OTHER]
                if not named and isinstance(entry, str) and (tools or not is_tool(entry)):
                    found.append(entry)
        return found

    def _own(self, line: str) -> list[tuple[str, str]]:
        if not self.name or not canonicalize_name(line).startswith(self.name):
            return []
        try:
            parsed = Requirement(line)
        except InvalidRequirement:  # the caller reports invalid lines
            return []
        return [("extra", one) for one in parsed.extras] if canonicalize_name(parsed.name) == self.name else []


def read_pyproject(text: str) -> Declared:
    """Reads the standard's tables and those of poetry, pdm and uv. Raises ValueError, TypeError, AttributeError."""
    data = parse_toml(text)
    project: dict[str, Any] = data.get("project", {})
    tool = data.get("tool", {})
    poetry = tool.get("poetry", {})
    groups = _named(data.get("dependency-groups", {}))
    older = (_pdm(tool.get("pdm", {})), poetry_groups(poetry), {"dev": tool.get("uv", {}).get("dev-dependencies", [])})
    for held in older:
        for name, lines in _named(held).items():
            groups[name] = [*groups.get(name, ()), *lines]
    main = groups.pop("", ())
    return Declared(
        name=canonicalize_name(str(project.get("name") or poetry.get("name") or "")),
        dependencies=[*_texts(project.get("dependencies", [])), *(one for one in main if isinstance(one, str))],
        extras=_named(project.get("optional-dependencies", {})) | _named(poetry_extras(poetry)),
        groups=groups,
        python=str(project.get("requires-python") or _poetry_python(poetry)),
        places=_places(tool.get("uv", {}).get("sources", {})),
    )


def read_setup_cfg(text: str) -> Declared:
    """Reads the `options` sections. Raises configparser.Error."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    return Declared(
        name=canonicalize_name(parser.get("metadata", "name", fallback="")),
        dependencies=_cfg_lines(parser.get("options", "install_requires", fallback="")),
        extras={canonicalize_name(name): _cfg_lines(value) for name, value in extras.items()},
        python=parser.get("options", "python_requires", fallback=""),
    )


def _poetry_python(poetry: Mapping[str, Any]) -> str:
    """Returns Poetry's Python versions as a specifier; "" for alternatives (`^3.8 || ^4.0`), which allow any."""
    told = poetry.get("dependencies", {}).get("python", "")
    return specifier(told) if isinstance(told, str) and "|" not in told else ""


def _places(sources: Mapping[str, Any]) -> dict[str, str]:
    """Returns each name's source; the first of several that differ by marker. An index is not a source."""
    found: dict[str, str] = {}
    for name, value in sources.items():
        source = value[0] if isinstance(value, list) else value
        if source.get("workspace"):
            found[canonicalize_name(name)] = ""
        elif place := next((source[key] for key in ("path", "git", "url") if key in source), ""):
            found[canonicalize_name(name)] = str(place)
    return found


def _cfg_lines(value: str) -> list[str]:
    # `file:` points at requirements files, which are read anyway.
    return [line for line in logical_lines(value) if not line.startswith("file:")]


def _named(held: Mapping[str, Any]) -> dict[str, Entries]:
    return {canonicalize_name(name): _entries(entries) for name, entries in held.items()}


def _entries(value: Any) -> Entries:
    if not isinstance(value, list):
        raise TypeError("dependencies must be a list of texts")
    return [Include(group=str(one["include-group"])) if isinstance(one, Mapping) else _texts([one])[0] for one in value]


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise TypeError("dependencies must be a list of texts")
    return value


def _pdm(pdm: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns pdm's groups without `-e file:///${PROJECT_ROOT}/…`, which are folders of the repository."""
    held = pdm.get("dev-dependencies", {})
    return {name: [line for line in lines if not line.startswith("-e")] for name, lines in held.items()}


_SOURCES = ("git", "url", "path", "source", "file")
_VERSION = re.compile(r"^\d+(\.\d+)*")


def poetry_groups(poetry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns lines of the main table (""), the groups, and the old dev table, without optional ones and `python`.

    Packages that are not from the index appear as `name @ place`. Raises ValueError for an invalid version.
    """
    tables = {name: group.get("dependencies", {}) for name, group in poetry.get("group", {}).items()}
    found = {"": _table(poetry.get("dependencies", {}))} | {name: _table(held) for name, held in tables.items()}
    return found | {"dev": [*_table(poetry.get("dev-dependencies", {})), *found.get("dev", [])]}


def poetry_extras(poetry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns lines of the extras, which name optional dependencies of the main table."""
    table = {name.lower(): (name, value) for name, value in poetry.get("dependencies", {}).items()}
    return {
        extra: [line for name in names if name.lower() in table for line in _lines(*table[name.lower()], optional=True)]
        for extra, names in poetry.get("extras", {}).items()
    }


def _table(table: Mapping[str, Any]) -> list[str]:
    return [line for name, value in table.items() if name.lower() != "python" for line in _lines(name, value)]


def _lines(name: str, value: Any, *, optional: bool = False) -> list[str]:
    if isinstance(value, list):
        return [line for entry in value for line in _lines(name, entry, optional=optional)]
    if isinstance(value, str):
        return [f"{name}{specifier(value)}"]
    if value.get("optional") and not optional:
        return []
    if place := next((value[key] for key in _SOURCES if key in value), None):
        return [f"{name} @ {place}"]
    extras = f"[{','.join(value['extras'])}]" if value.get("extras") else ""
    marker = f" ; {value['markers']}" if value.get("markers") else ""
    return [f"{name}{extras}{specifier(value.get('version', '*'))}{marker}"]


def specifier(constraint: str) -> str:
    """Returns a Poetry constraint (`^1.2`, `~1.2`, `1.2.*`, `*`, `>=1,<2`, `1.2`) as a PEP 440 specifier.

    Takes the last of alternatives (`^1.21 || ^2.0`), which PEP 440 lacks: it satisfies the whole. Raises ValueError.
    """
    constraint = constraint.split("|")[-1]
    return ",".join(part for piece in constraint.split(",") if (part := _part(piece.strip())))


def _part(piece: str) -> str:
    if piece in {"", "*"}:
        return ""
    if piece[0] in "^~" and not piece.startswith("~="):
        version = piece[1:].strip()
        return f">={version},<{_next(version, caret=piece[0] == '^')}"
    return piece if piece[0] in "<>=!~" else f"=={piece}"


def _next(version: str, *, caret: bool) -> str:
    """Returns the first version outside: caret keeps the leftmost non-zero part, tilde the first two (or the only)."""
    match = _VERSION.match(version)
    if match is None:
        raise ValueError(f"`{version}` is no version")
    parts = [int(part) for part in match[0].split(".")]
    keep = min(1, len(parts) - 1)  # `~1.2.3` may become 1.2.9, `~1` 1.9
    if caret:
        keep = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    return ".".join(str(part) for part in (*parts[:keep], parts[keep] + 1))


LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
"""The first one that exists counts."""
_ELSEWHERE = frozenset(
    {"git", "hg", "vcs", "url", "path", "file", "directory", "archive", "editable", "virtual", "workspace"}
)
"""Keys by which a lock file marks a package that does not come from an index."""


def locked_versions(read: Callable[[str], str | None]) -> tuple[str, ...]:
    """Returns `name==version` lines, with markers for a package with several versions; () without a readable lock."""
    name, text = next(((name, text) for name in LOCKS if (text := read(name)) is not None), ("", ""))
    try:
        entries = list(_pipenv(parse_json(text)) if name == "Pipfile.lock" else _packages(parse_toml(text)))
    except (ValueError, TypeError, AttributeError, LookupError):  # an invalid lock fixes no versions
        return ()
    found: dict[str, dict[str, list[str]]] = {}
    for package, version, markers in entries:
        found.setdefault(canonicalize_name(package), {}).setdefault(version, []).extend(markers)
    lines = [line for package, versions in sorted(found.items()) for line in _constraints(package, versions)]
    return tuple(line for line in lines if _is_requirement(line))


def _constraints(package: str, versions: Mapping[str, list[str]]) -> Iterator[str]:
    """Yields nothing when several versions have no markers to choose by, as in a lock of conflicting groups."""
    told = [one for markers in versions.values() for one in markers]
    if len({*told}) < len(told):
        return
    for version, markers in sorted(versions.items()):
        if len(versions) == 1:
            yield f"{package}=={version}"
        elif markers:
            yield f"{package}=={version} ; {' or '.join(f'({one})' for one in markers)}"


def _packages(data: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for one in data.get("package", data.get("packages", [])):
        source = one.get("source", {})
        if _ELSEWHERE & {*one, *source, source.get("type")} or "version" not in one:
            continue
        marker = one.get("markers", one.get("marker", ""))
        by_group = [*dict.fromkeys(marker.values())] if isinstance(marker, Mapping) else [marker]  # of poetry's groups
        yield one["name"], one["version"], one.get("resolution-markers") or [text for text in by_group if text]


def _pipenv(data: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for section in ("default", "develop"):
        for name, one in data.get(section, {}).items():
            if one.get("version", "").startswith("=="):
                yield name, one["version"][2:], []


def _is_requirement(line: str) -> bool:
    try:
        Requirement(line)
    except InvalidRequirement:
        return False
    return True
