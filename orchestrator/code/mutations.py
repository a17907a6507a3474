"""Other expectations for the tests of a suite: each changed test has to fail where the original one passed.

A mutation changes what one test expects and nothing else: not its name, not its arguments, and as little as possible
of what it does before. A runner that reports a mutated test as passed reports what it likes.

Mutations of doctests: one more example, which fails, at the end of what is run as one test.
"""

import ast
import doctest
import re
from collections.abc import Collection, Iterator
from itertools import accumulate
from random import Random

from orchestrator.core.value import Value


class Mutation(Value):
    """One change to one test."""

    case: str
    """The test as its runner names it: `Class::method` or `function` for pytest, for node the titles of the
    describe blocks and its own, joined with ` > `."""
    start: int
    """First changed byte of the UTF-8 text."""
    end: int
    """First byte behind the change; equal to `start` where something is only inserted."""
    text: str
    """What stands there instead."""
    other_value: bool = False
    """Whether another value is expected, which an object that equals everything does not notice."""


_QUOTES = re.compile(rb"(\"\"\"|'''|\"|')\Z")
_Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def doctest_mutations(file: str, text: str, names: Collection[str], random: Random) -> tuple[Mutation, ...]:
    """At most one per name of a test that pytest reports: `package.module.Class.method`, or a text file's own name."""
    less, more = sorted(random.sample(range(100), 2))
    if not file.endswith(".py"):
        end, own = len(text.encode()), file.rpartition("/")[2]
        added = f"\n\n>>> {less} == {more}\nTrue\n"
        return (Mutation(case=own, start=end, end=end, text=added),) if own in names and ">>>" in text else ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # newer Python, or broken: nothing to change
        return ()
    content = text.encode()
    lines = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
    module = file.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    found = []
    for qualified, node in _docstrings(tree, ""):
        reported = next((name for name in names if _stands_for(name, qualified, module)), None)
        end = lines[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        quotes = _QUOTES.search(content[:end])
        # A docstring in single quotes has no room for another line.
        if reported is not None and quotes is not None and len(quotes[1]) == 3:
            place = end - 3
            added = f"\n\n>>> {less} == {more}\nTrue\n"
            found.append(Mutation(case=reported, start=place, end=place, text=added))
    return tuple(found)


def _stands_for(name: str, qualified: str, module: str) -> bool:
    """Whether a reported name is that of the docstring: the module's part may lack folders that are no packages."""
    if qualified and not name.endswith(f".{qualified}"):
        return False
    place = name.removesuffix(f".{qualified}") if qualified else name
    return module == place or module.endswith(f".{place}")


def _docstrings(scope: _Scope, prefix: str) -> Iterator[tuple[str, ast.Constant]]:
    """Yields the qualified name and the node of each docstring with examples; functions within functions have none."""
    first = scope.body[0] if scope.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        try:
            if doctest.DocTestParser().get_examples(first.value.value):
                yield prefix, first.value
        except ValueError:
            pass  # inconsistent blanks: pytest reports it as an error of its own
    for node in scope.body if isinstance(scope, ast.Module | ast.ClassDef) else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(node, f"{prefix}.{node.name}" if prefix else node.name)
