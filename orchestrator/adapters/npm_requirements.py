"""What a Node project asks npm to install, and why that is refused when it is no plain package (pure: texts in)."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import urlsplit

from orchestrator.domain.base import Value
from orchestrator.syntax.npm_lock import REGISTRY

__all__ = ["LOCKS", "MANIFEST", "REGISTRY", "NpmRequirements", "gather"]

MANIFEST = "package.json"
LOCKS = ("npm-shrinkwrap.json", "package-lock.json")
"""In npm's order of precedence."""
_SETTINGS = ".npmrc"
_GROUPS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_HARMLESS = frozenset(
    {"audit", "engine-strict", "fund", "legacy-peer-deps", "lockfile-version", "loglevel", "package-lock", "progress"}
    | {"save", "save-exact", "save-prefix", "strict-peer-deps", "update-notifier"}
)
_ANYWAY = "ignore-scripts=true"
"""What every installation of ours goes by."""
_KEPT = frozenset({"engine-strict", "legacy-peer-deps", "strict-peer-deps"})
_NAME = re.compile(r"^(@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$")
_RANGE = re.compile(r"^(npm:(@?[^@\s:]+)(@[^:/]*)?|[^:/@#\\]*)$")
_DEPTH = 20


class NpmRequirements(Value):
    """What to install. `refusals` are sentences; when there is any, nothing may be installed."""

    wanted: bool = False
    """Whether any package is asked for at all."""
    names: tuple[str, ...] = ()
    """Of the packages that the manifest asks for."""
    manifest: str = ""
    """Text of package.json."""
    lock_name: str | None = None
    lock: str = ""
    settings: tuple[str, ...] = ()
    """Lines of the project's .npmrc that npm needs to come to the same result."""
    refusals: tuple[str, ...] = ()


def gather(
    root_files: Collection[str], read: Callable[[str], str | None], *, hosts: Collection[str] = (REGISTRY,)
) -> NpmRequirements:
    """Read package.json, its lock file and .npmrc in the project's root.

    Only packages of the registry are taken: addresses, repositories, paths and workspaces become refusals, as do other
    registries, lock files that name hosts outside `hosts`, and what cannot be understood.
    """
    if MANIFEST not in root_files:
        return NpmRequirements()
    refusals: list[str] = []
    manifest = _object(MANIFEST, read(MANIFEST), refusals)
    wanted = any(manifest.get(group) for group in _GROUPS)
    if not wanted or not manifest:
        return NpmRequirements(wanted=bool(refusals), refusals=tuple(refusals))
    refusals += _manifest_refusals(manifest)
    lock_name = next((name for name in LOCKS if name in root_files), None)
    lock = read(lock_name) if lock_name is not None else None
    if lock_name is not None:
        refusals += _lock_refusals(lock_name, _object(lock_name, lock, refusals), hosts)
    settings: list[str] = []
    if _SETTINGS in root_files:
        refusals += _settings(read(_SETTINGS), settings)
    return NpmRequirements(
        wanted=True,
        names=tuple(_names(manifest)),
        manifest=read(MANIFEST) or "",
        lock_name=lock_name,
        lock=lock or "",
        settings=tuple(settings),
        refusals=tuple(dict.fromkeys(refusals)),
    )


def _object(name: str, text: str | None, refusals: list[str]) -> Mapping[str, object]:
    if text is None:
        refusals.append(f"{name}: it cannot be read")
        return {}
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        refusals.append(f"{name}: it cannot be understood ({str(error)[:200]})")
        return {}
    if isinstance(value, Mapping):
        return value
    refusals.append(f"{name}: it is no object")
    return {}


def _names(manifest: Mapping[str, object]) -> Iterator[str]:
    """The packages themselves, where a name of the manifest's own stands for another."""
    for group in _GROUPS:
        held = manifest.get(group)
        for name, spec in held.items() if isinstance(held, Mapping) else ():
            renamed = _RANGE.match(spec.strip()) if isinstance(spec, str) else None
            yield renamed[2] if renamed is not None and renamed[2] else str(name)


def _manifest_refusals(manifest: Mapping[str, object]) -> Iterator[str]:
    if manifest.get("workspaces"):
        yield f"{MANIFEST}: workspaces are not installed"
    for group in _GROUPS:
        held = manifest.get(group) or {}
        if not isinstance(held, Mapping):
            yield f"{MANIFEST}: `{group}` is no object"
            continue
        for name, spec in held.items():
            if not _NAME.match(name) or not _is_plain(spec):
                yield f"{MANIFEST}: `{name[:100]}: {str(spec)[:200]}` is no plain requirement (name and version)"
    for name, spec in _leaves(manifest.get("overrides"), _DEPTH):
        if not _is_plain(spec):
            yield f"{MANIFEST}: the override `{name[:100]}: {str(spec)[:200]}` is no plain version"


def _is_plain(spec: object) -> bool:
    return isinstance(spec, str) and bool(_RANGE.match(spec.strip()))


def _leaves(value: object, depth: int) -> Iterator[tuple[str, object]]:
    """The texts of nested overrides; `$name` points at a dependency, which is looked at itself."""
    if value is None:
        return
    if not isinstance(value, Mapping) or depth == 0:
        yield "overrides", value if not isinstance(value, str) else None
        return
    for name, held in value.items():
        if isinstance(held, Mapping):
            yield from _leaves(held, depth - 1)
        elif not (isinstance(held, str) and held.startswith("$")):
            yield str(name), held


def _lock_refusals(name: str, lock: Mapping[str, object], hosts: Collection[str]) -> Iterator[str]:
    """Where a lock file would have packages fetched from: npm does as it says."""
    waiting: list[object] = [lock.get("packages"), lock.get("dependencies")]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Mapping):
            continue
        for package, entry in value.items():
            if not isinstance(entry, Mapping):
                continue
            waiting.append(entry.get("dependencies"))
            resolved = entry.get("resolved", _address(entry.get("version")))
            if entry.get("link"):
                yield f"{name}: `{str(package)[:100]}` is a link"
            elif resolved is not None and not _from_registry(resolved, hosts):
                yield f"{name}: `{str(package)[:100]}` is fetched from `{str(resolved)[:200]}`"


def _address(version: object) -> object:
    """The version of an old lock file's entry when it is an address instead, else None."""
    return version if isinstance(version, str) and not _is_plain(version) else None


def _from_registry(resolved: object, hosts: Collection[str]) -> bool:
    try:
        address = urlsplit(resolved) if isinstance(resolved, str) else None
    except ValueError:
        return False
    return address is not None and address.scheme in {"https", "http"} and address.netloc in hosts


def _settings(text: str | None, kept: list[str]) -> Iterator[str]:
    if text is None:
        yield f"{_SETTINGS}: it cannot be read"
        return
    for raw in text.splitlines():
        line = raw.strip()
        key = line.partition("=")[0].strip().lower()
        if not line or line.startswith(("#", ";")) or re.sub(r"\s", "", line) == _ANYWAY:
            continue
        if key not in _HARMLESS or "${" in line:
            yield f"{_SETTINGS}: the setting `{key[:100]}` is not allowed"
        elif key in _KEPT:
            kept.append(line)
