"""The versions that a project's lock file has chosen, as constraints (pure: text in, values out).

A lock is heeded and not obeyed: it may be older than the manifests beside it, and what they ask for is what is tested.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
"""The first one that is there counts."""
_ELSEWHERE = frozenset(
    {"git", "hg", "vcs", "url", "path", "file", "directory", "archive", "editable", "virtual", "workspace"}
)
"""How a lock says that a package comes from anything but an index."""


def locked_versions(read: Callable[[str], str | None]) -> tuple[str, ...]:
    """`name==version`, with a marker where one package has several versions; () without a lock that can be read."""
    name, text = next(((name, text) for name in LOCKS if (text := read(name)) is not None), ("", ""))
    try:
        entries = list(_pipenv(json.loads(text)) if name == "Pipfile.lock" else _packages(tomllib.loads(text)))
    except (ValueError, TypeError, AttributeError, LookupError):
        return ()
    found: dict[str, dict[str, list[str]]] = {}
    for package, version, markers in entries:
        found.setdefault(canonicalize_name(package), {}).setdefault(version, []).extend(markers)
    lines = [line for package, versions in sorted(found.items()) for line in _constraints(package, versions)]
    return tuple(line for line in lines if _is_requirement(line))


def _constraints(package: str, versions: Mapping[str, list[str]]) -> Iterator[str]:
    """None where it is not said which of several versions is meant when, as in a lock of groups that conflict."""
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
        yield one["name"], one["version"], one.get("resolution-markers") or [text for text in [marker] if text]


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
