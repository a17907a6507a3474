"""Layers of Node packages: installed once per set of requirements, and linked into many trees.

While a command runs in a tree, its `node_modules` has links to the packages of a layer, and space for caches.
"""

import asyncio
import contextlib
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from orchestrator.code.parsers import parse_json
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access, CommandResult
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import YOUNGEST_DAYS, InstallScripts
from orchestrator.environments.kept import KeptFolders, begin, is_used, put
from orchestrator.environments.node_requirements import MANIFEST, NodeRequirements
from orchestrator.files.disk import raise_if_full
from orchestrator.files.safe_files import read_text
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.sandbox.fetch_sources import REGISTRY, without_credentials

MODULES = "node_modules"
INSTALLS = {
    "npm": ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"),
    "pnpm": (
        *("pnpm", "install", "--ignore-scripts", "--no-frozen-lockfile", "--config.package-import-method=copy"),
        *("--config.extend-node-path=false", "--config.manage-package-manager-versions=false"),
    ),
    "yarn": ("yarn", "install", "--ignore-scripts", "--ignore-engines", "--non-interactive", "--no-progress"),
}
"""No package's code is run. The lock file counts, and what a manifest requires besides."""
_SCRIPTS = ("preinstall", "install", "postinstall")
_NOTES = "told.json"
_STORE = ".store"
_PACKAGE = "package"
_CACHE = ".npm-cache"
_BUILDS = ".builds"
"""Results of install scripts, so that a compiler does not run again for another layer with the same package."""
_MOST_CACHED = 2 * 1024**3
"""Bytes; a larger cache is discarded."""
_USUAL = re.compile(r"https://registry\.(?:yarnpkg\.com|npmjs\.org)/")
_TOLD = 1500
"""Characters kept of the end of a script's output."""


class Scripted(NamedTuple):
    """A package with an install script."""

    name: str
    """Name in the registry, even when it is installed under an alias."""
    version: str
    place: str
    """Its folder, relative to the layer."""


class Notes(Value):
    """Notes on a layer for people and personas."""

    engines: tuple[str, ...] = ()
    """Warnings that the project needs another version of node."""
    closed: tuple[str, ...] = ()
    """Packages whose scripts are not allowed."""
    young: tuple[str, ...] = ()
    """Packages too new for their scripts to run, as `name version`."""
    failed: str = ""
    """Packages whose script failed, with its output."""

    @property
    def told(self) -> list[str]:
        """Sentences for people and personas."""
        closed, young = ", ".join(self.closed), ", ".join(self.young)
        return [
            *self.engines,
            *([f"install scripts were not run of: {closed} (environment.install_scripts)"] if closed else ()),
            *(
                [f"install scripts were not run of: {young}, less than {YOUNGEST_DAYS} days old; an older version, or "
                 "environment.install_scripts, has them run"] if young else ()
            ),
            *([f"an install script failed: {self.failed}"] if self.failed else ()),
        ]  # fmt: skip


class NodeLayers:
    """Makes and keeps layers in `folder`/<digest of the requirements>.

    A layer in which a script failed is used by this object only: what was missing may be available to the next one.
    """

    def __init__(self, folder: Path, runner: CommandRunner, timeout_s: float) -> None:
        self._folder, self._runner, self._timeout_s = folder, runner, timeout_s
        self._kept = KeptFolders(folder)

    async def ensure(
        self, wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str
    ) -> Path | CommandResult:
        """Returns the layer for the requirements, or how its installation failed. `node` is the version of node.

        Raises OSError when the disk is full.
        """

        async def make(scratch: Path, _layer: Path) -> CommandResult | None:
            await asyncio.to_thread(write_files, scratch, _files(wanted, env))
            await asyncio.to_thread(_lend_cache, self._folder, scratch)
            cached = {**env, "npm_config_cache": str(scratch / _CACHE)}
            installed = await self._run([*INSTALLS[wanted.manager], *_place(scratch, wanted.manager)], scratch, cached)
            await asyncio.to_thread(_take_cache_back, self._folder, scratch)
            if not installed.ok:
                return installed
            notes = await self._run_scripts(scratch, wanted, scripts, env, node)
            notes = notes.model_copy(update={"engines": _engines(wanted, installed.output)})
            await asyncio.to_thread(_finish, scratch, wanted, notes)
            return None

        digest = await asyncio.to_thread(_digest, wanted, scripts, env, node)
        what = f"installing Node packages with {wanted.manager}"
        return await self._kept.ensure(digest, make, lambda scratch: notes_on(scratch).failed, what=what)

    async def _run_scripts(
        self, scratch: Path, wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str
    ) -> Notes:
        """Runs the allowed scripts; returns notes on them."""
        found = await asyncio.to_thread(lambda: [*scripted(scratch, wanted.manager)])
        allowed = [one for one in found if scripts.allowed(one.name)]
        young = [one for one in allowed if scripts.young(one.name) and await self._is_young(scratch, one, env)]
        run = [one for one in allowed if one not in young]
        if run:
            await asyncio.to_thread(_allow, scratch, wanted, run)
        groups = [run] if run and wanted.manager == "pnpm" else [[one] for one in run]
        failed = [told for group in groups if (told := await self._rebuild(scratch, wanted.manager, group, env, node))]
        return Notes(
            closed=tuple(sorted({one.name for one in found} - {one.name for one in allowed})),
            young=tuple(f"{one.name} {one.version}" for one in young),
            failed="\n".join(failed),
        )

    async def _rebuild(
        self, scratch: Path, manager: str, group: Sequence[Scripted], env: Mapping[str, str], node: str
    ) -> str:
        """Runs the scripts of these packages, or reuses their results from another layer; returns which failed and how.

        They get no credentials of registries: the proxy adds none to what they ask for.
        Scripts run in a copy, from which only the packages' own folders are taken, so that no script changes another
        package. pnpm's folders link to each other, so its scripts run in the layer itself.
        """
        kept = await asyncio.to_thread(_kept_builds, self._folder / _BUILDS, scratch, group, node)
        taken = await asyncio.to_thread(_take_builds, kept)
        if taken:
            return ""
        alone = manager != "pnpm"
        place = await asyncio.to_thread(_copied, scratch, self._folder) if alone else scratch
        try:
            argv = [*_rebuild(manager, group), *_place(place, manager)]
            own = {**without_credentials(env), **await asyncio.to_thread(_gyp_variables)}
            ended = await self._run(argv, place, own)
            if ended.ok and alone:
                await asyncio.to_thread(_put_builds, self._folder / _BUILDS, scratch, place, group, kept)
        finally:
            if alone:
                await asyncio.to_thread(remove_tree, place)
        names, how = ", ".join(sorted({one.name for one in group})), ""
        if ended.limit:
            how = (
                ", ended by commands.install_timeout_s"
                if ended.limit == "timeout"
                else f", ended by its {ended.limit} limit"
            )
        return "" if ended.ok else f"{names}{how}: {ended.output[-_TOLD:].strip()}"

    async def _is_young(self, scratch: Path, package: Scripted, env: Mapping[str, str]) -> bool:
        """Returns whether the version is too new, by the registry's dates; False when the registry gives none."""
        told = await self._run(["npm", "view", package.name, "time", "--json"], scratch, env)
        with suppress(ValueError, TypeError, AttributeError):  # no answer, or not the expected JSON
            times = parse_json(told.output[told.output.index("{") : told.output.rindex("}") + 1])
            born = datetime.datetime.fromisoformat(times[package.version])
            return datetime.datetime.now(datetime.UTC) - born < datetime.timedelta(days=YOUNGEST_DAYS)
        return False

    async def _run(self, argv: Sequence[str], scratch: Path, env: Mapping[str, str]) -> CommandResult:
        access = Access(fetch=True)
        result = await self._runner.run(argv, cwd=scratch, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, scratch)
        return result


def notes_on(layer: Path) -> Notes:
    """Returns the notes on a layer. Blocks."""
    return Notes.model_validate_json((layer / _NOTES).read_text(encoding="utf-8"))


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Writes copies of the files that a manager reads, so that the rest of the tree is out of its reach. Blocks."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def scripted(folder: Path, manager: str) -> Iterator[Scripted]:
    """Yields the packages in `folder` that have install scripts. Blocks."""
    aliases = _npm_aliases(folder) if manager == "npm" else {}
    lock = (read_text(folder, "yarn.lock") or "") if manager == "yarn" else ""
    for place in _packages(folder, MODULES):
        with suppress(ValueError, AttributeError):  # an invalid manifest has no scripts
            told = parse_json(read_text(folder, f"{place}/{MANIFEST}") or "")
            held = told.get("scripts") or {}
            native = told.get("gypfile", True) and (folder / place / "binding.gyp").is_file()
            if not native and not any(held.get(one) for one in _SCRIPTS):
                continue
            name = aliases.get(place, place.rpartition(f"{MODULES}/")[2])
            # A package installed under another's name does not count as that well-known package.
            renamed = f"{name}@npm:" in lock
            yield Scripted("" if renamed else name, str(told.get("version", "")), place)


def _npm_aliases(folder: Path) -> dict[str, str]:
    with suppress(ValueError, AttributeError):  # only npm writes this file
        packages = parse_json(read_text(folder, f"{MODULES}/.package-lock.json") or "").get("packages", {})
        return {place: str(one["name"]) for place, one in packages.items() if "name" in one}
    return {}


def _packages(folder: Path, modules: str) -> Iterator[str]:
    """Yields package folders below a `node_modules`; skips links, which lead to others of them or into the tree."""
    with suppress(OSError), os.scandir(folder / modules) as entries:  # no such folder
        for entry in sorted(entries, key=lambda one: one.name):
            place = f"{modules}/{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                continue
            if entry.name == ".pnpm":
                for one in sorted(os.listdir(entry.path)):
                    yield from _packages(folder, f"{place}/{one}/{MODULES}")
            elif entry.name.startswith("@"):
                yield from _packages(folder, place)
            elif not entry.name.startswith("."):
                yield place
                yield from _packages(folder, f"{place}/{MODULES}")


def _files(wanted: NodeRequirements, env: Mapping[str, str]) -> dict[str, str]:
    """Returns the files to write; yarn's lock file names an alias of the default registry, which is replaced."""
    if wanted.manager != "yarn" or "yarn.lock" not in wanted.files:
        return wanted.files
    registry = env.get("NPM_CONFIG_REGISTRY", REGISTRY).rstrip("/")
    return {**wanted.files, "yarn.lock": _USUAL.sub(f"{registry}/", wanted.files["yarn.lock"])}


def _place(scratch: Path, manager: str) -> list[str]:
    """Returns options with pnpm's store, which must be the same in all its commands for one folder."""
    return [f"--config.store-dir={scratch / _STORE}"] if manager == "pnpm" else []


def _lend_cache(folder: Path, scratch: Path) -> None:
    """Lends npm's cache to one installation at a time. npm copies from it, so no file is shared; install scripts
    never see it, and a cache lost to a kill is fetched again."""
    with suppress(OSError):  # there is none yet, or another installation has it
        (folder / _CACHE).rename(scratch / _CACHE)


def _take_cache_back(folder: Path, scratch: Path) -> None:
    with suppress(OSError):  # pnpm and yarn make none; another installation's may be back already
        size = sum(path.lstat().st_size for path in (scratch / _CACHE).rglob("*"))
        if size <= _MOST_CACHED:
            (scratch / _CACHE).rename(folder / _CACHE)
    remove_tree(scratch / _CACHE)


def _allow(scratch: Path, wanted: NodeRequirements, run: Sequence[Scripted]) -> None:
    """Writes the manager's own allowlist of install scripts into the manifest."""
    manifest, names = parse_json(wanted.files[MANIFEST]), sorted({one.name for one in run})
    own = {key: held for key, held in (manifest.get("pnpm") or {}).items() if "uilt" not in key}
    manifest["allowScripts"] = dict.fromkeys(names, True)
    manifest["pnpm"] = {**own, "onlyBuiltDependencies": names}
    (scratch / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _rebuild(manager: str, run: Sequence[Scripted]) -> list[str]:
    if manager == "pnpm":
        return ["pnpm", "rebuild", *sorted({one.name for one in run})]
    places = (f"./{one.place}" for one in run)
    return ["npm", "rebuild", "--foreground-scripts", "--no-audit", "--no-update-notifier", *places]


def _kept_builds(folder: Path, scratch: Path, group: Sequence[Scripted], node: str) -> dict[Path, Path]:
    """Returns where each package's build is kept, by its folder in the layer; {} when the lock lacks a checksum."""
    with suppress(OSError, ValueError, KeyError):  # only npm writes this file, and not every entry has a checksum
        locked = parse_json((scratch / MODULES / ".package-lock.json").read_text(encoding="utf-8"))["packages"]
        kept = {}
        for one in group:
            inner = {place: held["integrity"] for place, held in locked.items() if place.startswith(f"{one.place}/")}
            content = [locked[one.place]["integrity"], sorted(inner.values()), node, platform.system()]
            content += [platform.machine(), platform.libc_ver()]
            digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
            kept[scratch / one.place] = folder / digest
        return kept
    return {}


def _take_builds(kept: Mapping[Path, Path]) -> bool:
    """Copies the kept builds into the layer; returns whether all existed."""
    if not kept or not all(is_used(build) for build in kept.values()):
        return False
    for place, build in kept.items():
        remove_tree(place)
        shutil.copytree(build / _PACKAGE, place, symlinks=True)
    return True


def _copied(scratch: Path, folder: Path) -> Path:
    copy = begin(folder)
    return Path(shutil.copytree(scratch, copy, symlinks=True, dirs_exist_ok=True))


def _put_builds(folder: Path, scratch: Path, copy: Path, group: Sequence[Scripted], kept: Mapping[Path, Path]) -> None:
    made = [one for one in (copy / MODULES).glob(".*") if one.is_dir() and not (scratch / MODULES / one.name).exists()]
    for shared in made:  # Prisma's client is made beside its package, in `.prisma`
        shared.rename(scratch / MODULES / shared.name)
    for one in group:
        remove_tree(scratch / one.place)
        (copy / one.place).rename(scratch / one.place)
        if not made and (build := kept.get(scratch / one.place)):
            new = begin(folder)
            shutil.copytree(scratch / one.place, new / _PACKAGE, symlinks=True)
            put(new, build)


def _gyp_variables() -> dict[str, str]:
    """Returns variables for node-gyp, with the path of node's headers so that it does not fetch them."""
    # By default the output is mostly node-gyp's arguments.
    quiet = {"npm_config_loglevel": "warn", "npm_config_jobs": "max"}
    headers = node_headers()
    return quiet if headers is None else {**quiet, "npm_config_nodedir": str(headers)}


def node_headers() -> Path | None:
    """Returns the folder that `node` and its `include` are installed in. Blocks."""
    program = shutil.which("node")
    prefix = Path(os.path.realpath(program)).parent.parent if program else None
    return prefix if prefix is not None and (prefix / "include" / "node" / "node.h").is_file() else None


def _engines(wanted: NodeRequirements, output: str) -> tuple[str, ...]:
    """Returns npm's warning that the project needs another node; pnpm and yarn warn only about packages."""
    name = parse_json(wanted.files[MANIFEST]).get("name")
    start = r"EBADENGINE\s+"
    whose = rf"{start}package: (?:'{re.escape(str(name))}@[^']*'|undefined),"
    said = rf"{whose}[^{{]*{start}required: \{{([^}}]*)\}}"
    found = re.search(said, output)
    return (f"the project is for another version than this machine has ({found[1].strip()})",) if found else ()


def _finish(scratch: Path, wanted: NodeRequirements, notes: Notes) -> None:
    remove_tree(scratch / _STORE)
    (scratch / MODULES).mkdir(exist_ok=True)  # there is none when every package was optional
    (scratch / _NOTES).write_text(notes.model_dump_json(), encoding="utf-8")
    (scratch / "members.json").write_text(json.dumps(wanted.members), encoding="utf-8")


def _digest(wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str) -> str:
    """Returns a digest of the requirements, allowed scripts, registries, the newest day, and the version of node."""
    asked = wanted.model_dump(mode="json", include={"manager", "files", "members"})
    registries = {name: value for name, value in env.items() if name.lower().endswith(("registry", "before"))}
    content = [
        _NOTES,
        asked,
        scripts.digest(json.dumps(asked)),
        registries,
        node,
        platform.system(),
        platform.machine(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


_LAYER = ".layer"
"""Link to the layer in a `node_modules` that we made; marks the folder as ours."""
_used = set[str]()
"""Trees in which a command is running."""


@contextlib.asynccontextmanager
async def linked(root: Path, modules: Path | None) -> AsyncIterator[None]:
    """Fills `root`/node_modules with links to `modules` (None: does nothing) for the block, also in the folders of the
    workspace's other projects; then restores the tree.

    It is a folder and not a link because tools keep caches in it. A `node_modules` that the tree has already is the
    project's own and stays.
    """
    if modules is None or str(root) in _used:
        yield
        return
    _used.add(str(root))
    try:
        made = await asyncio.to_thread(_link_all, root, modules.parent)
        try:
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, made))
    finally:
        _used.discard(str(root))


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        remove_tree(folder)


def _link_all(root: Path, layer: Path) -> list[Path]:
    layer = layer.resolve()
    members = parse_json((layer / "members.json").read_text(encoding="utf-8"))
    made = []
    for folder in ("", *members):
        place = root / folder / MODULES
        if (place / _LAYER).is_symlink():  # left by a killed process
            remove_tree(place)
        inside = (root / folder).is_dir() and (root / folder).resolve().is_relative_to(root.resolve())
        if inside and (layer / folder / MODULES).is_dir() and not os.path.lexists(place):
            made.append(place)
            _link(layer, f"{folder}/{MODULES}" if folder else MODULES, root, bool(members))
            (place / _LAYER).symlink_to(layer / folder / MODULES)
    return made


def _link(layer: Path, folder: str, root: Path, members: bool) -> None:
    """Adds links: a project of the workspace links into the tree, everything else into the layer."""
    (root / folder).mkdir()
    with os.scandir(layer / folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and (entry.name[:1] == "@" or (members and entry.name == ".bin")):
                _link(layer, f"{folder}/{entry.name}", root, members)
                continue
            target = layer / folder / entry.name
            if entry.is_symlink():
                led = os.path.relpath(os.path.realpath(entry.path), layer)
                if MODULES not in led.split("/") and not led.startswith(".."):
                    target = root / led
            (root / folder / entry.name).symlink_to(target)
