"""Does a test assert anything that could fail? Judged by syntax tree (spec 1 C2)."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import Function

_RAISING = frozenset({"raises", "warns", "deprecated_call", "fail", "assertRaises", "assertWarns", "assertLogs"})
_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException"})
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Assertion:
    """One assertion in a test, with the reason when it can never fail."""

    line: int
    always_true: str = ""


def asserting(functions: Mapping[str, Function]) -> dict[str, bool]:
    """Name → whether a call of that function asserts something, itself or through others of these functions."""
    found = {name: False for name in functions}
    callers: dict[str, set[str]] = {}
    for name, function in functions.items():
        found[name] = any(not made.always_true for made in assertions(function, dict.fromkeys(functions, False)))
        for node in _reached(function.body):
            if isinstance(node, ast.Call) and _called(node) in functions:
                callers.setdefault(_called(node), set()).add(name)
    waiting = [name for name, asserts in found.items() if asserts]
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if not found[caller]:
                found[caller] = True
                waiting.append(caller)
    return found


def assertions(test: Function, helpers: Mapping[str, bool]) -> tuple[Assertion, ...]:
    """Assertions that are reached in `test`, also one for each call of a helper that asserts (see `asserting`).

    Code behind a return, inside `if False`, in a `try` that swallows AssertionError, or in an inner function that
    nobody calls does not count.
    """
    return tuple(_found(test.body, helpers))


def _found(body: Iterable[ast.stmt], helpers: Mapping[str, bool]) -> Iterator[Assertion]:
    for node in _reached(body):
        if isinstance(node, ast.Assert):
            yield Assertion(node.lineno, _never_fails(node.test))
        elif isinstance(node, ast.Call):
            name = _called(node)
            if name in helpers:
                yield from [Assertion(node.lineno)] if helpers[name] else []
            elif name in _RAISING or name.startswith("assert") or name == "expect":
                yield Assertion(node.lineno, _never_fails_call(name, node.args))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def _reached(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Every node that a run of these statements could come to; a stack, because hostile code nests deeply."""
    waiting: list[ast.AST] = list(_alive(body))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Try) and any(_swallows(handler) for handler in node.handlers):
        for handler in node.handlers:
            yield from _alive(handler.body)
        yield from _alive([*node.orelse, *node.finalbody])
        return
    if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant):
        yield from _alive(node.body if node.test.value else node.orelse)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return  # counts where it is called
    for _, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from _alive(value)


def _alive(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if isinstance(node, _ENDS):
            return


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches a failed assertion and goes on as if nothing had happened."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or dotted(kind).split(".")[-1] in _SWALLOWING for kind in caught):
        return False
    for part in ast.walk(handler):
        if isinstance(part, ast.Raise | ast.Assert):
            return False
        if isinstance(part, ast.Call) and dotted(part.func).split(".")[-1] in {"fail", "skip", "xfail"}:
            return False
    return True


def _never_fails(test: ast.expr) -> str:
    """Why this condition is true whatever the program does; "" when it may be false."""
    if isinstance(test, ast.Constant):
        return "it asserts a constant" if test.value else ""
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return "it asserts a collection that is never empty" if test.elts else ""
    if isinstance(test, ast.Dict):
        return "it asserts a collection that is never empty" if test.keys else ""
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return "it asserts a function or generator, which is always true"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        falsy = isinstance(test.operand, ast.Constant) and not test.operand.value
        return "it asserts a constant" if falsy else ""
    if isinstance(test, ast.BoolOp):
        reasons = [_never_fails(value) for value in test.values]
        if isinstance(test.op, ast.Or):
            return next(filter(None, reasons), "")
        return reasons[0] if all(reasons) else ""
    return _never_fails_comparison(test) if isinstance(test, ast.Compare) else ""


def _never_fails_comparison(test: ast.Compare) -> str:
    if len(test.ops) != 1:
        return ""
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE) and _same(left, right):
        return "it compares something with itself"
    if (
        isinstance(operator, ast.NotEq | ast.IsNot)
        and isinstance(left, ast.Constant)
        and isinstance(right, ast.Constant)
    ):
        return "it compares two constants" if left.value != right.value else ""
    length = isinstance(left, ast.Call) and dotted(left.func) == "len"
    zero = isinstance(right, ast.Constant) and right.value == 0
    return "a length is never below zero" if length and zero and isinstance(operator, ast.GtE) else ""


def _same(left: ast.expr, right: ast.expr) -> bool:
    """The same expression twice, without a call: two calls may well differ."""
    first, second = [_shape(node) for node in ast.walk(left)], [_shape(node) for node in ast.walk(right)]
    return first == second and not any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(left))


def _shape(node: ast.AST) -> tuple[object, ...]:
    """A node without its place and its children, so that equal walks mean equal trees."""
    parts: list[object] = [type(node)]
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            parts.append((name, len(value), *(item for item in value if not isinstance(item, ast.AST))))
        else:
            parts.append((name, type(value) if isinstance(value, ast.AST) else (type(value), value)))
    return tuple(parts)


def _never_fails_call(name: str, arguments: list[ast.expr]) -> str:
    if name == "assertTrue" and arguments:
        return _never_fails(arguments[0])
    first = arguments[0] if arguments else None
    if name in {"assertFalse", "assertIsNone"} and isinstance(first, ast.Constant):
        fits = first.value is None if name == "assertIsNone" else not first.value
        return "it asserts a constant" if fits else ""
    if name == "assertIsNotNone" and isinstance(first, ast.Constant) and first.value is not None:
        return "it asserts a constant"
    pair = name in {
        "assertEqual",
        "assertEquals",
        "assertIs",
        "assertAlmostEqual",
        "assertCountEqual",
        "assertListEqual",
    }
    if pair and len(arguments) > 1 and _same(arguments[0], arguments[1]):
        return "it compares something with itself"
    return ""
