"""package.json: every group that brings a package, and what puts another in the place of one."""

import json
import re
from collections.abc import Iterator, Mapping

from orchestrator.syntax.manifest_found import Found, table

GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_REPLACING = ("overrides", "resolutions")
_DEPTH = 20
_LOCAL = ("file:", "link:", "workspace:", "portal:", "./", "../", "catalog:")
_VERSION = re.compile(r"^[\s\^~<>=v*xX\d|.,-][^/]*$|^[A-Za-z][\w.-]*$")
_ALIAS = re.compile(r"^npm:(?P<name>(@[^/@\s]+/)?[^@\s]+)")


def read_package_json(text: str) -> Found:
    """What package.json declares. Raises ValueError for what is no such file."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    found = Found()
    for group in GROUPS:
        for name, spec in table(data, group).items():
            found.names.add(_plain(name))
            _source(_plain(name), spec, found)
    for name, spec in _replaced(data):
        found.pinned.add(name)
        _source(name, spec, found)
    for key in ("bundleDependencies", "bundledDependencies"):
        held = data.get(key)
        found.pinned.update(_plain(name) for name in held if isinstance(name, str)) if isinstance(held, list) else None
    found.scripts = {name: str(command) for name, command in table(data, "scripts").items()}
    if isinstance(data.get("name"), str) and data["name"].strip():
        found.local.add(_plain(data["name"]))
    return found


def _plain(name: object) -> str:
    return str(name).strip().lower()


def _source(name: str, spec: object, found: Found) -> None:
    """A spec that is no version: another package under this name, an address, or a path that leaves the project."""
    text = spec.strip() if isinstance(spec, str) else ""
    alias = _ALIAS.match(text)
    if alias:
        found.names.add(alias["name"].lower())
    elif text.startswith(_LOCAL):
        if ".." in re.split(r"[/:]", text) or re.match(r"^\w+:(/|~)", text):
            found.sources.add(f"{name} @ {text}".lower())
    elif text and not text.startswith("$") and not _VERSION.match(text):
        found.sources.add(f"{name} @ {text}".lower())


def _replaced(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Packages named by overrides (npm, pnpm) and resolutions (yarn), at any depth, with what comes in their place."""
    for held in (*(data.get(key) for key in _REPLACING), table(data, "pnpm").get("overrides")):
        yield from _leaves(held, _DEPTH)


def _leaves(value: object, depth: int) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping) or depth == 0:
        return
    for key, inner in value.items():
        name = _key_name(str(key))
        if name not in {"", "."}:
            yield name, None if isinstance(inner, Mapping) else inner
        yield from _leaves(inner, depth - 1)


def _key_name(key: str) -> str:
    """The package at the end of `a>b@1`, `**/b` or `a/b`: the one that is replaced."""
    last = key.split(">")[-1].strip().lower()
    match = re.search(r"(?P<name>(@[^/@\s]+/)?[^/@\s*]+)(@[^/]*)?$", last)
    return match["name"] if match else last
