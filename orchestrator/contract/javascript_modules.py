"""Modules that JavaScript and TypeScript load, against the story's files, packages and environment."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from orchestrator.contract.import_findings import missing_module, transitive, undeclared
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical
from orchestrator.syntax import import_names, javascript_source
from orchestrator.syntax.javascript_source import Loaded

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")
_TYPES = re.compile(r"\.d(\.\w+)?\.[cm]?ts$")
_MADE_BY = {
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
_MADE = frozenset(
    {
        "dist",
        "build",
        "out",
        "lib",
        "es",
        "esm",
        "cjs",
        "generated",
        "__generated__",
        "gen",
        "vendor",
        "$types",
        "+types",
    }
    | {".next", ".nuxt", ".svelte-kit", ".astro", ".vitepress", "coverage", "pkg", "target", "public"}
)
"""Names of folders that a build makes, where the project does not keep them itself."""


class Foreign(NamedTuple):
    """A module that is outside the project."""

    package: str = ""
    """The package that nothing allows; "" where it is none."""
    by_path: str = ""
    """Why a path leads where no module of the project is."""


def check_modules(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Returns what is said of the modules that `text` loads; each package and each file once.

    A package that nothing allows is a question, one that an allowed package requires is advice. A path that leads out
    of the project, or to a file that is nowhere, is refused. What the program can do without (`try`, UMD) is passed
    over, and so is what `before`, the file's text at the base, loaded.
    """
    known = {item.module for item in javascript_source.imports(before, path)} if before is not None else set()
    told: dict[str, Finding] = {}
    for item in javascript_source.imports(text, path):
        for finding in _judge(world, path, item) if item.module not in known else ():
            told.setdefault(f"{finding.code} {finding.where.field}", finding)
    return list(told.values())


def _judge(world: World, path: str, item: Loaded) -> Iterator[Finding]:
    where = Where(file=path, line=item.line, story=world.story_id)
    types = item.type_only or _TYPES.search(path.lower()) is not None
    for module in item.module.split("!"):  # webpack: loaders before the file
        found = foreign_module(world, path, module, types=types) if module.strip() else None
        if found is not None and found.by_path:
            message = f"`{module[:120]}` is imported, {found.by_path}"
            yield critical(
                "contract.import", message, where=where, fix="Import the project's own files by their paths."
            )
        elif found is not None and found.package in world.node_reached:
            yield transitive(module, found.package, where)
        elif found is not None and not item.optional:
            yield undeclared(world, item, found.package, where)
        elif found is None and not item.optional and _is_missing(world, path, module):
            yield missing_module(module, where)


def foreign_module(world: World, path: str, module: str, *, types: bool = False) -> Foreign | None:
    """Why `module`, loaded by the file at `path`, is none of the project, of Node or of an allowed package; or None."""
    module = module.strip()
    if module.startswith((".", "/", "\\")):
        return _by_path(world, path, module)
    scheme = _SCHEME.match(module)
    if import_names.is_node_builtin(module) or _is_made(world, module) or (scheme and scheme[1] not in {"npm", "jsr"}):
        return None  # an address is fetched by whoever runs the page, and a bundler's own scheme by nobody
    if not scheme and world.is_local_module(module.split("?")[0]):
        return None
    segments = unquote(module).replace("\\", "/").split("?")[0].split("/")
    if ".." in segments:
        return Foreign(by_path="which leads out of the package it names")
    if module.startswith(_ALIAS):
        return None
    name = import_names.npm_package(module.split("?")[0])
    allowed = name in world.dependencies or (types and import_names.types_package(name) in world.dependencies)
    return None if allowed or not name else Foreign(package=name)


def _by_path(world: World, path: str, module: str) -> Foreign | None:
    """A path: it must stay in the project; inside a folder of installed packages it names one."""
    target = _target(path, module)
    if target is None:
        return None
    segments = target.split("/")
    if "node_modules" in segments:
        last = len(segments) - 1 - segments[::-1].index("node_modules")
        name = import_names.npm_package("/".join(segments[last + 1 :]))
        return None if not name or name in world.dependencies else Foreign(package=name)
    if segments[0] == "..":
        return Foreign(by_path="which leads out of the project")
    return None


def _target(path: str, module: str) -> str | None:
    """The path from the root that a relative module stands for; None for one from a server's root."""
    plain = re.split(r"[?*{]", unquote(module).replace("\\", "/"))[0]
    return None if plain.startswith("/") else normpath(join(dirname(path), plain))


def _is_missing(world: World, path: str, module: str) -> bool:
    """Whether a relative path leads to no file of the project and of the plan, and to none that a build makes."""
    target = _target(path, module.strip()) if module.strip().startswith(".") else None
    if target is None or target in {".", ""} or target.startswith("../"):
        return False
    if world.is_script_module(target) or world.makes(target):
        return False
    parts = target.split("/")
    if any(part in _MADE and "/".join(parts[: at + 1]) not in world.folders for at, part in enumerate(parts)):
        return False
    return not any(word in target.lower() for word in ("generated", ".gen", ".node", ".wasm", "node_modules"))


def _is_made(world: World, module: str) -> bool:
    made_by = _MADE_BY.get(re.split(r"[:/]", module.removeprefix("\0"))[0])
    return made_by is not None and any(made_by.search(name) for name in world.dependencies)
