"""What a requirement of npm asks for: a version, another package under this name, or something from elsewhere."""

import re
from collections.abc import Mapping
from posixpath import join, normpath

from orchestrator.syntax.manifest_found import Found, table

GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LOCAL = re.compile(r"^(?P<how>file:|link:|workspace:|portal:|(?=\.{1,2}/))(?P<path>.*)$")
_VERSION = re.compile(r"^[\s\^~<>=v*xX\d|.,-][^/]*$|^[A-Za-z][\w.-]*$")
_ALIAS = re.compile(r"^npm:(?P<name>(@[^/@\s]+/)?[^@\s]+)")


def plain_name(name: object) -> str:
    """A package's name as it is compared."""
    return str(name).strip().lower()


def spec(name: str, wanted: object, found: Found, folder: str = "") -> None:
    """Note what `wanted` brings under `name` beyond a version: another package, an address, a path that leaves."""
    text = wanted.strip() if isinstance(wanted, str) else ""
    alias, local = _ALIAS.match(text), _LOCAL.match(text)
    if alias:
        found.names.add(alias["name"].lower())
    elif local:
        if leaves(local["path"], folder):
            found.sources.add(f"{name} @ {text}".lower())
        else:
            found.linked.add(name)
    elif text and not text.startswith(("$", "catalog:")) and not _VERSION.match(text):
        found.sources.add(f"{name} @ {text}".lower())


def leaves(path: str, folder: str) -> bool:
    """Whether a path, seen from `folder`, is none inside the project."""
    plain = path.strip().replace("\\", "/").removeprefix("!")
    if plain.startswith(("/", "~/")) or "://" in plain or re.match(r"^[A-Za-z]:", plain):
        return True
    target = normpath(join(folder, plain))
    return target == ".." or target.startswith("../") or "node_modules" in target.split("/")


def groups(data: Mapping[str, object], found: Found, folder: str = "") -> None:
    """Every package that the four groups of `data` bring."""
    for group in GROUPS:
        for name, wanted in table(data, group).items():
            found.names.add(plain_name(name))
            spec(plain_name(name), wanted, found, folder)


def catalogs(data: Mapping[str, object], found: Found) -> None:
    """What `catalog` and `catalogs` name for use elsewhere."""
    held = [table(data, "catalog")]
    held += [one for one in table(data, "catalogs").values() if isinstance(one, Mapping)]
    for catalog in held:
        for name, wanted in catalog.items():
            found.pinned.add(plain_name(name))
            spec(plain_name(name), wanted, found)


def extensions(value: object, found: Found) -> None:
    """`packageExtensions`: what is added to other packages' own requirements."""
    for extension in value.values() if isinstance(value, Mapping) else ():
        if isinstance(extension, Mapping):
            inner = Found()
            groups(extension, inner)
            found.pinned |= inner.names
            found.sources |= inner.sources


def workspaces(value: object, found: Found, folder: str) -> None:
    """Folders of the project's own packages; one outside the project is a source."""
    listed = value.get("packages") if isinstance(value, Mapping) else value
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, str) and leaves(entry, folder):
            found.sources.add(f"workspace {entry}".lower())
    if isinstance(value, Mapping):
        catalogs(value, found)


def replaced(held: object, found: Found, depth: int = 20) -> None:
    """Packages named by overrides and resolutions, at any depth, with what comes in their place."""
    if not isinstance(held, Mapping) or depth == 0:
        return
    for key, inner in held.items():
        name = _key_name(str(key))
        if name not in {"", "."}:
            found.pinned.add(name)
            spec(name, None if isinstance(inner, Mapping) else inner, found)
        replaced(inner, found, depth - 1)


def _key_name(key: str) -> str:
    """The package at the end of `a>b@1`, `**/b` or `a/b`: the one that is replaced."""
    last = key.split(">")[-1].strip().lower()
    match = re.search(r"(?P<name>(@[^/@\s]+/)?[^/@\s*]+)(@[^/]*)?$", last)
    return match["name"] if match else last


def modules(value: object, found: Found, depth: int = 6) -> None:
    """What aliases stand for, also behind conditions: texts at any depth."""
    if isinstance(value, str):
        found.modules.add(value)
    elif isinstance(value, Mapping | list) and depth:
        for inner in value.values() if isinstance(value, Mapping) else value:
            modules(inner, found, depth - 1)
