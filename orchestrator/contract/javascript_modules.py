"""Modules that JavaScript and TypeScript load, against the closed world."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from orchestrator.contract import import_names
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical, major, minor
from orchestrator.syntax import javascript_source
from orchestrator.syntax.javascript_source import Loaded

_FIX = "Use Node's own modules, the project's own files by relative paths, or one of the allowed dependencies: "
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")
_TYPES = re.compile(r"\.d(\.\w+)?\.[cm]?ts$")
_MADE_BY = {
    "virtual": re.compile(r"vite|rollup|unplugin|unocss|astro|nuxt|webpack|rspack|rsbuild|esbuild"),
    "astro": re.compile(r"^astro$"),
    "vscode": re.compile(r"^@types/vscode$"),
    "$app": re.compile(r"^@sveltejs/kit$"),
    "$env": re.compile(r"^@sveltejs/kit$"),
    "$lib": re.compile(r"^@sveltejs/kit$"),
    "$service-worker": re.compile(r"^@sveltejs/kit$"),
    "server-only": re.compile(r"^next$"),
    "client-only": re.compile(r"^next$"),
    "~icons": re.compile(r"^unplugin-icons$"),
    "@theme": re.compile(r"^@docusaurus/core$"),
    "@site": re.compile(r"^@docusaurus/core$"),
    "@generated": re.compile(r"^@docusaurus/core$"),
}
"""What a build tool makes up itself → the dependency that does so: nothing of this name is ever fetched."""
_ALIAS = ("#", "@/", "~/", "@@/", "~~/")
"""No package can be called so: aliases inside a project."""


class Foreign(NamedTuple):
    """Why a module is outside the world."""

    name: str
    """The package, "" when it is none."""
    why: str


def check_modules(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Critical `contract.import` for each module that `text` loads and nothing allows; once per package.

    That is a package outside the contract, an address, a path out of the project or into what is installed, and what
    cannot be known from the text; minor where the text says what it is otherwise (`env.X || "./x.js"`). What `before`,
    the file's text at the base, loaded already is not held against it.
    """
    known = {item.module for item in javascript_source.imports(before, path)} if before is not None else set()
    outside: dict[str, tuple[Loaded, Foreign]] = {}
    for item in javascript_source.imports(text, path):
        for foreign in _foreign(world, path, item) if item.module not in known else ():
            outside.setdefault(foreign.name or item.module, (item, foreign))
    return [_finding(world, path, item, foreign) for item, foreign in outside.values()]


def _finding(world: World, path: str, item: Loaded, foreign: Foreign) -> Finding:
    where = Where(file=path, line=item.line, story=world.story_id, field=foreign.name[:160] or None)
    if item.partly:
        message = f"unchecked: `{item.module[:120]}` may import more than the text says"
        return minor("contract.import", message, where=where, fix="Name every module that it may be.")
    if item.unknown:
        message = f"what `{item.module[:120]}` imports cannot be known from the text"
        fix = "Name the module by a literal, or by a template or a path that begins with the project's own folder."
        return major("contract.import", message, where=where, fix=fix)
    allowed = ", ".join(sorted(world.dependencies)) or "none"
    message = f"`{item.module[:120]}` is imported, {foreign.why}"
    return critical("contract.import", message, where=where, fix=f"{_FIX}{allowed}.")


def _foreign(world: World, path: str, item: Loaded) -> Iterator[Foreign]:
    if item.unknown:
        yield Foreign("", "and cannot be known")
        return
    types = item.type_only or _TYPES.search(path.lower()) is not None
    for part in item.module.split("!"):  # webpack: loaders before the file
        module = f"./{part}" if item.file and _is_file_name(part) else part
        found = foreign_module(world, path, module, types=types) if module.strip() else None
        yield from [found] if found else []


def foreign_module(world: World, path: str, module: str, *, types: bool = False) -> Foreign | None:
    """Why `module`, loaded by the file at `path`, is outside the world; None when it is inside."""
    module = module.strip()
    if module.startswith((".", "/", "\\")):
        return _by_path(world, path, module)
    scheme = _SCHEME.match(module)
    if import_names.is_node_builtin(module) or _is_made(world, module):
        return None
    if scheme and scheme[1] not in {"npm", "jsr"}:
        return Foreign("", "which is no module of the project, of Node or of an allowed package")
    if not scheme and world.is_local_module(module.split("?")[0]):
        return None
    segments = unquote(module).replace("\\", "/").split("?")[0].split("/")
    if "node_modules" in segments or ".." in segments:
        return _installed(world, segments) or _left(segments)
    if module.startswith(_ALIAS):
        return None
    name = import_names.npm_package(module.split("?")[0])
    if name in world.dependencies or (types and import_names.types_package(name) in world.dependencies):
        return None
    return Foreign(name, f"but the contract allows no `{name[:120]}`")


def _by_path(world: World, path: str, module: str) -> Foreign | None:
    """A path: it must stay in the project and out of what is installed there."""
    plain = re.split(r"[?*{]", unquote(module).replace("\\", "/"))[0]
    from_root = plain == "/." or plain.startswith("/./")
    if plain.startswith("/") and not from_root:
        return None if world.ends_with(plain) else Foreign("", "but no file of the project has this path")
    target = normpath(plain[2:].lstrip("/") or ".") if from_root else normpath(join(dirname(path), plain))
    outside = target == ".." or target.startswith("../")
    return _installed(world, target.split("/")) or (Foreign("", "which leads out of the project") if outside else None)


def _installed(world: World, segments: list[str]) -> Foreign | None:
    """What is named inside a folder of installed packages, unless it is an allowed one."""
    if "node_modules" not in segments:
        return None
    last = len(segments) - 1 - segments[::-1].index("node_modules")
    name = import_names.npm_package("/".join(segments[last + 1 :]))
    if not name:
        return Foreign("", "which is inside a folder of installed packages")
    return None if name in world.dependencies else Foreign(name, f"but the contract allows no `{name[:120]}`")


def _left(segments: list[str]) -> Foreign | None:
    return Foreign("", "which leads out of the package it names") if ".." in segments else None


def _is_made(world: World, module: str) -> bool:
    made_by = _MADE_BY.get(re.split(r"[:/]", module.removeprefix("\0"))[0])
    return made_by is not None and any(made_by.search(name) for name in world.dependencies)


def _is_file_name(module: str) -> bool:
    """Whether a worker's address is a file beside the page: it has a suffix and no scheme."""
    return not _SCHEME.match(module) and not module.startswith((".", "/")) and re.search(r"\.\w+$", module) is not None
