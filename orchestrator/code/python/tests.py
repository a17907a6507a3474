"""The test functions of a Python file as pytest would collect them."""

import ast
import re
from collections.abc import Iterable, Iterator

from orchestrator.code.python.source import dotted, family, parse_python, statements, top_level, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAMED_TEST = re.compile(r"test|^\*$", re.IGNORECASE)
_CASE_CLASSES = frozenset({"TestCase", "IsolatedAsyncioTestCase", "SimpleTestCase", "TransactionTestCase"})


def test_functions(text: str) -> tuple[str, ...]:
    """Bare names of the functions pytest collects, each once, in order; () when the text does not parse.

    Top-level `test*` functions, `test*` methods of `Test*` classes without a constructor and of unittest.TestCase
    subclasses, also those inherited from classes of the same file. Fixtures are none.
    """
    tree = parse_python(text)
    if tree is None:
        return ()
    classes = {node.name: node for node in top_level(tree.body) if isinstance(node, ast.ClassDef)}
    found = [node for node in _last_of_each_name(tree.body) if _is_test(node)]
    found += [test for node in classes.values() for test in _in_class(node, classes)]
    return tuple(dict.fromkeys(node.name for node in sorted(found, key=lambda node: node.lineno)))


test_functions.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def doubled_names(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    """(name, line) of tests and test classes that are hidden by a later one of the same name in the same block."""
    found: list[tuple[str, int]] = []
    bodies = [tree.body, *(node.body for node in statements(tree) if isinstance(node, ast.ClassDef))]
    for body in bodies:
        named = [node for node in body if isinstance(node, Function | ast.ClassDef)]
        seen = {node.name for node in named if _overload(node)}  # a property and its setter share a name
        for node in reversed([node for node in named if node.name not in seen]):
            if node.name in seen and node.name.lower().startswith("test"):
                found.append((node.name, node.lineno))
            seen.add(node.name)
    return tuple(sorted(found, key=lambda item: item[1]))


def may_be_collected(tree: ast.Module) -> bool:
    """Whether a runner could find a test in the file, as far as its text tells: settings and bases may say more.

    A name with "test" in it is enough, wherever it is defined, assigned or imported, and so is a class with a base.
    """
    for node in walk(tree):
        names: list[str] = []
        if isinstance(node, Function | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom):  # `import pytest` has "test" in its name, and a module is no test
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        if (isinstance(node, ast.ClassDef) and node.bases) or any(_NAMED_TEST.search(name) for name in names):
            return True
    return False


def _last_of_each_name(body: Iterable[ast.stmt]) -> Iterator[Function]:
    last = {node.name: node for node in top_level(body) if isinstance(node, Function)}
    yield from last.values()


def _is_test(node: Function) -> bool:
    if not node.name.startswith("test"):
        return False
    names = (dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
    return not any(name.split(".")[-1] in {"fixture", "property", "overload"} for name in names)


def _overload(node: Function | ast.ClassDef) -> bool:
    return any(dotted(decorator).endswith((".setter", ".deleter", "overload")) for decorator in node.decorator_list)


def _in_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[Function]:
    members = family(node, classes)
    is_case = any(dotted(base).split(".")[-1] in _CASE_CLASSES for member in members for base in member.bases)
    methods: dict[str, Function] = {}
    for member in members:
        for method in _last_of_each_name(member.body):
            methods.setdefault(method.name, method)
    plain = node.name.startswith("Test") and not {"__init__", "__new__"} & set(methods)
    if not (is_case or plain) or _switched_off(node):
        return
    yield from filter(_is_test, methods.values())
    if plain:
        inner = {child.name: child for child in node.body if isinstance(child, ast.ClassDef)}
        for child in inner.values():
            yield from _in_class(child, classes | inner)


def _switched_off(node: ast.ClassDef) -> bool:
    return any(
        isinstance(part, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__test__" for target in part.targets)
        and isinstance(part.value, ast.Constant)
        and not part.value.value
        for part in node.body
    )
