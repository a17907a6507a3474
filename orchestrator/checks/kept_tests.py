"""What of a test file is lost in a longer text of it, and one text of two that only added to it. Pure."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from orchestrator.code.check import check_syntax
from orchestrator.code.grammar import node_text
from orchestrator.code.javascript.tests import find_tests
from orchestrator.code.javascript.tree import SUFFIXES, root
from orchestrator.code.python import source
from orchestrator.code.python.source import dotted
from orchestrator.core.delivery import Conflict

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


# ---- one test file that two stories added to

MAX_LINES = 5_000
"""Of a side; comparing takes time with their product."""
_NAMED_LOADS = re.compile(r"^(import\s*\{)([^{}]*)(\}\s*from\s*['\"].+['\"];?)$")
_LOADS = re.compile(r"^(?:import|from)\s")


class _Change(NamedTuple):
    """Lines in place of those of the base from `start` to `end`."""

    start: int
    end: int
    lines: list[str]


def joined(conflict: Conflict) -> str | None:
    """Returns the file with what both sides added; None where one of them changed what was there, or it is not sure."""
    path, sides = conflict.path, (conflict.result, conflict.story)
    if conflict.base is not None and any(lost_parts(path, conflict.base, side) for side in sides):
        return None
    first, second = (side.splitlines() for side in sides)
    if max(len(first), len(second)) > MAX_LINES:
        return None
    if conflict.base is None:
        # Twice imported is an error in JavaScript.
        merged: list[str] | None = [
            *first,
            *(line for line in second if not _LOADS.match(line) or line not in first),
        ]
    else:
        base = conflict.base.splitlines()
        merged = _merged(base, [*_changes(base, first)], [*_changes(base, second)])
    text = "\n".join(merged) + "\n" if merged is not None else ""
    whole = text and not any(lost_parts(path, side, text) for side in sides)
    return text if whole and not check_syntax(path, text, code="suite.syntax") else None


def _changes(base: Sequence[str], side: Sequence[str]) -> Iterator[_Change]:
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, base, side, autojunk=False).get_opcodes():
        if kind != "equal":
            yield _Change(i1, i2, [*side[j1:j2]])


def _merged(base: Sequence[str], first: list[_Change], second: list[_Change]) -> list[str] | None:
    out: list[str] = []
    at = 0
    while first or second:
        one, two = (changes[0] if changes else None for changes in (first, second))
        if one is not None and two is not None and _touch(one, two):
            lines = _both(base, one, two)
            if lines is None:
                return None
            start, end = min(one.start, two.start), max(one.end, two.end)
            first.pop(0)
            second.pop(0)
        else:
            ahead = first if two is None or (one is not None and one.start <= two.start) else second
            start, end, lines = ahead.pop(0)
        if start < at:
            return None
        out += [*base[at:start], *lines]
        at = end
    return [*out, *base[at:]]


def _touch(one: _Change, two: _Change) -> bool:
    return one.start == two.start or (one.start < two.end and two.start < one.end)


def _both(base: Sequence[str], one: _Change, two: _Change) -> list[str] | None:
    """Returns the lines of two changes of one place: both additions, or one import of both's names."""
    if one.lines == two.lines and (one.start, one.end) == (two.start, two.end):
        return one.lines
    if one.start == one.end and two.start == two.end:
        return [*one.lines, *two.lines]
    if (one.start, one.end) != (two.start, two.end) or len(one.lines) != len(two.lines):
        return None
    pairs = [_one_import(first, second) for first, second in zip(one.lines, two.lines, strict=True)]
    return [line for lines in pairs if lines is not None for line in lines] if None not in pairs else None


def _one_import(first: str, second: str) -> list[str] | None:
    ours, theirs = _NAMED_LOADS.match(first), _NAMED_LOADS.match(second)
    if ours and theirs and ours[3] == theirs[3]:
        names = dict.fromkeys(name.strip() for part in (ours[2], theirs[2]) for name in part.split(",") if name.strip())
        return [f"{ours[1]} {', '.join(names)} {ours[3]}"]
    if first == second:
        return [first]
    return [first, second] if _LOADS.match(first) and _LOADS.match(second) and "{" not in first + second else None
