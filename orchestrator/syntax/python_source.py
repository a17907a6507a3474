"""What a Python text says by its syntax tree: does it compile, what does it offer, what does it import."""

import ast
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, Where, major

_IMPORTERS = frozenset({"__import__", "import_module", "run_module", "importorskip"})


class Import(Value):
    """One imported module."""

    module: str
    """Dotted name; empty for `from . import x`."""
    line: int
    """1-based."""
    relative: bool = False
    type_only: bool = False
    """TypeScript's `import type`: nothing of it is there when the program runs."""


def problem(text: str, path: str, *, code: str = "content.syntax") -> Finding | None:
    """A major finding with line and column when `text` does not compile, else None. Never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, path.replace("\0", ""), "exec", dont_inherit=True)
    except SyntaxError as error:
        place = Where(file=path, line=error.lineno or None, column=error.offset or None)
        return major(code, f"Python does not compile: {error.msg}", where=place, fix="Write the whole file anew.")
    except ValueError as error:
        return major(code, f"Python does not compile: {error}", where=Where(file=path), fix="Remove the character.")
    except (RecursionError, MemoryError):
        message = "Python does not compile: it is nested too deeply"
        return major(code, message, where=Where(file=path), fix="Write it with less nesting.")
    return None


MEMO_CHARS = 50_000
"""Longest text whose tree is kept: a tree takes some hundred times the room of its text."""


_ONE_AT_A_TIME = threading.Lock()
"""Python 3.11 counts the depth of all trees under construction in one place: two threads at it break each other."""


def parse(text: str) -> ast.Module | None:
    """The syntax tree, or None for a text that cannot be parsed. Never raises.

    The tree is shared with whoever parses the same text soon after: read it, never change it.
    """
    return _remembered(text) if len(text) <= MEMO_CHARS else _parsed(text)


def _parsed(text: str) -> ast.Module | None:
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_remembered = lru_cache(maxsize=8)(_parsed)
"""Several checks look at one delivery in a row, each by its tree."""


def exported_names(text: str) -> tuple[str, ...]:
    """Names another module may import, in order of appearance; () when the text does not parse.

    `__all__` decides when it is a list of literals; else public functions, classes and assigned names. A module that
    defines nothing of its own (a package's `__init__`) offers what it imports by name.
    """
    tree = parse(text)
    if tree is None:
        return ()
    statements = list(top_level(tree.body))
    listed = _dunder_all(statements)
    if listed is not None:
        return _public(listed, underscores=True)
    names = _public(name for statement in statements for name in _defined(statement))
    return names or _public(name for statement in statements for name in _reexported(statement))


@lru_cache(maxsize=32)
def imports(text: str) -> tuple[Import, ...] | None:
    """Every import anywhere, also by a call with a literal (`import_module("x")`); None when it does not parse."""
    tree = parse(text)
    if tree is None:
        return None
    importers = _importers(tree)
    return tuple(found for node in ast.walk(tree) for found in _imports_of(node, importers))


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a scope with those inside its `if`, `try`, `with` and loops, but not inside definitions."""
    waiting = list(reversed(list(body)))  # a stack, because a chain of elifs nests as deep as it is long
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner: list[ast.stmt] = list(getattr(statement, "body", ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            inner += part.body
        inner += [*getattr(statement, "orelse", ()), *getattr(statement, "finalbody", ())]
        waiting += reversed(inner)


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of names, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _public(names: Iterable[str], *, underscores: bool = False) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if underscores or not name.startswith("_")))


def _dunder_all(statements: Iterable[ast.stmt]) -> list[str] | None:
    result: list[str] | None = None
    for statement in statements:
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        else:
            continue
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            continue
        value = statement.value
        if not isinstance(value, ast.List | ast.Tuple):
            return None
        names = [item.value for item in value.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        result = names if not isinstance(statement, ast.AugAssign) else [*(result or ()), *names]
    return result


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    elif sys.version_info >= (3, 12) and isinstance(statement, ast.TypeAlias):
        yield statement.name.id


def _reexported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.ImportFrom) and (
        statement.level or (statement.module or "").split(".")[0] not in sys.stdlib_module_names
    ):
        yield from (alias.asname or alias.name for alias in statement.names if alias.name != "*")


def _imports_of(node: ast.AST, importers: frozenset[str]) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(module=alias.name, line=node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield Import(module=node.module or "", line=node.lineno, relative=node.level > 0)
    elif isinstance(node, ast.Call):
        yield from _called_imports(node, importers)


def _called_imports(node: ast.Call, importers: frozenset[str]) -> Iterator[Import]:
    """`import_module("x")` and its like, and what `exec("import x")` would import."""
    called = dotted(node.func).split(".")[-1]
    if called not in importers and called not in {"exec", "eval"}:
        return
    first = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "name"), None)
    text = _constant(first)
    if called in importers and text:
        yield Import(module=text.lstrip("."), line=node.lineno, relative=text.startswith("."))
    elif text:
        yield from (found.model_copy(update={"line": node.lineno}) for found in imports(text) or ())


def _constant(node: ast.expr | None) -> str:
    """A text that stands there whole, also in pieces joined by `+`; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _constant(node.left), _constant(node.right)
        return left + right if left and right else ""
    return ""


def _importers(tree: ast.Module) -> frozenset[str]:
    """Names that import what they are called with, also under another name given here."""
    renamed = (
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in {"importlib", "runpy"}
        for alias in node.names
        if alias.asname and alias.name in _IMPORTERS
    )
    return frozenset({*_IMPORTERS, *renamed})
