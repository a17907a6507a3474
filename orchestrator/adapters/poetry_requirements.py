"""Poetry's tables of dependencies as plain requirement lines (pure)."""

import re
from collections.abc import Mapping
from typing import Any

_SOURCES = ("git", "url", "path", "source", "file")
_VERSION = re.compile(r"^\d+(\.\d+)*")


def poetry_groups(poetry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Lines of the main table (""), the groups, and the old dev table; without optional ones and `python`.

    What comes from elsewhere than the package index stands as `name @ place`. Raises ValueError for what is no version.
    """
    tables = {name: group.get("dependencies", {}) for name, group in poetry.get("group", {}).items()}
    found = {"": _table(poetry.get("dependencies", {}))} | {name: _table(held) for name, held in tables.items()}
    return found | {"dev": [*_table(poetry.get("dev-dependencies", {})), *found.get("dev", [])]}


def poetry_extras(poetry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Lines of the extras, which name optional dependencies of the main table."""
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
    """A Poetry constraint (`^1.2`, `~1.2`, `1.2.*`, `*`, `>=1,<2`, `1.2`) as a PEP 440 specifier.

    Of alternatives (`^1.21 || ^2.0`), which PEP 440 has not, the last one: it fulfils the whole. Raises ValueError.
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
    """The first version outside: caret keeps the leftmost non-zero part, tilde the first two (or the only) parts."""
    match = _VERSION.match(version)
    if match is None:
        raise ValueError(f"`{version}` is no version")
    parts = [int(part) for part in match[0].split(".")]
    keep = min(1, len(parts) - 1)
    if caret:
        keep = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    return ".".join(str(part) for part in (*parts[:keep], parts[keep] + 1))
