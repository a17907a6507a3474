"""Files that are taken away though the same task's files still import them."""

from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, join, normpath, splitext

from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax import javascript_source, javascript_tree, python_imports

CODE = "delivery.gone_import"
_PYTHON = (".py", ".pyi")
_ROOTS = ("", "src")
"""Folders that Python's modules may be named from."""


def check_gone(delivery: Delivery, before: Mapping[str, str]) -> list[Finding]:
    """Major for each file, delivered or left as it was in `before`, that imports a removed one by its full name.

    Files of other tasks are not looked at: a later task may change them. Never raises.
    """
    if not delivery.removed:
        return []
    after = {path: text for path, text in before.items() if path not in delivery.removed}
    after |= {change.path: change.content for change in delivery.files}
    there = {_module(path) for path in after}
    gone = {_module(path): path for path in delivery.removed if _module(path) not in there}
    return [
        major(
            CODE,
            f"`{path}` imports `{gone[module]}`, which is taken away",
            where=Where(file=path),
            fix=f"Change the import in `{path}`, or keep `{gone[module]}`.",
        )
        for path, text in sorted(after.items())
        for module in dict.fromkeys(_imported(path, text))
        if module in gone
    ]


def _module(path: str) -> str:
    """What imports of a file name, as a path: without suffix, a package's own file as its folder."""
    stem = splitext(path)[0]
    return dirname(stem) if basename(stem) in {"index", "__init__"} else stem


def _imported(path: str, text: str) -> Iterator[str]:
    """The modules of the project that a text may import, as `_module` tells them."""
    if path.lower().endswith(_PYTHON):
        for item in python_imports.imports(text) or ():
            dotted = item.module.replace(".", "/")
            roots = (dirname(path),) if item.relative else _ROOTS
            yield from (normpath(join(root, dotted)) for root in roots if dotted)
    elif path.lower().endswith(tuple(javascript_tree.SUFFIXES)):
        for found in javascript_source.imports(text, path):
            if found.module.startswith("."):
                target = normpath(join(dirname(path), found.module))
                yield target if splitext(target)[1] not in javascript_tree.SUFFIXES else _module(target)
