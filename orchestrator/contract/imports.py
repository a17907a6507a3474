"""Imports of source files against the closed world (spec 1, "Beyond the original")."""

from orchestrator.contract.javascript_modules import check_modules
from orchestrator.contract.python_modules import check_python
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding
from orchestrator.syntax import javascript_source
from orchestrator.syntax.python_files import is_python


def is_source(path: str) -> bool:
    """Whether imports of this file are judged."""
    return is_python(path) or path.lower().endswith((*javascript_source.SUFFIXES, *javascript_source.MIXED))


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
    """What `text` imports outside the contract, by the rules of its language; [] for a file that is no source.

    What `before`, the file's text at the base, imported already is not held against it.
    """
    if is_python(path):
        return check_python(world, path, text, before)
    return check_modules(world, path, text, before) if is_source(path) else []
