"""Modules that Python files import, against the closed world."""

from posixpath import basename

from orchestrator.contract import import_names
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical, major
from orchestrator.syntax.python_files import MODULES, imports_of
from orchestrator.syntax.python_source import Import

_FIX = "Use the standard library, the project's own modules, or one of the allowed dependencies: "
_BUILDERS = {
    "setup.py": frozenset({"setuptools", "pkg_resources", "distutils", "wheel"}),
    "hatch_build.py": frozenset({"hatchling"}),
}
"""Files that only a build backend runs → what it brings."""


def check_python(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Critical `contract.import` for each package that `text` imports and nothing allows; once per package.

    A call that imports, or runs, what nobody can know from the text is a major one: it could be anything. What
    `before`, the file's text at the base, imported already is not held against it. A text that cannot be read is a
    major `contract.unreadable`: nothing is known about its imports.
    """
    found = imports_of(path, text)
    if found is None:
        message = "the file cannot be parsed, so its imports are unknown"
        return [major("contract.unreadable", message, where=Where(file=path), fix="Write the whole file anew.")]
    old = imports_of(path, before) if before is not None else ()
    known = {(item.module, item.relative, item.unchecked) for item in old or ()}
    fresh = [item for item in found if (item.module, item.relative, item.unchecked) not in known]
    foreign: dict[str, Import] = {}
    for item in fresh:
        name = _foreign(world, path, item.module) if item.module and not item.relative else ""
        if name:
            foreign.setdefault(name, item)
    unchecked = {item.unchecked: item for item in reversed(fresh) if item.unchecked}
    return [
        *(_unchecked(world, path, item) for item in unchecked.values()),
        *(_outside(world, path, name, item) for name, item in foreign.items()),
    ]


def _unchecked(world: World, path: str, item: Import) -> Finding:
    message = f"what `{item.unchecked[:160]}` imports cannot be known from the file"
    fix = "Name the module by a literal, or by a text that begins with the project's own package."
    return major("contract.import", message, where=Where(file=path, line=item.line, story=world.story_id), fix=fix)


def _outside(world: World, path: str, name: str, item: Import) -> Finding:
    allowed = ", ".join(sorted(world.dependencies)) or "none"
    return critical(
        "contract.import",
        f"`{item.module[:120]}` is imported, but the contract allows no `{name}`",
        where=Where(file=path, line=item.line, story=world.story_id, field=name),
        fix=f"{_FIX}{allowed}.",
    )


def _foreign(world: World, path: str, module: str) -> str:
    """The distribution a module would need, "" when it is there."""
    if module.split(".")[0] in _BUILDERS.get(basename(path).lower(), ()):
        return ""
    if import_names.is_python_builtin(module) or _is_local(world, path, module.split(".")[0]):
        return ""
    return "" if import_names.python_allowed(module, world.dependencies) else module.split(".")[0]


def _is_local(world: World, path: str, top: str) -> bool:
    """Whether an allowed file makes `top` importable: from a folder above the importing file, from one that is a
    Python project, or from a `src` there.
    """
    folders = path.split("/")[:-1]
    above = ["".join(f"{folder}/" for folder in folders[:depth]) for depth in range(len(folders) + 1)]
    for root in dict.fromkeys((*above, *world.python_roots)):
        for start in (f"{root}{top}", f"{root}src/{top}"):
            if start in world.python_folders or any(f"{start}{suffix}" in world.files for suffix in MODULES):
                return True
    return False
