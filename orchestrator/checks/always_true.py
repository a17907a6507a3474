"""Conditions of a Python test that hold whatever the program does (spec 1 C2). By syntax tree."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.syntax.python_source import dotted

_PURE = frozenset(
    {"len", "type", "str", "repr", "int", "float", "bool", "list", "tuple", "dict", "set", "sorted", "id"}
)
"""Built-ins that give the same for the same."""
_HOLDS: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OPPOSITE = {ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn, ast.Lt: ast.GtE, ast.Gt: ast.LtE}
_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_PAIRS = frozenset(
    {"assertEqual", "assertEquals", "assertIs", "assertAlmostEqual", "assertCountEqual", "assertListEqual"}
    | {"assertDictEqual", "assertSetEqual", "assertTupleEqual", "assertMultiLineEqual", "assertSequenceEqual"}
)
_MOCKED = frozenset({"called_once", "called_with", "called_once_with", "has_calls", "any_call", "not_called"})
"""What a Mock answers to as to anything else; its assertions begin with `assert_`."""
_SIDES = 8
"""Sides of an `or` that are held against each other: every one against every other."""
_CONSTANT = "it asserts a constant"
_ITSELF = "it compares something with itself"
_LENGTH = "a length is never below zero"


def always_true(test: ast.expr) -> str:
    """Why this condition is true whatever the program does; "" when it may be false."""
    if isinstance(test, ast.Constant):
        return _CONSTANT if test.value else ""
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return "it asserts a collection that is never empty" if test.elts else ""
    if isinstance(test, ast.Dict):
        return "it asserts a collection that is never empty" if test.keys else ""
    if isinstance(test, ast.JoinedStr):
        return "it asserts a text" if any(isinstance(part, ast.Constant) for part in test.values) else ""
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return "it asserts a function or generator, which is always true"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _CONSTANT if always_false(test.operand) else ""
    if isinstance(test, ast.BoolOp):
        return _junction(test)
    if isinstance(test, ast.Compare):
        return _comparison(test)
    return _asked(test)


def always_false(test: ast.expr) -> bool:
    """Whether the condition is a constant that is false, or an empty collection."""
    if isinstance(test, ast.Constant):
        return not test.value
    return isinstance(test, ast.Tuple | ast.List) and not test.elts


def always_true_call(name: str, arguments: list[ast.expr]) -> str:
    """The same for an assertion that is called: `self.assertTrue(True)`."""
    first = arguments[0] if arguments else None
    if first is None:
        return ""
    if name in {"assertTrue", "assert_", "assert_true"}:
        return always_true(first)
    if name in {"assertFalse", "assertIsNone"} and isinstance(first, ast.Constant):
        fits = first.value is None if name == "assertIsNone" else not first.value
        return _CONSTANT if fits else ""
    if name == "assertIsNotNone" and isinstance(first, ast.Constant | ast.Dict | ast.List | ast.Tuple):
        return _CONSTANT if getattr(first, "value", first) is not None else ""
    if len(arguments) < 2:
        return ""
    if name in _PAIRS and same(first, arguments[1]):
        return _ITSELF
    if name == "assertIsInstance" and _is_object(arguments[1]):
        return "everything is an object"
    return _length(first, ast.GtE, arguments[1]) if name == "assertGreaterEqual" else ""


def same(left: ast.expr, right: ast.expr) -> bool:
    """The same expression twice, without a call: two calls may well differ."""
    first, second = [_shape(node) for node in ast.walk(left)], [_shape(node) for node in ast.walk(right)]
    return first == second and not any(_may_differ(node) for node in ast.walk(left))


def _may_differ(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func) not in _PURE
    return isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)


def _shape(node: ast.AST) -> tuple[object, ...]:
    """A node without its place and its children, so that equal walks mean equal trees."""
    parts: list[object] = [type(node)]
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            parts.append((name, len(value), *(item for item in value if not isinstance(item, ast.AST))))
        else:
            parts.append((name, type(value) if isinstance(value, ast.AST) else (type(value), value)))
    return tuple(parts)


def _junction(test: ast.BoolOp) -> str:
    reasons = [always_true(value) for value in test.values]
    if isinstance(test.op, ast.And):
        return reasons[0] if all(reasons) else ""
    if any(reasons):
        return next(filter(None, reasons))
    for place, one in enumerate(test.values[:_SIDES]):
        if any(_opposite(one, other) or _opposite(other, one) for other in test.values[place + 1 : _SIDES]):
            return "one side of the `or` is the opposite of the other"
    return ""


def _opposite(one: ast.expr, other: ast.expr) -> bool:
    """`x` and `not x`, `x is None` and `x is not None`."""
    if isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        return same(one, other.operand)
    if not isinstance(one, ast.Compare) or not isinstance(other, ast.Compare) or len(one.ops) + len(other.ops) != 2:
        return False
    turned = _OPPOSITE.get(type(one.ops[0]))
    return (
        turned is type(other.ops[0]) and same(one.left, other.left) and same(one.comparators[0], other.comparators[0])
    )


def _comparison(test: ast.Compare) -> str:
    if len(test.ops) != 1:
        return ""
    left, how, right = test.left, type(test.ops[0]), test.comparators[0]
    if how in {ast.Eq, ast.Is, ast.LtE, ast.GtE} and same(left, right):
        return _ITSELF
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return "it compares two constants" if _hold(left.value, how, right.value) else ""
    if how is ast.In and isinstance(right, ast.List | ast.Tuple | ast.Set):
        return _ITSELF if any(same(left, item) for item in right.elts) else ""
    return _length(left, how, right) or _length(right, _TURNED.get(how, how), left)


def _hold(left: object, how: type[ast.cmpop], right: object) -> bool:
    try:
        if how is ast.In:
            return isinstance(left, str) and isinstance(right, str) and left in right
        return how in _HOLDS and bool(_HOLDS[how](left, right))
    except TypeError:
        return False


def _length(left: ast.expr, how: type[ast.cmpop], right: ast.expr) -> str:
    """`len(x) >= 0`, `len(x) > -1`, `len(x) is not None`"""
    if not (isinstance(left, ast.Call) and dotted(left.func) == "len"):
        return ""
    if isinstance(right, ast.Constant):
        if right.value is None:
            return _LENGTH if how in {ast.IsNot, ast.NotEq} else ""
        return _LENGTH if right.value == 0 and how is ast.GtE else ""
    below = isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub)
    return _LENGTH if below and how in {ast.Gt, ast.GtE, ast.NotEq} else ""


def _asked(test: ast.expr) -> str:
    """`isinstance(x, object)`, `all([])`, and what a Mock answers to although it checks nothing."""
    called = test.func if isinstance(test, ast.Call) else test
    if isinstance(called, ast.Attribute) and called.attr in _MOCKED:
        return f"`{called.attr}` of a mock checks nothing; its assertions begin with assert_"
    if not isinstance(test, ast.Call) or not isinstance(called, ast.Name) or not test.args:
        return ""
    if called.id == "isinstance" and len(test.args) == 2 and _is_object(test.args[1]):
        return "everything is an object"
    if called.id == "all" and isinstance(test.args[0], ast.List | ast.Tuple) and not test.args[0].elts:
        return "`all` of nothing is true"
    return always_true(test.args[0]) if called.id == "bool" else ""


def _is_object(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "object"
