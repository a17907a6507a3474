"""Imports of source files against the closed world."""

import re

from orchestrator.contract.javascript_modules import check_modules
from orchestrator.contract.python_modules import check_python
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding
from orchestrator.syntax import javascript_source
from orchestrator.syntax.python_files import is_python

_TEMPLATE = re.compile(r"(^|/)(_?templates?|(__)?fixtures(__)?|cookiecutter)/|\{\{|\{%")


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
    """Returns what is said of the modules that `text` imports, by the rules of its language; [] for no source.

    What `before`, the file's text at the base, imported already is not held against it. Of a template that becomes
    another project's file it is not known beside what it will stand.
    """
    if is_python(path):
        found = check_python(world, path, text, before)
    else:
        found = check_modules(world, path, text, before) if is_source(path) else []
    return [one for one in found if one.code != "contract.missing_module" or not _TEMPLATE.search(path)]
