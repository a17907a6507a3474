"""Modules that Python files import, against the story's files, packages and environment."""

from collections.abc import Iterator
from posixpath import basename

from orchestrator.contract.import_findings import missing_module, transitive, undeclared
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax import import_names
from orchestrator.syntax.check import is_well_formed
from orchestrator.syntax.python_files import MODULES, imports_of
from orchestrator.syntax.python_source import Import

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
    the text at the base, imported. A text that cannot be read is a major `contract.unreadable`, unless it is a
    delivery's that does not parse, which `delivery.syntax` tells.
    """
    found = imports_of(path, text)
    if found is None:
        if not world.complete and not is_well_formed(path, text):
            return []
        message = "the file cannot be parsed, so its imports are unknown"
        return [major("contract.unreadable", message, where=Where(file=path), fix="Write the whole file anew.")]
    known = {(item.module, item.level) for item in (imports_of(path, before) or () if before is not None else ())}
    fresh = [item for item in found if (item.module, item.level) not in known and not item.optional]
    told: dict[str, Finding] = {}
    for item in fresh:
        for finding in _judge(world, path, item):
            told.setdefault(f"{finding.code} {finding.where.field}", finding)
    return list(told.values())


def _judge(world: World, path: str, item: Import) -> Iterator[Finding]:
    where = Where(file=path, line=item.line, story=world.story_id)
    top = item.module.split(".")[0]
    if item.relative:
        folder = path.split("/")[: -item.level]
        if (
            item.module
            and len(path.split("/")) >= item.level
            and _is_missing(world, path, item.module, ["/".join(folder)])
        ):
            yield missing_module(f"{'.' * item.level}{item.module}", where)
        return
    if top in _BUILDERS.get(basename(path).lower(), ()) or import_names.is_python_builtin(item.module):
        return
    bringing = world.installed.python_bringing(item.module)
    if import_names.python_allowed(item.module, world.dependencies) or bringing & world.dependencies:
        return
    if roots := _roots(world, path, top):
        # A package's own folder is on nobody's path: what is found there only may be a package of the same name.
        sure = [root for root in roots if not world.is_package(root)]
        if sure and not bringing and top not in import_names.NAMESPACES and _is_missing(world, path, item.module, sure):
            yield missing_module(item.module, where)
    elif bringing & world.python_reached:
        yield transitive(item.module, min(bringing & world.python_reached), where)
    else:
        name = min(bringing, default=import_names.python_distribution(top))
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


def _is_missing(world: World, path: str, module: str, roots: list[str]) -> bool:
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
