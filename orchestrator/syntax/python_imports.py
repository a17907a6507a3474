"""Every import of a Python text: statements, and calls that name the module they import."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from orchestrator.syntax.python_source import Import, dotted, parse

_IMPORTERS = frozenset({"__import__", "import_module", "importorskip"})
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_SHARED = frozenset({"google", "google.cloud", "azure"})
"""Packages that hold nothing themselves: what is imported from them are packages of many distributions."""


@lru_cache(maxsize=32)
def imports(text: str) -> tuple[Import, ...] | None:
    """Returns every import anywhere in the text; None when it does not parse.

    A call counts where it names its module by a literal (`import_module("x")`). What is computed is not known from the
    text, and nothing is said of it.
    """
    tree = parse(text)
    return tuple(_found(tree)) if tree is not None else None


def _found(tree: ast.Module) -> Iterator[Import]:
    waiting: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while waiting:
        node, optional, lazy = waiting.pop()
        for item in _imported(node):
            yield item.model_copy(update={"optional": optional or item.optional, "lazy": lazy})
        guarded = _guarded(node)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inner = [(child, optional or guarded, lazy) for child in ast.iter_child_nodes(node)]
        waiting += reversed(inner)


def _imported(node: ast.AST) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(module=alias.name, line=node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        if node.level == 0 and node.module in _SHARED:
            yield from (Import(module=f"{node.module}.{name}", line=node.lineno) for name in names)
        else:
            yield Import(module=node.module or "", line=node.lineno, relative=node.level > 0, level=node.level)
    elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _IMPORTERS and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _is_module(name.value):
            yield Import(module=name.value, line=node.lineno, optional=True)


def _is_module(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _guarded(node: ast.AST) -> bool:
    """Whether the program goes on without what is imported inside: it may be missing, or is there for types only."""
    if isinstance(node, ast.Try | ast.TryStar):
        return any(not _CAUGHT.isdisjoint(_names(handler.type)) for handler in node.handlers)
    if isinstance(node, ast.With | ast.AsyncWith):
        suppressed = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any(not _CAUGHT.isdisjoint(_names(arg)) for call in suppressed for arg in call.args)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in _names(node.test)


def _names(node: ast.AST | None) -> set[str]:
    """The names in an expression; a bare `except` catches everything."""
    if node is None:
        return {"Exception"}
    inner = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return {part.id if isinstance(part, ast.Name) else part.attr for part in inner}
