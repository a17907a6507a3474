import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.check import check_syntax
from orchestrator.code.python.imports import imports
from orchestrator.code.python.source import exported_names, parse_python, statements, walk
from orchestrator.code.python.tests import test_functions as functions_of


def test_a_syntax_error_is_told_with_its_place() -> None:
    (found,) = check_syntax("a.py", "x = 1\ndef f(:\n    pass\n")
    assert (found.where.file, found.where.line, found.where.column) == ("a.py", 2, 7)
    assert check_syntax("a.py", "x = '\\d'  # only a warning\n") == []
    assert check_syntax("a.py", "return 1\n") != []


@pytest.mark.parametrize(
    "text", ["x\0", "(" * 100_000, "-" * 100_000 + "1", "1" + "+1" * 100_000, "x = '\ud800'", "x." * 50_000 + "y"]
)
def test_hostile_text_is_a_finding_never_a_crash(text: str) -> None:
    assert check_syntax("a.py", text) != []
    assert exported_names(text) == ()
    assert imports(text) is None


def test_exports_are_public_definitions_or_dunder_all() -> None:
    text = """
import os
from .deep import inner
LIMIT: int = 3
first, (second, _hidden) = 1, (2, 3)
if os.name == "posix":
    def where(): ...
class Box: ...
"""
    assert exported_names(text) == ("LIMIT", "first", "second", "where", "Box")
    assert exported_names("__all__ = ['b', '_c']\n__all__ += ['d']\na = b = 1\n") == ("b", "_c", "d")
    assert exported_names("from .store import Store, load as read\nimport sys\n") == ("Store", "read")


def test_imports_are_found_anywhere_and_relative_ones_left_out() -> None:
    text = """
import a.b, c as d
from e.f import g
from . import h
from .i import j
def late():
    import k
    importlib.import_module("l.m"); __import__("n"); importlib.import_module(name)
"""
    found = {item.module for item in imports(text) or () if item.module and not item.relative}
    assert found == {"a.b", "c", "e.f", "k", "l.m", "n"}


def test_functions_are_those_that_pytest_collects() -> None:
    text = """
import pytest, unittest
def test_top(): ...
async def test_async(): ...
def helper(): ...
@pytest.fixture
def test_data(): ...
class TestBox:
    def test_in_class(self): ...
    class TestInner:
        def test_inner(self): ...
class TestMade:
    def __init__(self): ...
    def test_not_collected(self): ...
class Shared:
    def test_shared(self): ...
class StoreCase(Shared, unittest.TestCase):
    def test_case(self): ...
class TestOff:
    __test__ = False
    def test_off(self): ...
"""
    assert functions_of(text) == ("test_top", "test_async", "test_in_class", "test_inner", "test_shared", "test_case")
    assert functions_of("def test_a(:") == ()


@pytest.mark.parametrize(
    ("path", "text", "fine"),
    [
        ("a.json", '{"a": [1, 2]}', True),
        ("a.json", '{"a": 1,}', False),
        ("a.json", "[NaN]", False),
        ("a.json", "1" * 5000, True),
        ("a.json", "[" * 100_000, False),
        ("tsconfig.json", "{ // note\n}", True),
        ("a.PY", "def f(:", False),
        ("a.md", "def f(:", True),
    ],
)
def test_syntax_is_checked_by_suffix(path: str, text: str, fine: bool) -> None:
    assert (check_syntax(path, text) == []) is fine


@given(st.text())
def test_no_text_makes_the_readers_raise(text: str) -> None:
    for path in ("a.py", "a.json"):
        check_syntax(path, text)
    exported_names(text)
    imports(text)
    functions_of(text)


def test_a_walk_has_the_nodes_of_asts_own_in_their_order_without_operators_and_contexts() -> None:
    bare = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    newer = (
        "match a:\n    case {'b': [1, *c], **d} if e:\n        global f\n        f'{a!r:>{b}}'\n    case G(h=i): ...\n"
    )
    hardly = "try: ...\nexcept* A as b: ...\nwith a as b, c: ...\n{**a, b: c}\n[*d for e in f if g async for h in i]\n"
    texts = [newer, hardly, *(path.read_text(encoding="utf-8") for path in Path(ast.__file__).parent.glob("[a-d]*.py"))]
    for tree in filter(None, map(parse_python, texts)):
        nodes = list(ast.walk(tree))
        assert walk(tree) == [node for node in nodes if not isinstance(node, bare)]
        inner = [node for node in nodes if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)]
        assert {*statements(tree)} == {tree, *inner}


class Cycle:
    """Garbage whose end runs Python code, which is when threads change in the middle of a parse."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(300))


def test_threads_that_parse_at_the_same_time_do_not_break_each_other() -> None:
    def work(number: int) -> bool:
        garbage = [Cycle() for _ in range(50)]
        del garbage
        return (
            parse_python(f"x{number} = 1\n" + "def f(a):\n    return [b for b in a if (b + 1) * 2]\n" * 100) is not None
        )

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(100)))
    finally:
        sys.setswitchinterval(before)
