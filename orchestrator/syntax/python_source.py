"""What a Python text says by its syntax tree: what does it offer, and in which encoding does it come."""

import ast
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

from orchestrator.domain.base import Value
from orchestrator.syntax.python_newer import as_older


class Import(Value):
    """One imported module."""

    module: str
    """Dotted name; empty for `from . import x`."""
    line: int
    """1-based."""
    relative: bool = False
    level: int = 0
    """Dots before the name of a relative Python import."""
    type_only: bool = False
    """TypeScript's `import type`: nothing of it is there when the program runs."""
    optional: bool = False
    """The program goes on without it (`try … except ImportError`), or asks for it in a way of its own."""
    lazy: bool = False
    """It is imported by a function, when that is called."""


_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_ENCODING = re.compile(
    r"^(utf[-_]?8|(us[-_]?)?ascii|latin[-_]?1?|iso[-_]?8859|(cp|windows[-_]?)125)", re.IGNORECASE
)


def strange_encoding(text: str) -> str:
    """The encoding that a text says it has, where Python would read another program out of it than stands there."""
    for line in text.removeprefix("\ufeff").split("\n", 2)[:2]:
        if found := _COOKIE.match(line):
            return "" if _PLAIN_ENCODING.match(found[1]) else found[1]
        if line.strip() and not line.lstrip().startswith("#"):
            break
    return ""


MEMO_CHARS = 50_000
"""Longest text of which many trees are kept: a tree takes some hundred times the room of its text."""


ONE_AT_A_TIME = threading.Lock()
"""Python 3.11 counts the depth of all trees under construction in one place: two threads at it break each other."""


def parse(text: str) -> ast.Module | None:
    """The syntax tree, or None for a text that cannot be parsed. Never raises.

    A byte order mark is no part of the program; one in another encoding than UTF-8 or a relative of ASCII has no tree.
    Syntax newer than the running Python's is read as what it stands for: whether it may be used says `check_syntax`.

    The tree is shared with whoever parses the same text soon after: read it, never change it.
    """
    return _remembered(text) if len(text) <= MEMO_CHARS else _remembered_long(text)


def _parsed(text: str) -> ast.Module | None:
    if strange_encoding(text):
        return None
    text = text.removeprefix("\ufeff")
    tree = _tree(text)
    if tree is None and (older := as_older(text)) != text:
        return _tree(older)
    return tree


def _tree(text: str) -> ast.Module | None:
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_remembered = lru_cache(maxsize=8)(_parsed)
"""Several checks look at one delivery in a row, each by its tree."""
_remembered_long = lru_cache(maxsize=2)(_parsed)
"""Of a long file what it was and what it becomes."""


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
