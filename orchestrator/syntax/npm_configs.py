"""Files beside package.json that say which packages come, from where, or what a module's name stands for."""

import json
from collections.abc import Mapping, Sequence
from posixpath import basename, dirname

from orchestrator.syntax.json_comments import without_comments
from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.module_names import is_import_map, names_modules
from orchestrator.syntax.npm_lock import is_lock, read_lock
from orchestrator.syntax.npm_specs import catalogs, extensions, leaves, modules, plain_name, replaced, spec, workspaces
from orchestrator.syntax.yaml_data import load_yaml

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
