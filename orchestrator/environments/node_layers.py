"""The packages of Node projects: installed once for all who ask for the same, and linked into many trees.

A tree's own `node_modules` while something runs in it: links to the packages of a layer, and room for caches.
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

from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access, CommandResult
from orchestrator.core.value import Value
from orchestrator.environments.base_commit import YOUNGEST_DAYS, InstallScripts
from orchestrator.environments.kept import KeptFolders, begin, is_used, put
from orchestrator.environments.node_requirements import MANIFEST, NodeRequirements
from orchestrator.files.disk import raise_if_full
from orchestrator.files.safe_files import read_text
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.sandbox.fetch_sources import REGISTRY

MODULES = "node_modules"
INSTALLS = {
    "npm": ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"),
    "pnpm": (
        *("pnpm", "install", "--ignore-scripts", "--no-frozen-lockfile", "--config.package-import-method=copy"),
        *("--config.extend-node-path=false", "--config.manage-package-manager-versions=false"),
    ),
    "yarn": ("yarn", "install", "--ignore-scripts", "--ignore-engines", "--non-interactive", "--no-progress"),
}
"""Without running anything of a package. What a lock file says counts, and what a manifest asks for besides."""
_SCRIPTS = ("preinstall", "install", "postinstall")
_NOTES = "told.json"
_STORE = ".store"
_PACKAGE = "package"
_CACHE = ".npm-cache"
_BUILDS = ".builds"
"""What install scripts made of packages: a compiler is not run again for each other layer with the same package."""
_MOST_CACHED = 2 * 1024**3
"""Bytes; a larger cache is begun anew."""
_USUAL = re.compile(r"https://registry\.(?:yarnpkg\.com|npmjs\.org)/")
_TOLD = 1500
"""Characters kept of what a script printed at its end."""


class Scripted(NamedTuple):
    """A package that runs code while it is installed."""

    name: str
    """The registry's, whatever name it is installed by."""
    version: str
    place: str
    """Its folder, from the layer's."""


class Notes(Value):
    """What is to be told of a layer."""

    engines: tuple[str, ...] = ()
    """That the project is for another node."""
    closed: tuple[str, ...] = ()
    """Packages whose scripts nothing allows."""
    young: tuple[str, ...] = ()
    """Those whose scripts an older version could run, as `name version`."""
    failed: str = ""
    """Packages of which a script could not do its work, and what they printed."""

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
    """Makes and keeps layers in `folder`/<digest of what is asked for>.

    One in which a script failed is for this object alone: what was missing may be there for the next one.
    """

    def __init__(self, folder: Path, runner: CommandRunner, timeout_s: float) -> None:
        self._folder, self._runner, self._timeout_s = folder, runner, timeout_s
        self._kept = KeptFolders(folder)

    async def ensure(
        self, wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str
    ) -> Path | CommandResult:
        """Returns the layer of what is asked for, or how its installation failed. `node` is the version that it is for.

        Raises OSError where the disk is full.
        """

        async def make(begun: Path, _layer: Path) -> CommandResult | None:
            await asyncio.to_thread(write_files, begun, _files(wanted, env))
            await asyncio.to_thread(_lend_cache, self._folder, begun)
            cached = {**env, "npm_config_cache": str(begun / _CACHE)}
            installed = await self._run([*INSTALLS[wanted.manager], *_place(begun, wanted.manager)], begun, cached)
            await asyncio.to_thread(_take_cache_back, self._folder, begun)
            if not installed.ok:
                return installed
            notes = await self._run_scripts(begun, wanted, scripts, env, node)
            notes = notes.model_copy(update={"engines": _engines(wanted, installed.output)})
            await asyncio.to_thread(_finish, begun, wanted, notes)
            return None

        digest = await asyncio.to_thread(_digest, wanted, scripts, env, node)
        return await self._kept.ensure(digest, make, lambda begun: notes_on(begun).failed)

    async def _run_scripts(
        self, begun: Path, wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str
    ) -> Notes:
        """Run those that are allowed; what is to be told of them."""
        found = await asyncio.to_thread(lambda: [*scripted(begun, wanted.manager)])
        allowed = [one for one in found if scripts.allowed(one.name)]
        young = [one for one in allowed if scripts.young(one.name) and await self._is_young(begun, one, env)]
        run = [one for one in allowed if one not in young]
        if run:
            await asyncio.to_thread(_allow, begun, wanted, run)
        groups = [run] if run and wanted.manager == "pnpm" else [[one] for one in run]
        failed = [told for group in groups if (told := await self._rebuild(begun, wanted.manager, group, env, node))]
        return Notes(
            closed=tuple(sorted({one.name for one in found} - {one.name for one in allowed})),
            young=tuple(f"{one.name} {one.version}" for one in young),
            failed="\n".join(failed),
        )

    async def _rebuild(
        self, begun: Path, manager: str, group: Sequence[Scripted], env: Mapping[str, str], node: str
    ) -> str:
        """Run the scripts of these packages, or take what they made for another layer; which failed, and how.

        They run in a copy, of which the packages' own folders are taken: no script changes another package. pnpm's
        folders lead into each other, so that its scripts run in the layer itself.
        """
        kept = await asyncio.to_thread(_kept_builds, self._folder / _BUILDS, begun, group, node)
        taken = await asyncio.to_thread(_take_builds, kept)
        if taken:
            return ""
        alone = manager != "pnpm"
        place = await asyncio.to_thread(_copied, begun, self._folder) if alone else begun
        try:
            argv = [*_rebuild(manager, group), *_place(place, manager)]
            ended = await self._run(argv, place, {**env, **await asyncio.to_thread(_gyp_variables)})
            if ended.ok and alone:
                await asyncio.to_thread(_put_builds, self._folder / _BUILDS, begun, place, group, kept)
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

    async def _is_young(self, begun: Path, package: Scripted, env: Mapping[str, str]) -> bool:
        """By what the registry tells; one that tells nothing is no reason."""
        told = await self._run(["npm", "view", package.name, "time", "--json"], begun, env)
        with suppress(ValueError, TypeError, AttributeError):
            times = json.loads(told.output[told.output.index("{") : told.output.rindex("}") + 1])
            born = datetime.datetime.fromisoformat(times[package.version])
            return datetime.datetime.now(datetime.UTC) - born < datetime.timedelta(days=YOUNGEST_DAYS)
        return False

    async def _run(self, argv: Sequence[str], begun: Path, env: Mapping[str, str]) -> CommandResult:
        access = Access(fetch=True)
        result = await self._runner.run(argv, cwd=begun, env=env, timeout_s=self._timeout_s, access=access)
        if not result.ok:
            await asyncio.to_thread(raise_if_full, result.output, begun)
        return result


def notes_on(layer: Path) -> Notes:
    """Returns what is to be told of it. Blocks."""
    return Notes.model_validate_json((layer / _NOTES).read_text(encoding="utf-8"))


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Our own copies of what a manager reads: nothing else of the tree is in its reach. Blocks."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def scripted(folder: Path, manager: str) -> Iterator[Scripted]:
    """Returns the packages installed in `folder` that run code while they are installed. Blocks."""
    aliases = _npm_aliases(folder) if manager == "npm" else {}
    lock = (read_text(folder, "yarn.lock") or "") if manager == "yarn" else ""
    for place in _packages(folder, MODULES):
        with suppress(ValueError, AttributeError):
            told = json.loads(read_text(folder, f"{place}/{MANIFEST}") or "")
            held = told.get("scripts") or {}
            native = told.get("gypfile", True) and (folder / place / "binding.gyp").is_file()
            if not native and not any(held.get(one) for one in _SCRIPTS):
                continue
            name = aliases.get(place, place.rpartition(f"{MODULES}/")[2])
            # What is installed by another's name is nobody whom we know.
            renamed = f"{name}@npm:" in lock
            yield Scripted("" if renamed else name, str(told.get("version", "")), place)


def _npm_aliases(folder: Path) -> dict[str, str]:
    with suppress(ValueError, AttributeError):
        packages = json.loads(read_text(folder, f"{MODULES}/.package-lock.json") or "").get("packages", {})
        return {place: str(one["name"]) for place, one in packages.items() if "name" in one}
    return {}


def _packages(folder: Path, modules: str) -> Iterator[str]:
    """Returns folders of packages below a `node_modules`; links lead to others of them, or to the repository's own."""
    with suppress(OSError), os.scandir(folder / modules) as entries:
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
    """yarn fetches from where its lock file says, which is another name of the usual registry."""
    if wanted.manager != "yarn" or "yarn.lock" not in wanted.files:
        return wanted.files
    registry = env.get("NPM_CONFIG_REGISTRY", REGISTRY).rstrip("/")
    return {**wanted.files, "yarn.lock": _USUAL.sub(f"{registry}/", wanted.files["yarn.lock"])}


def _place(begun: Path, manager: str) -> list[str]:
    """Returns where pnpm keeps its store: it must be the same one for all that it does to a folder."""
    return [f"--config.store-dir={begun / _STORE}"] if manager == "pnpm" else []


def _lend_cache(folder: Path, begun: Path) -> None:
    """npm's cache, to one installation at a time. It copies from there, so that no file is shared; no script of a
    package ever sees it, and what a kill takes along is fetched again."""
    with suppress(OSError):  # there is none yet, or another installation has it
        (folder / _CACHE).rename(begun / _CACHE)


def _take_cache_back(folder: Path, begun: Path) -> None:
    with suppress(OSError):  # pnpm and yarn make none; another one's is there already
        size = sum(path.lstat().st_size for path in (begun / _CACHE).rglob("*"))
        if size <= _MOST_CACHED:
            (begun / _CACHE).rename(folder / _CACHE)
    remove_tree(begun / _CACHE)


def _allow(begun: Path, wanted: NodeRequirements, run: Sequence[Scripted]) -> None:
    """Managers have lists of their own of whose scripts may run."""
    manifest, names = json.loads(wanted.files[MANIFEST]), sorted({one.name for one in run})
    own = {key: held for key, held in (manifest.get("pnpm") or {}).items() if "uilt" not in key}
    manifest["allowScripts"] = dict.fromkeys(names, True)
    manifest["pnpm"] = {**own, "onlyBuiltDependencies": names}
    (begun / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _rebuild(manager: str, run: Sequence[Scripted]) -> list[str]:
    if manager == "pnpm":
        return ["pnpm", "rebuild", *sorted({one.name for one in run})]
    places = (f"./{one.place}" for one in run)
    return ["npm", "rebuild", "--foreground-scripts", "--no-audit", "--no-update-notifier", *places]


def _kept_builds(folder: Path, begun: Path, group: Sequence[Scripted], node: str) -> dict[Path, Path]:
    """Where a package's folder is kept, for those in the layer; none where one cannot be told from others like it."""
    with suppress(OSError, ValueError, KeyError):
        locked = json.loads((begun / MODULES / ".package-lock.json").read_text(encoding="utf-8"))["packages"]
        kept = {}
        for one in group:
            inner = {place: held["integrity"] for place, held in locked.items() if place.startswith(f"{one.place}/")}
            content = [locked[one.place]["integrity"], sorted(inner.values()), node, platform.system()]
            content += [platform.machine(), platform.libc_ver()]
            digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
            kept[begun / one.place] = folder / digest
        return kept
    return {}


def _take_builds(kept: Mapping[Path, Path]) -> bool:
    """Whether all were there."""
    if not kept or not all(is_used(build) for build in kept.values()):
        return False
    for place, build in kept.items():
        remove_tree(place)
        shutil.copytree(build / _PACKAGE, place, symlinks=True)
    return True


def _copied(begun: Path, folder: Path) -> Path:
    copy = begin(folder)
    return Path(shutil.copytree(begun, copy, symlinks=True, dirs_exist_ok=True))


def _put_builds(folder: Path, begun: Path, copy: Path, group: Sequence[Scripted], kept: Mapping[Path, Path]) -> None:
    made = [one for one in (copy / MODULES).glob(".*") if one.is_dir() and not (begun / MODULES / one.name).exists()]
    for shared in made:  # Prisma's client is made beside its package, in `.prisma`
        shared.rename(begun / MODULES / shared.name)
    for one in group:
        remove_tree(begun / one.place)
        (copy / one.place).rename(begun / one.place)
        if not made and (build := kept.get(begun / one.place)):
            new = begin(folder)
            shutil.copytree(begun / one.place, new / _PACKAGE, symlinks=True)
            put(new, build)


def _gyp_variables() -> dict[str, str]:
    """Returns how node-gyp is run, and where it finds node's headers without fetching them."""
    quiet = {"npm_config_loglevel": "warn", "npm_config_jobs": "max"}  # else all that it says is its arguments
    headers = node_headers()
    return quiet if headers is None else {**quiet, "npm_config_nodedir": str(headers)}


def node_headers() -> Path | None:
    """Returns the folder that `node` and its `include` are installed in. Blocks."""
    program = shutil.which("node")
    prefix = Path(os.path.realpath(program)).parent.parent if program else None
    return prefix if prefix is not None and (prefix / "include" / "node" / "node.h").is_file() else None


def _engines(wanted: NodeRequirements, output: str) -> tuple[str, ...]:
    """Returns what npm says where the project is for another node; pnpm and yarn say it of packages alone."""
    name = json.loads(wanted.files[MANIFEST]).get("name")
    start = r"EBADENGINE\s+"
    whose = rf"{start}package: (?:'{re.escape(str(name))}@[^']*'|undefined),"
    said = rf"{whose}[^{{]*{start}required: \{{([^}}]*)\}}"
    found = re.search(said, output)
    return (f"the project is for another version than this machine has ({found[1].strip()})",) if found else ()


def _finish(begun: Path, wanted: NodeRequirements, notes: Notes) -> None:
    remove_tree(begun / _STORE)
    (begun / MODULES).mkdir(exist_ok=True)  # there is none when every package was optional
    (begun / _NOTES).write_text(notes.model_dump_json(), encoding="utf-8")
    (begun / "members.json").write_text(json.dumps(wanted.members), encoding="utf-8")


def _digest(wanted: NodeRequirements, scripts: InstallScripts, env: Mapping[str, str], node: str) -> str:
    """Changes with what is asked for, who may run scripts, where it is from, and the node that it is built for."""
    asked = wanted.model_dump(mode="json", include={"manager", "files", "members"})
    registries = {name: value for name, value in env.items() if name.lower().endswith("registry")}
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
"""In a folder of ours: a link to the layer's. What else stands there is the project's own."""
_used = set[str]()
"""Trees that something runs in."""


@contextlib.asynccontextmanager
async def linked(root: Path, modules: Path | None) -> AsyncIterator[None]:
    """`root`/node_modules has links to what is in `modules` meanwhile (None: nothing is done); the same in the folders
    of the workspace's other projects. The tree is left as it was.

    It is a folder and no link, for tools keep caches in it. A folder or link of that name in the tree is the project's
    own and stays in place.
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
    members = json.loads((layer / "members.json").read_text(encoding="utf-8"))
    made = []
    for folder in ("", *members):
        place = root / folder / MODULES
        if (place / _LAYER).is_symlink():  # a killed process left it
            remove_tree(place)
        inside = (root / folder).is_dir() and (root / folder).resolve().is_relative_to(root.resolve())
        if inside and (layer / folder / MODULES).is_dir() and not os.path.lexists(place):
            made.append(place)
            _link(layer, f"{folder}/{MODULES}" if folder else MODULES, root, bool(members))
            (place / _LAYER).symlink_to(layer / folder / MODULES)
    return made


def _link(layer: Path, folder: str, root: Path, members: bool) -> None:
    """What leads to a project of the workspace leads to the tree's; everything else to the layer."""
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
