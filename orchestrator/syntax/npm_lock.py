"""Lock files of npm, pnpm, yarn, bun and deno: what they have fetched, and what they ask for at the top."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from posixpath import basename
from urllib.parse import urlsplit

from orchestrator.syntax.json_comments import without_comments
from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.npm_specs import catalogs, groups, leaves, modules, plain_name, replaced, spec
from orchestrator.syntax.yaml_data import load_yaml

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


def _object(value: object) -> Mapping[str, object]:
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
    data = _object(json.loads(text))
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


def _pnpm(text: str, found: Found) -> None:
    data = _object(load_yaml(text))
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


def _yarn(text: str, found: Found) -> None:
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
    data = _object(json.loads(without_comments(text)))
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


def _deno(text: str, found: Found) -> None:
    data = _object(json.loads(text))
    found.modules.update(str(address) for address in table(data, "remote"))
    workspace = table(data, "workspace")
    modules(workspace.get("dependencies"), found)
    modules(table(workspace, "packageJson").get("dependencies"), found)


_READERS: Mapping[str, Callable[[str, Found], None]] = {
    "package-lock.json": _npm,
    "npm-shrinkwrap.json": _npm,
    "pnpm-lock.yaml": _pnpm,
    "yarn.lock": _yarn,
    "bun.lock": _bun,
    "deno.lock": _deno,
}
