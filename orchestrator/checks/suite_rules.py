"""What the text of a suite alone says about it: what is proven is refused, two suspicions are advice.

Whether its tests show anything is answered by runs (see `sprint.fail_before` and `sprint.hollow`).
"""

import ast
import re
from collections.abc import Iterable, Iterator

from orchestrator.checks.suite import is_suite
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.testing import TestSuite
from orchestrator.syntax import python_source
from orchestrator.syntax.check import check_syntax
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import find_tests, may_make_tests
from orchestrator.syntax.javascript_tree import root
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import Function, doubled_names, may_be_collected, nodes_of

_OWN_NAME = "Give each its own name."
_SWALLOWED = frozenset({"AssertionError", "Exception", "BaseException", ""})
"""What an `except` catches when it catches a failed assertion."""
_RAISES = re.compile(r"raises|warns", re.IGNORECASE)


def check_suite(suite: TestSuite, *, required_criteria: int | None) -> list[Finding]:
    """What is wrong with the tests by their text alone.

    `required_criteria` is the number of tests wanted at least, None for a smoke test. A suite that does not parse has
    that one finding: nothing else can be said about it.
    """
    broken = check_syntax(suite.test_file, suite.test_content, code="suite.syntax")
    if broken:
        return broken
    where = Where(file=suite.test_file)
    found: list[Finding] = []
    if suite.test_file.endswith(".py"):
        tree = python_source.parse(suite.test_content)
        found = [] if tree is None else _check_python(tree, where)
    elif is_suite(suite.test_file):  # a file of another language is read by nobody here
        found = _check_node(root(suite.test_content, suite.test_file), where)
    count = len(suite.expected_names)
    if required_criteria is not None and 0 < count < required_criteria:
        message = f"{count} tests for {required_criteria} acceptance criteria"
        found.append(minor("suite.criteria", message, where=where, fix="Write a test of its own for each criterion."))
    return found


def _check_python(tree: ast.Module, where: Where) -> list[Finding]:
    if not may_be_collected(tree):
        fix = "Write functions named test_* at the top of the file, or as methods of a class named Test*."
        return [major("suite.no_tests", "the file has no test function", where=where, fix=fix)]
    found = []
    for name, line in doubled_names(tree):
        message = f"`{name}` is defined again further down, which hides this one"
        found.append(major("suite.duplicate_test", message, where=_at(where, line), fix=_OWN_NAME))
    tests = (node for node in nodes_of(tree) if isinstance(node, Function) and node.name.startswith("test"))
    return [*found, *(finding for test in tests for finding in _suspicions(test, where))]


def _check_node(tree: Node, where: Where) -> list[Finding]:
    if not may_make_tests(tree):
        fix = "Write tests with literal titles outside loops and functions: test('adds a row', …)."
        return [major("suite.no_tests", "the file calls nothing that makes a test", where=where, fix=fix)]
    seen, found = set[tuple[int, str]](), []
    for test in find_tests(tree):
        if test.name is None:
            continue
        if (test.scope, test.name) in seen:
            # Both are run, so nothing is lost but the way to tell them apart.
            message = f"there are two tests `{test.name}`, which a report cannot tell apart"
            found.append(minor("suite.duplicate_test", message, where=_at(where, test.line), fix=_OWN_NAME))
        seen.add((test.scope, test.name))
    return found


def _suspicions(test: Function, where: Where) -> Iterator[Finding]:
    """Where an `assert` was forgotten, and where a failed one would not be seen."""
    waiting: list[ast.AST] = list(test.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.With | ast.AsyncWith) and any(_expects_error(item.context_expr) for item in node.items):
            continue  # `with pytest.raises(TypeError): a < b` compares to see it raise
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            message = f"line {node.lineno} in `{test.name}` compares and asserts nothing of it"
            yield minor("suite.no_assertion", message, where=_at(where, node.lineno), fix="Write `assert` before it.")
        if isinstance(node, ast.Try) and _asserts(node.body) and any(map(_swallows, node.handlers)):
            message = f"a failed assertion after line {node.lineno} in `{test.name}` is swallowed"
            fix = "Let the failure through: catch the error that is meant, or use `with pytest.raises(…)`."
            yield minor("suite.no_assertion", message, where=_at(where, node.lineno), fix=fix)
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            waiting.extend(ast.iter_child_nodes(node))


def _expects_error(context: ast.expr) -> bool:
    return bool(_RAISES.search(dotted(context.func if isinstance(context, ast.Call) else context)))


def _asserts(body: Iterable[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Assert) for statement in body for node in ast.walk(statement))


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches a failed assertion and does nothing at all."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"" if kind is None else dotted(kind).rpartition(".")[2] for kind in caught}
    idle = all(isinstance(one, ast.Pass | ast.Expr) and _is_plain(one) for one in handler.body)
    return idle and bool(names & _SWALLOWED)


def _is_plain(statement: ast.Pass | ast.Expr) -> bool:
    return isinstance(statement, ast.Pass) or isinstance(statement.value, ast.Constant)


def _at(where: Where, line: int) -> Where:
    return where.model_copy(update={"line": line})
