"""What package.json brings and puts in the place of other packages; the project's own names for modules.

pnpm-workspace.yaml and import maps are read beside it. Lock files are read by `locks`.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple

from orchestrator.code.data import without_comments
from orchestrator.code.manifests.declared import Found, leaves, table
from orchestrator.code.parsers import parse_json, parse_yaml

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
    """Returns the package at the end of `a>b@1`, `**/b` or `a/b`: the one that is replaced."""
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


_REPLACING = ("overrides", "resolutions")
_MANAGER = re.compile(r"^(npm|pnpm|yarn|bun)@[\w.+-]+$")


def read_package_json(text: str, folder: str = "") -> Found:
    """What package.json declares; `folder` is the one it stands in. Raises ValueError for what is no such file."""
    data = parse_json(text)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    found = Found()
    groups(data, found, folder)
    for held in (*(data.get(key) for key in _REPLACING), table(data, "pnpm").get("overrides")):
        replaced(held, found)
    for key in ("bundleDependencies", "bundledDependencies"):
        held = data.get(key)
        names = held if isinstance(held, list) else ()
        found.pinned.update(plain_name(name) for name in names if isinstance(name, str))
    workspaces(data.get("workspaces"), found, folder)
    _manager(data, found)
    modules(data.get("imports"), found)
    modules(data.get("browser") if isinstance(data.get("browser"), Mapping) else None, found)
    found.scripts = {name: str(command) for name, command in table(data, "scripts").items()}
    if isinstance(data.get("name"), str) and data["name"].strip():
        found.local.add(plain_name(data["name"]))
    return found


def _manager(data: Mapping[str, object], found: Found) -> None:
    """The package manager that is fetched and run for this project: one that is known, by its version."""
    wanted = data.get("packageManager")
    if isinstance(wanted, str) and not _MANAGER.match(wanted.strip()):
        found.sources.add(f"packageManager {wanted}".lower())


_CONFIG = re.compile(r"^(ts|js)config(\.[\w-]+)?\.json$")
_IMPORT_MAP = re.compile(r"^(deno\.jsonc?|import[-_]?map\.json|.+\.importmap(\.json)?)$")


class Aliases(NamedTuple):
    """Where the modules of a project are found by names that are no paths."""

    patterns: Mapping[str, tuple[str, ...]]
    """Pattern, with at most one `*`, → paths from the repository's root that it stands for."""
    roots: frozenset[str]
    """Folders from the repository's root, "" for the root itself, in which a bare name is looked up first."""


def names_modules(path: str) -> bool:
    """Returns whether `local_modules` reads this file."""
    return _CONFIG.match(basename(path).lower()) is not None or is_import_map(path)


def is_import_map(path: str) -> bool:
    """Returns whether the file gives modules names by `imports`, as browsers and deno read it."""
    return _IMPORT_MAP.match(basename(path).lower()) is not None


def local_modules(path: str, text: str) -> frozenset[str]:
    """Names by which modules are imported and that the project itself gives: patterns of `compilerOptions.paths` that
    lead into it, and the keys of an import map. A `*` at the end stands for anything.
    """
    if is_import_map(path):
        try:
            keys = parse_json(without_comments(text)).get("imports", {})
            return frozenset(f"{key}*" if key.endswith("/") else key for key in keys if key.strip("*/"))
        except (ValueError, AttributeError, TypeError, RecursionError):
            return frozenset()
    return frozenset(name for name in aliases(path, text).patterns if name.strip("*/"))


def aliases(path: str, text: str) -> Aliases:
    """`compilerOptions.paths` and `baseUrl`, as far as they stay in the project and out of what is installed there.

    What cannot be read has none. Never raises.
    """
    if not _CONFIG.match(basename(path).lower()):
        return Aliases({}, frozenset())
    try:
        options = parse_json(without_comments(text)).get("compilerOptions", {})
        base = options.get("baseUrl")
        start = join(dirname(path), base or ".")
        own = {name: _inside(start, targets) for name, targets in options.get("paths", {}).items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return Aliases({}, frozenset())
    roots = [normpath(start)] if base else []
    roots += [target.removesuffix("/*") for target in own.get("*", ())]
    inside = frozenset("" if root == "." else root for root in roots if not _is_outside(root))
    return Aliases({name: targets for name, targets in own.items() if targets and name != "*"}, inside)


def _inside(start: str, targets: object) -> tuple[str, ...]:
    """Returns the targets of an alias, none unless every one is a path of the project."""
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        return ()
    paths = [normpath(join(start, target)) for target in targets]
    return () if any(_is_outside(path) for path in paths) else tuple(paths)


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "..")) or "node_modules" in path.split("/")


def filled(patterns: Mapping[str, tuple[str, ...]], module: str) -> Iterator[str]:
    """Yields the paths that `module` may stand for."""
    for pattern, targets in patterns.items():
        start, star, end = pattern.partition("*")
        if star and module.startswith(start) and module.endswith(end) and len(module) >= len(start) + len(end):
            inner = module[len(start) : len(module) - len(end)]
            yield from (normpath(target.replace("*", inner)) for target in targets)
        elif module == pattern:
            yield from targets


_PNPM_SETTINGS = frozenset(
    {"registry", "registries", "pnpmfile", "globalPnpmfile", "nodeOptions", "scriptShell", "dangerouslyAllowAllBuilds"}
    | {"ignoreScripts", "strictSsl", "proxy", "httpsProxy", "httpProxy", "ca", "cafile", "npmPath", "namedRegistries"}
)
"""Settings of pnpm that say where packages come from, or what runs when they are installed."""


def is_npm_config(path: str) -> bool:
    """Returns whether `read_npm_config` knows files of this name."""
    return basename(path).lower() == "pnpm-workspace.yaml" or is_import_map(path)


def read_npm_config(path: str, text: str) -> Found:
    """What the file at `path` brings: `names` and `pinned` of packages, `sources`, `modules` that names stand for.

    Raises ValueError for a text that is no such file.
    """
    found = Found()
    data = parse_json(without_comments(text)) if is_import_map(path) else parse_yaml(text)
    if data is None:
        return found
    if not isinstance(data, Mapping):
        raise ValueError("it is no object")
    if is_import_map(path):
        for key in ("imports", "scopes", "importMap", "links", "patch"):
            modules(data.get(key), found)
        workspaces(data.get("workspace"), found, "")
    else:
        workspaces(data.get("packages"), found, "")
        catalogs(data, found)
        replaced(data.get("overrides"), found)
        found.sources |= {f"{key}: {data[key]}"[:200].lower() for key in sorted(_PNPM_SETTINGS & data.keys())}
    return found
