"""Poetry's tables of dependencies as plain requirement lines (pure)."""

import re
from collections.abc import Collection, Mapping
from typing import Any

_SOURCES = ("git", "url", "path", "source", "file")
_VERSION = re.compile(r"^\d+(\.\d+)*")


def poetry_lines(poetry: Mapping[str, Any], groups: Collection[str]) -> list[str]:
    """Lines of the main table, the old dev table and the named groups; optional ones and `python` are left out.

    Raises ValueError for dependencies that come from elsewhere than the package index.
    """
    tables: list[Mapping[str, Any]] = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    for name, group in poetry.get("group", {}).items():
        if name in groups:
            tables.append(group.get("dependencies", {}))
    lines: list[str] = []
    for table in tables:
        for name, value in table.items():
            if name.lower() != "python":
                lines += _lines(name, value)
    return lines


def _lines(name: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [line for entry in value for line in _lines(name, entry)]
    if isinstance(value, str):
        return [f"{name}{specifier(value)}"]
    if value.get("optional"):
        return []
    odd = [key for key in _SOURCES if key in value]
    if odd:
        raise ValueError(f"{name} comes from `{odd[0]}`, only the package index is allowed")
    extras = f"[{','.join(value['extras'])}]" if value.get("extras") else ""
    marker = f" ; {value['markers']}" if value.get("markers") else ""
    return [f"{name}{extras}{specifier(value.get('version', '*'))}{marker}"]


def specifier(constraint: str) -> str:
    """A Poetry constraint (`^1.2`, `~1.2`, `1.2.*`, `*`, `>=1,<2`, `1.2`) as a PEP 440 specifier.

    Raises ValueError for alternatives (`||`), which have no such form.
    """
    if "|" in constraint:
        raise ValueError(f"the constraint `{constraint}` has alternatives")
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
