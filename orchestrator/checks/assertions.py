"""Does a test assert anything that could fail? Judged by syntax tree (spec 1 C2)."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from orchestrator.checks.always_true import always_true, always_true_call
from orchestrator.checks.reached import reached
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import Function, nodes_of

_RAISING = frozenset({"raises", "warns", "deprecated_call", "assertRaises", "assertWarns", "assertLogs"})
_NAMED_LIKE = re.compile(r"^_*(assert|check|verify|expect|ensure|should|must)")
_HELPING = re.compile(r"(^|[._])(tests?|testing|test_?utils?|helpers?|support|conftest|assertions?|utils?)([._]|$)")
_CHECKING = re.compile(r"_regression$|^(snapshot|golden|approvaltests|benchmark)$")
"""Fixtures and packages whose `check` and `verify` compare with what is recorded."""
_NEVER_CALL = frozenset(
    {"setattr", "setitem", "patch", "object", "multiple", "Mock", "MagicMock", "AsyncMock", "Thread", "Process"}
)
"""What takes a function without calling it at once, or swallows what it raises."""


@dataclass(frozen=True)
class Assertion:
    """One assertion in a test, with the reason when it can never fail."""

    line: int
    always_true: str = ""


class Assertions:
    """Reads the functions of one file. A function that asserts makes its callers assert."""

    def __init__(self, nodes: Collection[ast.AST]) -> None:
        """`nodes`: everything in the file."""
        self._imported = frozenset(_imported_helpers(nodes))
        self._checkers = frozenset(_checkers(nodes))
        functions = [node for node in nodes if isinstance(node, Function)]
        self._known = frozenset(function.name for function in functions)
        self._asserting: frozenset[str] = frozenset()
        self._reached: dict[Function, list[ast.AST]] = {
            function: list(reached(function.body)) for function in functions
        }
        self._asserting = self._spread(functions)

    def of(self, function: Function) -> tuple[Assertion, ...]:
        """Assertions that are reached in `function`, also one for each call of a helper that asserts.

        Code that no run comes to (see `reached`) does not count, nor do inner functions that nobody calls.
        """
        return tuple(self._found(self._reached[function]))

    def _spread(self, functions: list[Function]) -> frozenset[str]:
        """Names of the functions that assert, themselves or through others of these."""
        callers: dict[str, set[str]] = {}
        waiting: list[str] = []
        for function in functions:
            if any(not made.always_true for made in self.of(function)):
                waiting.append(function.name)
            for name in (*self._used(self._reached[function]), *_handed_out(function)):
                callers.setdefault(name, set()).add(function.name)
        found = set(waiting)
        while waiting:
            for caller in callers.get(waiting.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    waiting.append(caller)
        return frozenset(found)

    def _used(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Call):
                yield from (name for name in (_called(node), *_handed_over(node)) if name in self._known)

    def _found(self, nodes: Iterable[ast.AST]) -> Iterator[Assertion]:
        for node in nodes:
            if isinstance(node, ast.Assert):
                yield Assertion(node.lineno, always_true(node.test))
            elif isinstance(node, ast.Raise):
                yield from [Assertion(node.lineno)] if node.exc is not None else []
            elif isinstance(node, ast.With | ast.AsyncWith):
                yield from _raised_by_itself(node)
            elif isinstance(node, ast.Expr):
                yield from _without_effect(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)

    def _call(self, node: ast.Call) -> Iterator[Assertion]:
        name = _called(node)
        if name in self._asserting or not self._asserting.isdisjoint(_handed_over(node)):
            yield Assertion(node.lineno)
        elif name in self._known:
            return
        elif name in _RAISING or name == "fail" or name.startswith("assert"):
            yield Assertion(node.lineno, always_true_call(name, node.args))
        elif self._by_name(node, name) or not self._asserting.isdisjoint(_handed_over(node)):
            yield Assertion(node.lineno)

    def _by_name(self, node: ast.Call, name: str) -> bool:
        """Whether something from elsewhere is called that asserts by its name and origin."""
        if isinstance(node.func, ast.Name):
            return name in self._imported or name == "expect"
        owner = dotted(node.func).rpartition(".")[0]
        if owner in self._checkers:
            return True
        if owner in self._imported or owner == "self" or _HELPING.search(owner):
            return bool(_NAMED_LIKE.match(name))
        return _CHECKING.search(owner) is not None and bool(_NAMED_LIKE.match(name))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def _handed_over(node: ast.Call) -> list[str]:
    """Functions given by name to a call that may call them."""
    if _called(node) in _NEVER_CALL:
        return []
    return [argument.id for argument in node.args if isinstance(argument, ast.Name)]


def _handed_out(function: Function) -> Iterator[str]:
    """Functions that a function (a fixture, most often) makes and returns or yields."""
    for node in nodes_of(function):
        if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Name):
            yield node.value.id


def _imported_helpers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names bound by imports that stand for helpers of tests: by name, and from a module of that kind."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            helping = node.level > 0 or bool(_HELPING.search(node.module or ""))
            for alias in node.names:
                if alias.name.startswith("assert") or (helping and _NAMED_LIKE.match(alias.name)):
                    yield alias.asname or alias.name


def _checkers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Modules of soft assertions: `import pytest_check as check`."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                if re.match(r"pytest_check|expects|assertpy|delayed_assert|softest", module or alias.name):
                    yield alias.asname or alias.name


def _raised_by_itself(node: ast.With | ast.AsyncWith) -> Iterator[Assertion]:
    """`with pytest.raises(E): raise E`"""
    calls = [item.context_expr for item in node.items if item.optional_vars is None]
    expects = any(isinstance(call, ast.Call) and _called(call) in _RAISING for call in calls)
    if expects and isinstance(node.body[0], ast.Raise):
        yield Assertion(node.body[0].lineno, "the test raises itself what it expects")


def _without_effect(node: ast.Expr) -> Iterator[Assertion]:
    """`mock.assert_called_once` without a call, `pytest.raises(E)` without `with`."""
    value = node.value
    if isinstance(value, ast.Attribute) and value.attr.startswith("assert_"):
        yield Assertion(node.lineno, f"`{value.attr}` is named, not called")
    if isinstance(value, ast.Call) and _called(value) in _RAISING and len(value.args) == 1 and not value.keywords:
        yield Assertion(node.lineno, f"`{_called(value)}` stands without `with` and a body, so it checks nothing")


def out_of_reach(function: Function) -> int | None:
    """The line of the first assertion that stands in the function, whether a run comes to it or not."""
    return min((node.lineno for node in nodes_of(function) if isinstance(node, ast.Assert)), default=None)


def compared_for_nothing(function: Function) -> int | None:
    """The line of a comparison that stands alone, where an `assert` was forgotten; None when there is none."""
    nodes: Collection[ast.AST] = list(reached(function.body))
    lines = [node.lineno for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare)]
    return min(lines, default=None)
