"""What of a test file is lost in a longer text of it: adding to it is fine, and adding rows to its tables. Pure."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.code.grammar import node_text
from orchestrator.code.javascript.tests import find_tests
from orchestrator.code.javascript.tree import SUFFIXES, root
from orchestrator.code.python import source
from orchestrator.code.python.source import dotted

MOST_TOLD = 3
_TABLES = (ast.List, ast.Tuple, ast.Set)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Lines that a longer list of imports changes.
_IMPORT = re.compile(r"^\s*(?:import\b|from\b|export\b|\}\s*from\b|(?:const|let|var)\s.*\brequire\()|^\s*[\w, {}]*,?$")


def lost_parts(path: str, before: str, after: str) -> list[str]:
    """Returns names of what `after` changes or lacks, the first few; nothing when it only adds."""
    old, new = (source.parse_python(text) if path.endswith(".py") else None for text in (before, after))
    found = _lost(old.body, new.body) if old is not None and new is not None else _lost_lines(path, before, after)
    names = [*dict.fromkeys(found)]
    return names if len(names) <= MOST_TOLD else [*names[:MOST_TOLD], f"and {len(names) - MOST_TOLD} more"]


def _lost(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> Iterator[str]:
    """Yields names of statements of a module or class that are not there any more as they were."""
    imports = set(_imported(after))
    yield from (name for name in _imported(before) if name not in imports)
    left = Counter(ast.dump(node) for node in after)
    for node in before:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node):
            continue
        dump = ast.dump(node)
        if left[dump]:
            left[dump] -= 1
            continue
        alike = [other for other in after if _name(other) == _name(node) and type(other) is type(node)]
        # The last one counts where there are two of a name, and hides the other.
        if not _name(node) or len(alike) != 1 or not _extends(node, alike[0]):
            yield _name(node) or f"line {node.lineno}"
    names = Counter(_name(node) for node in before if _name(node))
    yield from (
        name
        for name, count in Counter(filter(None, map(_name, after))).items()
        if name in names and count > names[name]
    )


def _imported(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name} as {alias.asname}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"from {'.' * node.level}{node.module or ''} import"
            yield from (f"{start} {alias.name} as {alias.asname}" for alias in node.names)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _name(node: ast.stmt) -> str:
    if isinstance(node, _Function | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _extends(node: ast.stmt, other: ast.stmt) -> bool:
    """Returns whether `other` is the same but for members of a class, rows of a table or of a parametrized test."""
    if isinstance(node, ast.ClassDef) and isinstance(other, ast.ClassDef):
        heads = ([ast.dump(part) for part in (*one.bases, *one.keywords, *one.decorator_list)] for one in (node, other))
        return next(heads) == next(heads) and not [*_lost(node.body, other.body)]
    if isinstance(node, _Function) and isinstance(other, _Function):
        same = [ast.dump(one) for one in node.body] == [ast.dump(one) for one in other.body]
        marks = zip(node.decorator_list, other.decorator_list, strict=False)
        return (
            same
            and ast.dump(node.args) == ast.dump(other.args)
            and len(node.decorator_list) == len(other.decorator_list)
            and all(_same_mark(one, two) for one, two in marks)
        )
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(other, ast.Assign | ast.AnnAssign):
        return node.value is not None and other.value is not None and _longer(node.value, other.value)
    return False


def _same_mark(one: ast.expr, two: ast.expr) -> bool:
    if ast.dump(one) == ast.dump(two):
        return True
    if not (isinstance(one, ast.Call) and isinstance(two, ast.Call)) or not dotted(one.func).endswith("parametrize"):
        return False
    words = ([ast.dump(word) for word in call.keywords if word.arg != "ids"] for call in (one, two))
    return (
        ast.dump(one.func) == ast.dump(two.func)
        and len(one.args) == len(two.args)
        and next(words) == next(words)
        and all(ast.dump(a) == ast.dump(b) or _longer(a, b) for a, b in zip(one.args, two.args, strict=True))
    )


def _longer(one: ast.expr, two: ast.expr) -> bool:
    """Returns whether a literal table has all its rows still, and maybe more."""
    if isinstance(one, ast.Dict) and isinstance(two, ast.Dict):
        rows = (
            [(ast.dump(k) if k else "", ast.dump(v)) for k, v in zip(d.keys, d.values, strict=True)] for d in (one, two)
        )
        return not set(next(rows)) - set(next(rows))
    if not isinstance(one, _TABLES) or type(one) is not type(two):
        return False
    assert isinstance(two, _TABLES)
    return not Counter(map(ast.dump, one.elts)) - Counter(map(ast.dump, two.elts))


def _lost_lines(path: str, before: str, after: str) -> Iterator[str]:
    """Yields lines that are gone, and tests of JavaScript whose function is another."""
    lines = iter([_bare(line) for line in after.splitlines()])
    for number, line in enumerate(before.splitlines(), start=1):
        if line.strip() and not _IMPORT.match(line) and _bare(line) not in lines:
            yield f"line {number}"
            return
    if path.endswith(SUFFIXES):
        left = Counter(node_text(test.body) for test in find_tests(root(after, path)))
        for test in find_tests(root(before, path)):
            if not left[node_text(test.body)]:
                yield test.name or f"line {test.line}"
            left[node_text(test.body)] -= 1


def _bare(line: str) -> str:
    """Returns a line without what a longer list changes at its end."""
    return line.strip().rstrip(",;")
