"""package.json: every group that brings a package, and what puts another in the place of one.

What a requirement of npm asks for: a version, another package under this name, or something from elsewhere.

Names under which a project's own modules are imported: aliases of tsconfig.json and its like.

Lock files of npm, pnpm, yarn, bun and deno: what they have fetched, and what they ask for at the top.

Files beside package.json that say which packages come, from where, or what a module's name stands for.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple
from urllib.parse import urlsplit

from orchestrator.code.data import load_yaml, without_comments
from orchestrator.code.manifests.declared import Found, table

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


_REPLACING = ("overrides", "resolutions")
_MANAGER = re.compile(r"^(npm|pnpm|yarn|bun)@[\w.+-]+$")


def read_package_json(text: str, folder: str = "") -> Found:
    """What package.json declares; `folder` is the one it stands in. Raises ValueError for what is no such file."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    found = Found()
    groups(data, found, folder)
    pnpm = table(data, "pnpm")
    for held in (*(data.get(key) for key in _REPLACING), pnpm.get("overrides")):
        replaced(held, found)
    extensions(pnpm.get("packageExtensions"), found)
    for name, wanted in table(pnpm, "configDependencies").items():
        found.names.add(plain_name(name))
        spec(plain_name(name), wanted, found)
    for key in ("bundleDependencies", "bundledDependencies"):
        held = data.get(key)
        names = held if isinstance(held, list) else ()
        found.pinned.update(plain_name(name) for name in names if isinstance(name, str))
    workspaces(data.get("workspaces"), found, folder)
    _manager(data, found)
    modules(data.get("imports"), found)
    modules(data.get("browser") if isinstance(data.get("browser"), Mapping) else None, found)
    _outside(data, found, folder)
    found.scripts = {name: str(command) for name, command in table(data, "scripts").items()}
    if isinstance(data.get("name"), str) and data["name"].strip():
        found.local.add(plain_name(data["name"]))
    return found


def _manager(data: Mapping[str, object], found: Found) -> None:
    """The package manager that is fetched and run for this project: one that is known, by its version."""
    wanted = data.get("packageManager")
    if isinstance(wanted, str) and not _MANAGER.match(wanted.strip()):
        found.sources.add(f"packageManager {wanted}".lower())


def _outside(data: Mapping[str, object], found: Found, folder: str) -> None:
    """Entry points that are no files of the package."""
    for key in ("main", "module", "types"):
        entry = data.get(key)
        if isinstance(entry, str) and leaves(entry, folder):
            found.sources.add(f"{key} {entry}".lower())


_CONFIG = re.compile(r"^(ts|js)config(\.[\w-]+)?\.json$")
_IMPORT_MAP = re.compile(r"^(deno\.jsonc?|import[-_]?map\.json|.+\.importmap(\.json)?)$")


class Aliases(NamedTuple):
    """Where the modules of a project are found by names that are no paths."""

    patterns: Mapping[str, tuple[str, ...]]
    """Pattern, with at most one `*`, → paths from the repository's root that it stands for."""
    roots: frozenset[str]
    """Folders from the repository's root, "" for the root itself, in which a bare name is looked up first."""


def names_modules(path: str) -> bool:
    """Whether `local_modules` reads this file."""
    return _CONFIG.match(basename(path).lower()) is not None or is_import_map(path)


def is_import_map(path: str) -> bool:
    """Whether the file gives modules names by `imports`, as browsers and deno read it."""
    return _IMPORT_MAP.match(basename(path).lower()) is not None


def local_modules(path: str, text: str) -> frozenset[str]:
    """Names by which modules are imported and that the project itself gives: patterns of `compilerOptions.paths` that
    lead into it, and the keys of an import map. A `*` at the end stands for anything.
    """
    if is_import_map(path):
        try:
            keys = json.loads(without_comments(text)).get("imports", {})
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
        options = json.loads(without_comments(text)).get("compilerOptions", {})
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
    """The targets of an alias, none unless every one is a path of the project."""
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        return ()
    paths = [normpath(join(start, target)) for target in targets]
    return () if any(_is_outside(path) for path in paths) else tuple(paths)


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "..")) or "node_modules" in path.split("/")


def filled(patterns: Mapping[str, tuple[str, ...]], module: str) -> Iterator[str]:
    """The paths that `module` may stand for."""
    for pattern, targets in patterns.items():
        start, star, end = pattern.partition("*")
        if star and module.startswith(start) and module.endswith(end) and len(module) >= len(start) + len(end):
            inner = module[len(start) : len(module) - len(end)]
            yield from (normpath(target.replace("*", inner)) for target in targets)
        elif module == pattern:
            yield from targets


REGISTRY = "registry.npmjs.org"
_ENTRY = re.compile(r"^(?P<name>@?[^@\s]+)@(?P<spec>.+)$")
_FETCHED = re.compile(r'^\s+"?resolved"?:?\s+"?(?P<address>[^"\s]+)')
_REQUIRED = re.compile(r'^ {4}"?(?P<name>[^":]+)"?:? "?(?P<spec>[^"]+)"?$')
_GROUP = re.compile(r'^ {2}"?(?P<group>\w+)"?:$')
_ARCHIVE = re.compile(r"[?&:]__archiveUrl=|https?%3A", re.IGNORECASE)


def is_lock(path: str) -> bool:
    """Whether `read_lock` knows files of this name."""
    return basename(path).lower() in _READERS


def read_lock(path: str, text: str) -> Found:
    """What the lock file at `path` asks for: `names` at the top, `sources` for what comes from elsewhere than the usual
    registry. Raises ValueError for what is no such file.
    """
    found = Found()
    _READERS[basename(path).lower()](text.removeprefix("\ufeff"), found)
    return found


def _lock_object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError("it is no object")
    return value


def _entries(value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, entry in value.items() if isinstance(value, Mapping) else ():
        if isinstance(entry, Mapping):
            yield str(name), entry


def _fetched(name: str, address: object, found: Found) -> None:
    """Where one package is fetched from, a source unless that is the registry."""
    try:
        parts = urlsplit(address) if isinstance(address, str) else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"https", "http"} or parts.netloc != REGISTRY:
        found.sources.add(f"{name} @ {str(address)[:200]}".lower())


def _npm(text: str, found: Found) -> None:
    data = _lock_object(json.loads(text))
    for path, entry in _entries(data.get("packages")):
        name = path.rsplit("node_modules/", 1)[-1]
        if "node_modules" not in path.split("/"):
            groups(entry, found, path)
        if entry.get("link"):
            if leaves(str(entry.get("resolved")), ""):
                found.sources.add(f"{name} @ {entry.get('resolved')}".lower())
        elif "resolved" in entry:
            _fetched(name, entry["resolved"], found)
    waiting = [data.get("dependencies")]  # as it was written before npm 7
    while waiting:
        for name, entry in _entries(waiting.pop()):
            waiting.append(entry.get("dependencies"))
            if "resolved" in entry:
                _fetched(name, entry["resolved"], found)
            spec(plain_name(name), entry.get("version"), found)


def _pnpm_lock(text: str, found: Found) -> None:
    data = _lock_object(load_yaml(text))
    importers = table(data, "importers")
    for folder, importer in [("", data), *_entries(importers)]:
        for group in ("dependencies", "devDependencies", "optionalDependencies"):
            for name, wanted in table(importer, group).items():
                found.names.add(plain_name(name))
                text_of = wanted.get("specifier") if isinstance(wanted, Mapping) else None
                spec(plain_name(name), text_of, found, "" if folder == "." else folder)
    replaced(data.get("overrides"), found)
    catalogs({"catalogs": {name: _specifiers(held) for name, held in _entries(data.get("catalogs"))}}, found)
    for name, entry in _entries(data.get("packages")):
        resolution = table(entry, "resolution")
        if "tarball" in resolution:
            _fetched(name, resolution["tarball"], found)
        for key in ("repo", "directory"):
            place = resolution.get(key)
            if place is not None and (key == "repo" or leaves(str(place), "")):
                found.sources.add(f"{name} @ {place}".lower())


def _specifiers(held: Mapping[str, object]) -> Mapping[str, object]:
    return {name: entry.get("specifier") for name, entry in _entries(held)}


def _yarn_lock(text: str, found: Found) -> None:
    """Both forms: yarn's own, and the YAML that came after it."""
    own = group = ""
    hosts: set[str] = set()
    for line in text.splitlines():
        required, fetched, opened = _REQUIRED.match(line), _FETCHED.match(line), _GROUP.match(line)
        if line and line[0] not in " #":
            patterns = [part.strip().strip('"') for part in line.rstrip(":").split(",")]
            own, group = next((one for one in patterns if "@workspace:" in one), ""), ""
            for match in filter(None, map(_ENTRY.match, patterns)):
                _yarn_spec(match["name"], match["spec"], found)
        elif fetched:
            parts = re.match(r"^https?://([^/]+)/", fetched["address"])
            hosts.add(parts[1] if parts else fetched["address"])
        elif opened:
            group = opened["group"]
        elif own and required and group.lower().endswith("dependencies"):
            found.names.add(plain_name(required["name"]))
    fine = {host for host in hosts if host.startswith("registry.") and len(hosts) == 1} | {REGISTRY}
    found.sources |= {f"index {host}".lower() for host in hosts - fine}


def _yarn_spec(name: str, wanted: str, found: Found) -> None:
    inner = Found()
    if _ARCHIVE.search(wanted):
        found.sources.add(f"{name} @ {wanted}".lower())
    elif not wanted.startswith(("npm:", "workspace:", "patch:")):
        spec(name, wanted, inner)
    elif wanted.startswith(("workspace:", "npm:")) and "://" in wanted:
        inner.sources.add(f"{name} @ {wanted}".lower())
    found.sources |= inner.sources


def _bun(text: str, found: Found) -> None:
    data = _lock_object(json.loads(without_comments(text)))
    for folder, entry in _entries(data.get("workspaces")):
        groups(entry, found, folder)
    replaced(data.get("overrides"), found)
    catalogs(data, found)
    for name, listed in table(data, "packages").items():
        held = listed if isinstance(listed, list) else []
        match = _ENTRY.match(str(held[0])) if held else None
        if match:
            spec(name, match["spec"], found)
        if len(held) > 1 and isinstance(held[1], str) and held[1] and match and match["spec"][:1].isdigit():
            _fetched(name, held[1], found)


def _deno_lock(text: str, found: Found) -> None:
    data = _lock_object(json.loads(text))
    found.modules.update(str(address) for address in table(data, "remote"))
    workspace = table(data, "workspace")
    modules(workspace.get("dependencies"), found)
    modules(table(workspace, "packageJson").get("dependencies"), found)


_READERS: Mapping[str, Callable[[str, Found], None]] = {
    "package-lock.json": _npm,
    "npm-shrinkwrap.json": _npm,
    "pnpm-lock.yaml": _pnpm_lock,
    "yarn.lock": _yarn_lock,
    "bun.lock": _bun,
    "deno.lock": _deno_lock,
}


_PNPM_SETTINGS = frozenset(
    {"registry", "registries", "pnpmfile", "globalPnpmfile", "nodeOptions", "scriptShell", "dangerouslyAllowAllBuilds"}
    | {"ignoreScripts", "strictSsl", "proxy", "httpsProxy", "httpProxy", "ca", "cafile", "npmPath", "namedRegistries"}
)


def is_npm_config(path: str) -> bool:
    """Whether `read_npm_config` knows files of this name."""
    name = basename(path).lower()
    return name in {"pnpm-workspace.yaml", ".yarnrc.yml"} or names_modules(path) or is_lock(path)


def read_npm_config(path: str, text: str) -> Found:
    """What the file at `path` brings: `names` and `pinned` of packages, `sources`, `modules` that names stand for.
    Raises ValueError for a text that is no such file.
    """
    name, found = basename(path).lower(), Found()
    if is_lock(path):
        return read_lock(path, text)
    if name.endswith((".yaml", ".yml")):
        data = load_yaml(text)
        _pnpm(_object(data), found) if name.startswith("pnpm") else _yarn(_object(data), found)
    elif is_import_map(path):
        _deno(_object(json.loads(without_comments(text))), found)
    else:
        _typescript(_object(json.loads(without_comments(text))), found, dirname(path))
    return found


def _object(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("it is no object")
    return value


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _pnpm(data: Mapping[str, object], found: Found) -> None:
    workspaces(data.get("packages"), found, "")
    catalogs(data, found)
    replaced(data.get("overrides"), found)
    extensions(data.get("packageExtensions"), found)
    for name, wanted in table(data, "configDependencies").items():
        found.names.add(plain_name(name))
        spec(plain_name(name), wanted, found)
    found.sources |= {f"{key}: {data[key]}"[:200].lower() for key in sorted(_PNPM_SETTINGS & data.keys())}


def _yarn(data: Mapping[str, object], found: Found) -> None:
    catalogs(data, found)
    extensions(data.get("packageExtensions"), found)


def _deno(data: Mapping[str, object], found: Found) -> None:
    modules(data.get("imports"), found)
    modules(data.get("scopes"), found)
    modules(data.get("importMap"), found)
    modules(data.get("links"), found)
    modules(data.get("patch"), found)
    workspaces(data.get("workspace"), found, "")


def _typescript(data: Mapping[str, object], found: Found, folder: str) -> None:
    options = table(data, "compilerOptions")
    for value in (options.get("types"), options.get("jsxImportSource"), data.get("extends")):
        modules(value, found)
    for plugin in _listed(options.get("plugins")):
        modules(plugin.get("name") if isinstance(plugin, Mapping) else None, found)
    base = options.get("baseUrl")
    start = base if isinstance(base, str) else "."
    places = [start] if leaves(start, folder) else []
    for targets in table(options, "paths").values():
        for target in map(str, _listed(targets)):
            found.modules.add(target if target.startswith("/") else f"./{start}/{target}")
    for reference in _listed(data.get("references")):
        path = str(reference.get("path", "")) if isinstance(reference, Mapping) else ""
        places += [path] if leaves(path, folder) else []
    found.sources |= {f"path {place}".lower() for place in places}
