"""Imports of source files against the closed world (spec 1, "Beyond the original")."""

from collections.abc import Iterable

from orchestrator.contract import import_names
from orchestrator.contract.javascript_modules import check_modules
from orchestrator.contract.world import PYTHON_SUFFIXES, World
from orchestrator.domain.findings import Finding, Where, critical, major, minor
from orchestrator.syntax import javascript_source
from orchestrator.syntax.python_imports import imports as python_imports
from orchestrator.syntax.python_source import Import

_FIX = "Use the standard library, the project's own modules, or one of the allowed dependencies: "


def is_source(path: str) -> bool:
    """Whether imports of this file are judged."""
    return path.lower().endswith((*PYTHON_SUFFIXES, *javascript_source.SUFFIXES, *javascript_source.MIXED))


def seen_as(path: str, text: str) -> str:
    """The path with the suffix that a script without one would have by its first line, else as it is."""
    first = text.split("\n", 1)[0]
    if "." in path.rsplit("/", 1)[-1] or not first.startswith("#!"):
        return path
    for word, suffix in (("python", ".py"), ("node", ".js"), ("deno", ".ts"), ("bun", ".ts"), ("sh", ".sh")):
        if word in first:
            return f"{path}{suffix}"
    return path


def check_imports(world: World, path: str, text: str, before: str | None) -> list[Finding]:
    """Critical `contract.import` for each package that `text` imports and nothing allows; once per package.

    What `before`, the file's text at the base, imported already is not held against it. A text that cannot be read is
    a major `contract.unreadable`: nothing is known about its imports.
    """
    if not is_source(path):
        return []
    if not path.lower().endswith(PYTHON_SUFFIXES):
        return check_modules(world, path, text, before)
    found = python_imports(text)
    if found is None:
        message = "the file cannot be parsed, so its imports are unknown"
        return [major("contract.unreadable", message, where=Where(file=path), fix="Write the whole file anew.")]
    known = {(item.module, item.relative, item.unchecked) for item in _imports(before)}
    found = tuple(item for item in found if (item.module, item.relative, item.unchecked) not in known)
    foreign: dict[str, Import] = {}
    for item in found:
        if item.relative or not item.module:
            continue
        name = _foreign_python(world, path, item.module)
        if name:
            foreign.setdefault(name, item)
    unchecked = {item.unchecked: item for item in reversed(found) if item.unchecked}
    return [
        *(_unchecked(world, path, item) for item in unchecked.values()),
        *(_outside(world, path, name, item) for name, item in foreign.items()),
    ]


def _unchecked(world: World, path: str, item: Import) -> Finding:
    message = f"unchecked: what `{item.unchecked[:160]}` imports cannot be known from the file"
    fix = "Look whether it can be anything but the project's own modules and allowed packages, or name the module."
    return minor("contract.import", message, where=Where(file=path, line=item.line, story=world.story_id), fix=fix)


def _outside(world: World, path: str, name: str, item: Import) -> Finding:
    allowed = ", ".join(sorted(world.dependencies)) or "none"
    return critical(
        "contract.import",
        f"`{item.module[:120]}` is imported, but the contract allows no `{name}`",
        where=Where(file=path, line=item.line, story=world.story_id, field=name),
        fix=f"{_FIX}{allowed}.",
    )


def _imports(text: str | None) -> Iterable[Import]:
    return (python_imports(text) if text is not None else None) or ()


def _foreign_python(world: World, path: str, module: str) -> str:
    """The distribution a module would need, "" when it is there."""
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
            if start in world.python_folders or any(f"{start}{suffix}" in world.files for suffix in PYTHON_SUFFIXES):
                return True
    return False
