"""Modules that Python, JavaScript and TypeScript files load, against the story's files, packages and environment."""

import re
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from orchestrator.code.check import is_generated, is_well_formed
from orchestrator.code.javascript import source
from orchestrator.code.javascript.tree import SUFFIXES
from orchestrator.code.manifests import distributions
from orchestrator.code.python.imports import MODULES, imports_of, is_python
from orchestrator.code.python.source import Import
from orchestrator.contract.world import World
from orchestrator.core.finding import Finding, Where, critical, major, minor, policy

_SHOWN = 120
"""Characters of a name."""


def undeclared(world: World, item: Import, name: str, where: Where) -> Finding:
    """A package that nothing declares: the architect is asked, unless only a function imports it when it runs."""
    allowed = ", ".join(sorted(world.dependencies)) or "none"
    message = f"`{item.module[:_SHOWN]}` is imported, but nothing declares `{name[:_SHOWN]}`"
    fix = f"Declare the package, or use one of the declared ones: {allowed}."
    place = where.model_copy(update={"field": name[:160]})
    if item.lazy:
        return minor("contract.import", message, where=place, fix=fix)
    return policy("contract.import", message, where=place, fix=fix)


def transitive(module: str, name: str, where: Where) -> Finding:
    """Returns the finding on a package that is installed only because another one requires it."""
    message = (
        f"`{module[:_SHOWN]}` is imported, and `{name[:_SHOWN]}` is there only because another package requires it"
    )
    place = where.model_copy(update={"field": name[:160]})
    return minor("contract.transitive", message, where=place, fix=f"Declare `{name[:_SHOWN]}` beside it.")


def missing_module(module: str, where: Where) -> Finding:
    """Returns the finding on a missing module of the project itself."""
    message = f"`{module[:_SHOWN]}` is imported, but the project has no such file, and the plan brings none"
    place = where.model_copy(update={"field": module[:160]})
    fix = "Import a module that is there, or put what is needed into one of this task's files."
    return major("contract.missing_module", message, where=place, fix=fix)


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
# npm allows no package whose name begins so.
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
    known = {item.module for item in source.imports(before, path)} if before is not None else set()
    told: dict[str, Finding] = {}
    for item in source.imports(text, path):
        for finding in _judge(world, path, item) if item.module not in known else ():
            told.setdefault(f"{finding.code} {finding.where.field}", finding)
    return list(told.values())


def _judge(world: World, path: str, item: Import) -> Iterator[Finding]:
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
    if distributions.is_node_builtin(module) or _is_made(world, module) or (scheme and scheme[1] not in {"npm", "jsr"}):
        return None  # the browser fetches an address, and a bundler's own scheme is not fetched
    if not scheme and world.is_local_module(module.split("?")[0]):
        return None
    segments = unquote(module).replace("\\", "/").split("?")[0].split("/")
    if ".." in segments:
        return Foreign(by_path="which leads out of the package it names")
    if module.startswith(_ALIAS):
        return None
    name = distributions.npm_package(module.split("?")[0])
    allowed = name in world.dependencies or (types and distributions.types_package(name) in world.dependencies)
    return None if allowed or not name else Foreign(package=name)


def _by_path(world: World, path: str, module: str) -> Foreign | None:
    """Checks an imported path: it must stay in the project; inside a folder of installed packages it names one."""
    target = _target(path, module)
    if target is None:
        return None
    segments = target.split("/")
    if "node_modules" in segments:
        last = len(segments) - 1 - segments[::-1].index("node_modules")
        name = distributions.npm_package("/".join(segments[last + 1 :]))
        return None if not name or name in world.dependencies else Foreign(package=name)
    if segments[0] == "..":
        return Foreign(by_path="which leads out of the project")
    return None


def _target(path: str, module: str) -> str | None:
    """The path from the root that a relative module stands for; None for one from a server's root."""
    # A query, a glob or a pattern of a bundler ends the path.
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


_BUILDERS = {
    "setup.py": frozenset({"setuptools", "pkg_resources", "distutils", "wheel"}),
    "hatch_build.py": frozenset({"hatchling"}),
}
"""Files that only a build backend runs → what it brings."""
_COMPILED = ("_pb2", "_pb2_grpc")
"""Ends of names of modules that a compiler writes."""


def check_python(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Returns what is said of the modules that `text` imports; each package and each module once.

    A package that nothing allows is a question, one that an allowed package requires is advice, and a module of the
    project itself that is nowhere is refused. What the program can do without is passed over, and so is what `before`,
    the text at the base, imported. A text that cannot be read is a major `contract.unreadable`, unless a tool fills it
    in, or it is a delivery's that does not parse, which `delivery.syntax` tells.
    """
    found = imports_of(path, text)
    if found is None:
        if is_generated(path, text) or (not world.complete and not is_well_formed(path, text)):
            return []
        message = "the file cannot be parsed, so its imports are unknown"
        return [major("contract.unreadable", message, where=Where(file=path), fix="Rewrite the whole file.")]
    known = {(item.module, item.level) for item in (imports_of(path, before) or () if before is not None else ())}
    fresh = [item for item in found if (item.module, item.level) not in known and not item.optional]
    told: dict[str, Finding] = {}
    for item in fresh:
        for finding in _judge_python(world, path, item):
            told.setdefault(f"{finding.code} {finding.where.field}", finding)
    return list(told.values())


def _judge_python(world: World, path: str, item: Import) -> Iterator[Finding]:
    where = Where(file=path, line=item.line, story=world.story_id)
    top = item.module.split(".")[0]
    if item.relative:
        folder = path.split("/")[: -item.level]
        if (
            item.module
            and len(path.split("/")) >= item.level
            and _no_module(world, path, item.module, ["/".join(folder)])
        ):
            yield missing_module(f"{'.' * item.level}{item.module}", where)
        return
    if top in _BUILDERS.get(basename(path).lower(), ()) or distributions.is_python_builtin(item.module):
        return
    bringing = world.installed.python_bringing(item.module)
    if distributions.python_allowed(item.module, world.dependencies) or bringing & world.dependencies:
        return
    if roots := _roots(world, path, top):
        # A package's own folder is not on the path: a module found only there may be a package of the same name.
        sure = [root for root in roots if not world.is_package(root)]
        if sure and not bringing and top not in distributions.NAMESPACES and _no_module(world, path, item.module, sure):
            yield missing_module(item.module, where)
    elif bringing & world.python_reached:
        yield transitive(item.module, min(bringing & world.python_reached), where)
    else:
        name = min(bringing, default=distributions.python_distribution(top))
        yield undeclared(world, item, name, where)


def _roots(world: World, path: str, top: str) -> list[str]:
    """Folders from which an allowed file makes `top` importable: above the importing file, a Python project, its `src`.

    A folder without `__init__` is a package as well (PEP 420).
    """
    folders = path.split("/")[:-1]
    above = ["".join(f"{folder}/" for folder in folders[:depth]) for depth in range(len(folders) + 1)]
    starts = dict.fromkeys(f"{root}{inner}" for root in (*above, *world.python_roots) for inner in ("", "src/"))
    return [start.rstrip("/") for start in starts if _stands(world, f"{start}{top}")]


def _stands(world: World, stem: str) -> bool:
    return stem in world.python_folders or any(f"{stem}{suffix}" in world.files for suffix in MODULES)


def _no_module(world: World, path: str, module: str, roots: list[str]) -> bool:
    """Whether no file can be the module: not in one of the folders, not made by a build, and nowhere else by its name.

    A program that puts other folders on its path finds its modules there.
    """
    inside = module.replace(".", "/")
    stems = [f"{root}/{inside}".lstrip("/") for root in roots]
    if any(_stands(world, stem) for stem in stems) or world.ends_with_module(inside):
        return False
    last = inside.rpartition("/")[2]
    # `_speedups` of `_speedups.c`, `_version` of a build backend: what is private may be compiled or written at build.
    if last.startswith("_") or last in {"version", "__version__"} or last.endswith(_COMPILED) or world.compiles(path):
        return False
    return not any(world.makes(f"{stem}{suffix}") for stem in stems for suffix in (".py", ""))


_TEMPLATE = re.compile(r"(^|/)(_?templates?|(__)?fixtures(__)?|cookiecutter)/|\{\{|\{%")


def is_source(path: str) -> bool:
    """Whether imports of this file are judged."""
    return is_python(path) or path.lower().endswith((*SUFFIXES, *source.MIXED))


def seen_as(path: str, text: str) -> str:
    """Returns the path with the suffix that a script without one would have by its first line, else as it is."""
    first = text.split("\n", 1)[0]
    if "." in path.rsplit("/", 1)[-1] or not first.startswith("#!"):
        return path
    for word, suffix in (("python", ".py"), ("node", ".js"), ("deno", ".ts"), ("bun", ".ts"), ("sh", ".sh")):
        if word in first:
            return f"{path}{suffix}"
    return path


def check_imports(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Returns what is said of the modules that `text` imports, by the rules of its language; [] for no source.

    What `before`, the file's text at the base, imported already is not held against it. Of a template that becomes
    another project's file it is not known beside what it will stand.
    """
    if is_python(path):
        found = check_python(world, path, text, before)
    else:
        found = check_modules(world, path, text, before) if is_source(path) else []
    return [one for one in found if one.code != "contract.missing_module" or not _TEMPLATE.search(path)]
