"""Reads what a Node project's package manager would install: copies of its files, and what is left out. Blocks."""

import functools
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from posixpath import normpath
from typing import Any

import yaml

from orchestrator.code.parsers import parse_json, parse_yaml
from orchestrator.core.value import Value
from orchestrator.files.safe_files import read_text, root_files

MANIFEST = "package.json"
GROUPS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_WORKSPACE = "pnpm-workspace.yaml"
_LOCKS = {
    "npm-shrinkwrap.json": "npm",
    "package-lock.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
}
"""Lock files of each manager, in npm's order of precedence."""
_NEW_YARN = "__metadata:"
"""Marks lock files of yarn 2 and newer, which no other manager reads."""
_KEPT = frozenset({"engine-strict", "legacy-peer-deps", "strict-peer-deps"})
_KEPT_OF_PNPM = (
    *("auto-install-peers", "dedupe-", "hoist", "link-workspace-packages", "node-linker", "public-hoist-"),
    *("resolve-peers-", "shamefully-hoist", "strict-peer-"),
)
_ELSEWHERE = re.compile(r"^(@[^:]+:)?registry$|^//|_auth", re.IGNORECASE)
"""Matches settings that choose a registry: those belong in sandbox.registries or the user's own .npmrc."""
_USUAL = re.compile(r"registry\s*=\s*https://registry\.npmjs\.org/?")
_NO_SETTINGS = ("registr", "dir", "scope", "proxy", "cafile", "script", "hook", "config", "pnpmfile", "buil")
"""Parts of keys of pnpm-workspace.yaml that choose where packages come from or go, or what is run."""
# `file:../x`, `link:../x`, `portal:../x`, `./x`, `../x`: a folder.
_LOCAL = re.compile(r"^(?:(?:file|link|portal):|(?=\.\.?/))(?P<path>.*)$")
# A version or range, a tag, or `npm:` with another name, which a registry resolves. No other `/`, `:` or `#`: those
# are part of addresses and GitHub's short names.
_PLAIN = re.compile(r"^(npm:(?P<name>@?[^@\s:]+)(@[^:/]*)?|workspace:[\w.^~*-]*|catalog:[\w.-]*|[^:/@#\\]*)$")
_NOT_FOR_INSTALLING = {"scripts", "packageManager", "devEngines", "allowScripts"}
"""The project's own scripts are not run, and a manager does not fetch another version of itself."""
_MOST = 500
"""Limit on the projects of one workspace."""


class NodeRequirements(Value):
    """The packages to install. `refusals` are sentences; if there is one, nothing may be installed."""

    wanted: bool = False
    """True when any package is required."""
    names: tuple[str, ...] = ()
    """Names of the packages that the manifests require."""
    manager: str = "npm"
    """The manager that installs the project: npm, pnpm or yarn."""
    files: dict[str, str] = {}
    """Files that the manager reads, by path: manifests, lock file, settings."""
    members: tuple[str, ...] = ()
    """Folders of the other projects in its workspace."""
    left_out: tuple[str, ...] = ()
    """Sentences on packages left out because they do not come from a registry."""
    refusals: tuple[str, ...] = ()


def gather(root: Path, managers: frozenset[str] = frozenset({"npm"})) -> NodeRequirements:
    """Reads the manifests, the lock file and the settings of the project at `root`, for one of the installed managers.

    If the project's own is not installed, npm chooses the versions. Leaves out addresses, repositories and folders
    outside the project.
    """
    names, read = root_files(root), functools.partial(read_text, root)
    if MANIFEST not in names:
        return NodeRequirements()
    try:
        manifest = _manifest(read(MANIFEST))
    except ValueError as error:
        return NodeRequirements(wanted=True, refusals=(f"{MANIFEST}: {error}",))
    lock = next((name for name in _LOCKS if name in names), "")
    manifest_text = read(MANIFEST) or ""
    stated = re.search(r'"packageManager"\s*:\s*"(npm|pnpm|yarn)\b', manifest_text)
    own = stated[1] if stated is not None else _LOCKS.get(lock, "npm")
    told, manager, absent = list[str](), own if own in managers else "npm", f"{own} is not installed here"
    if newer := _newer_yarn(manifest_text, names, lock, read(lock) if lock else None):
        own, manager, absent = newer, "npm", f"{newer} is not run here, only yarn 1"
    text = read(lock) if _LOCKS.get(lock) in {manager, "yarn" if manager == "npm" else ""} else None
    if lock and (not text or (manager != own and _NEW_YARN in text)):
        text = None
        told.append(f"{lock}: its versions were ignored, because {absent}")
    elif own != manager:
        told.append(f"{absent}: npm installed the packages")
    workspace = _workspace(read(_WORKSPACE)) if _WORKSPACE in names else {}
    folders = _members(root, manifest, workspace)
    manifests, waiting = {"": manifest}, ["", *folders]
    while waiting and len(manifests) <= _MOST:
        folder = waiting.pop(0)
        try:
            found = manifests[folder] if folder in manifests else _manifest(read(f"{folder}/{MANIFEST}"))
        except ValueError as error:
            told.append(f"{folder}/{MANIFEST} was left out: {error}")
            continue
        manifests[folder] = found
        waiting += _normalise(root, folder, found, manager, told, workspace)
    members = tuple(folder for folder in manifests if folder)
    if members and manager != "pnpm":
        manifest["workspaces"] = [*members]
    files = {f"{folder}/{MANIFEST}" if folder else MANIFEST: json.dumps(one) for folder, one in manifests.items()}
    files |= {lock: text} if text else {}
    files |= {f"{folder}/{path}": "" for folder in members for path in _programs(manifests[folder])}
    if manager == "pnpm":
        files |= _of_pnpm(root, manifest, workspace, members)
    settings = _settings(read(".npmrc") or "" if ".npmrc" in names else "", manager, told)
    files |= {".npmrc": settings} if settings else {}
    packages = dict.fromkeys(name for one in manifests.values() for name in package_names(one))
    return NodeRequirements(
        wanted=bool(packages),
        names=tuple(packages),
        manager=manager,
        files=files,
        members=members,
        left_out=tuple(dict.fromkeys(told)),
    )


def _newer_yarn(manifest: str, names: Collection[str], lock: str, text: str | None) -> str:
    """Returns which yarn the project is installed with where that is 2 or newer, else ""."""
    stated = re.search(r'"packageManager"\s*:\s*"(\w+)@(\d*)', manifest)
    if stated is not None and (stated[1] != "yarn" or stated[2]):
        return f"yarn {stated[2]}" if stated[1] == "yarn" and stated[2] not in {"0", "1"} else ""
    is_newer = ".yarnrc.yml" in names if lock in {"", "yarn.lock"} else False
    return "yarn 2 or newer" if is_newer or _NEW_YARN in (text or "") else ""


def _manifest(text: str | None) -> dict[str, Any]:
    """Returns the parsed manifest. Raises ValueError with the reason."""
    if text is None:
        raise ValueError("it cannot be read")
    try:
        value = parse_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be parsed ({str(error)[:200]})") from error
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    for group in GROUPS:
        if not isinstance(value.setdefault(group, {}), dict):
            raise ValueError(f"`{group}` is no object")
    return {key: held for key, held in value.items() if key not in _NOT_FOR_INSTALLING and held != {}}


def _workspace(text: str | None) -> dict[str, Any]:
    try:
        found = parse_yaml(text or "")
    except ValueError:  # pnpm reports the error; without the file there are no members and no versions
        found = None
    return {str(key): held for key, held in found.items()} if isinstance(found, dict) else {}


def _members(root: Path, manifest: Mapping[str, Any], workspace: Mapping[str, Any]) -> list[str]:
    """Returns the workspace's folders, by patterns of npm and pnpm: `packages/*`, `apps/**`, `!old`."""
    listed = manifest.get("workspaces") or workspace.get("packages") or []
    listed = listed.get("packages") if isinstance(listed, dict) else listed
    patterns = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    wanted = [_pattern(one) for one in patterns if not one.startswith("!")]
    unwanted = [_pattern(one[1:]) for one in patterns if one.startswith("!")]
    found = list[str]()
    for folder, inner, names in os.walk(root) if wanted else ():
        inner[:] = sorted(name for name in inner if name != "node_modules" and not name.startswith("."))
        place = os.path.relpath(folder, root)
        if MANIFEST in names and place != "." and any(one.fullmatch(place) for one in wanted):
            found += [] if any(one.fullmatch(place) for one in unwanted) else [place]
    return found[:_MOST]


def _pattern(text: str) -> re.Pattern[str]:
    words = {"**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    plain = normpath(text.removeprefix("./"))
    parts = re.split(r"(\*\*|[*?{},])", plain)
    with_words = "".join(words.get(part, re.escape(part)) for part in parts)
    try:
        return re.compile(with_words.replace("/.*", "(?:/.*)?"))
    except re.error:
        return re.compile(re.escape(plain))


def _normalise(
    root: Path, folder: str, manifest: dict[str, Any], manager: str, told: list[str], workspace: Mapping[str, Any]
) -> Iterator[str]:
    """Removes packages that do not come from a registry; yields the folders of projects inside the repository."""
    where = f"{folder}/{MANIFEST}" if folder else MANIFEST
    for group in GROUPS:
        for name, spec in list(manifest.get(group, {}).items()):
            text = spec.strip() if isinstance(spec, str) else ""
            if text.startswith(("workspace:", "catalog:")) and manager != "pnpm":
                text = manifest[group][name] = _without_protocol(name, text, workspace)
            local = _LOCAL.match(text)
            inside = _inside(root, folder, local["path"]) if local else None
            if inside is not None and local is not None:
                manifest[group][name] = f"{'file' if manager == 'npm' else 'link'}:{local['path']}"
                yield inside
            elif not isinstance(spec, str) or not _PLAIN.match(text):
                del manifest[group][name]
                told.append(f"{where}: `{name[:100]}: {str(spec)[:200]}` was left out: it comes from no registry")
    for key in ("overrides", "resolutions"):
        if key in manifest:
            manifest[key] = _plain_only(manifest[key])


def _without_protocol(name: str, spec: str, workspace: Mapping[str, Any]) -> str:
    """Returns an equivalent that npm and yarn 1 understand."""
    kind, _, rest = spec.partition(":")
    if kind == "workspace":
        return "*"
    held = workspace.get("catalogs", {}).get(rest, {}) if rest not in {"", "default"} else workspace.get("catalog", {})
    return str(held.get(name, "*")) if isinstance(held, dict) else "*"


def _inside(root: Path, folder: str, path: str) -> str | None:
    """Returns the folder of another project of the repository."""
    try:
        place = normpath(f"{folder}/{path}" if folder else path)
        within = (root / place).resolve().is_relative_to(root.resolve()) and not place.startswith(("..", "/"))
        return place if within and place != "." and MANIFEST in root_files(root / place) else None
    except (ValueError, OSError, RuntimeError):  # a NUL, circular links
        return None


def _plain_only(value: object, depth: int = 20) -> object:
    """Returns overrides that a registry resolves; `$name` refers to a dependency, which is checked itself."""
    if isinstance(value, dict) and depth:
        inner = {str(key): _plain_only(held, depth - 1) for key, held in value.items()}
        return {key: held for key, held in inner.items() if held is not None}
    return value if isinstance(value, str) and (value.startswith("$") or _PLAIN.match(value.strip())) else None


def package_names(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yields the real names of the packages, resolving aliases; leaves out the repository's own projects."""
    for group in GROUPS:
        for name, spec in manifest.get(group, {}).items():
            renamed = _PLAIN.match(spec.strip())
            if not _LOCAL.match(spec.strip()) and not spec.startswith("workspace:"):
                yield renamed["name"] if renamed is not None and renamed["name"] else str(name)


def _programs(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yields paths of a member's programs, which are linked if the file exists."""
    held = manifest.get("bin")
    for path in held.values() if isinstance(held, dict) else (held,):
        place = normpath(path) if isinstance(path, str) else ".."
        if not place.startswith(("/", "..")) and "\0" not in place and place != MANIFEST:
            yield place


def _of_pnpm(
    root: Path, manifest: Mapping[str, Any], workspace: Mapping[str, Any], members: tuple[str, ...]
) -> dict[str, str]:
    """Returns pnpm's own file, and the patches that it applies."""
    kept = {key: held for key, held in workspace.items() if not any(word in key.lower() for word in _NO_SETTINGS)}
    own = manifest.get("pnpm")
    patches = [kept.get("patchedDependencies"), own.get("patchedDependencies") if isinstance(own, dict) else None]
    paths = {path for held in patches if isinstance(held, dict) for path in held.values() if isinstance(path, str)}
    texts = {path: text for path in paths if (text := read_text(root, path)) is not None}
    if members or kept:
        texts[_WORKSPACE] = yaml.safe_dump({**kept, "packages": [*members]})
    return texts


def _settings(text: str, manager: str, told: list[str]) -> str:
    """Returns the lines of the project's .npmrc that may be kept; adds the removed ones to `told`."""
    lines = []
    for line in map(str.strip, text.splitlines()):
        key = line.partition("=")[0].strip()
        if _ELSEWHERE.search(key) and not line.startswith(("#", ";")) and not _USUAL.fullmatch(line):
            told.append(f".npmrc: `{key[:100]}` was left out: sandbox.registries or your own .npmrc name registries")
        elif key in _KEPT or (manager == "pnpm" and key.startswith(_KEPT_OF_PNPM)):
            lines.append(f"{line}\n")
    return "".join(lines)
