"""Python tests that are there and show nothing: skipped, expected to fail, or sure to (spec 1 C2). By syntax tree."""

import ast
from collections.abc import Iterable, Iterator

from orchestrator.checks.always_true import always_false, always_true
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import Function, PythonSuite, direct

_MARKS = frozenset({"skip", "xfail", "skipif", "skipIf", "skipUnless", "expectedFailure"})
_SKIPPING = frozenset({"skip", "xfail", "skipTest"})
_OWNERS = frozenset({"pytest", "self", "unittest", "mark", "TestCase"})
_SHOW = "Write a test that runs here and shows the criterion; leave out what cannot be tested."
_ENDS = ast.Return | ast.Yield | ast.YieldFrom


def skips(suite: PythonSuite, where: Where) -> Iterator[Finding]:
    """Major: a test that is sure to be skipped, excused or to fail; minor: one that may be skipped."""
    yield from _whole_file(suite.tree, where)
    for node in suite.tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _marked(node.decorator_list, f"the class `{node.name}`", where)
    for test in suite.tests:
        what, own = f"`{test.name}`", list(_own(test.node))
        yield from _marked(test.node.decorator_list, what, where)
        yield from _by_call(test.node, own, what, where)
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own):
            message, place = f"{what} yields, and pytest runs no test that does", _at(where, test.node)
            yield major("suite.skipped", message, where=place, fix="Write the steps as parametrised cases.")


def _at(where: Where, node: ast.stmt | ast.expr) -> Where:
    return where.model_copy(update={"line": node.lineno})


def _whole_file(tree: ast.Module, where: Where) -> Iterator[Finding]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            yield from _marked(marks, "the whole file", where)
        elif _skip_call(node):
            yield major("suite.skipped", "the whole file is skipped", where=_at(where, node), fix=_SHOW)
        elif isinstance(node, ast.Try):
            yield from _hidden_failure(node, "the file", where)


def _marked(decorators: Iterable[ast.expr], what: str, where: Where) -> Iterator[Finding]:
    for decorator in decorators:
        call = decorator if isinstance(decorator, ast.Call) else None
        *owner, name = dotted(call.func if call else decorator).split(".")
        if name == "parametrize" and call and len(call.args) > 1 and _no_rows(call.args[1]):
            message = f"{what} is parametrised with nothing, so it is skipped"
            yield major(
                "suite.skipped", message, where=_at(where, decorator), fix="Give it at least one row of values."
            )
        if name not in _MARKS or (owner and owner[-1] not in _OWNERS):
            continue
        if name.lower() in {"skipif", "skipunless"} and not _sure(name, call):
            message = f"{what} may be skipped, and would then show nothing"
            yield minor("suite.skipped", message, where=_at(where, decorator), fix=_SHOW)
        else:
            said = "expected to fail" if name in {"xfail", "expectedFailure"} else "skipped"
            yield major("suite.skipped", f"{what} is {said}", where=_at(where, decorator), fix=_SHOW)


def _no_rows(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) and not value.elts


def _sure(name: str, call: ast.Call | None) -> bool:
    if call is None or not call.args:
        return call is None
    return always_false(call.args[0]) if name == "skipUnless" else bool(always_true(call.args[0]))


def _by_call(test: Function, own: list[ast.AST], what: str, where: Where) -> Iterator[Finding]:
    """What the statements of the test itself are sure to come to."""
    for node in test.body:
        if _skip_call(node):
            yield major("suite.skipped", f"{what} skips itself", where=_at(where, node), fix=_SHOW)
            return
        if _fails(node) and not any(isinstance(part, _ENDS) for part in own):
            fix = "Let it fail only when the criterion is not met: assert what the program returns or stores."
            yield major(
                "suite.always_fails", f"{what} fails whatever the program does", where=_at(where, node), fix=fix
            )
            return
        if isinstance(node, ast.Return):
            return
    for part in own:
        if isinstance(part, ast.Try):
            yield from _hidden_failure(part, what, where)
        elif isinstance(part, ast.If) and any(_skip_call(inner) for inner in (*part.body, *part.orelse)):
            message = f"{what} may skip itself, and would then show nothing"
            yield minor("suite.skipped", message, where=_at(where, part), fix=_SHOW)


def _hidden_failure(node: ast.Try, what: str, where: Where) -> Iterator[Finding]:
    for handler in node.handlers:
        for inner in handler.body:
            if _skip_call(inner):
                message = f"{what} is skipped where the program raises, so its failure passes for none"
                fix = "Let the exception through: a program that cannot be imported or called has failed."
                yield major("suite.skipped", message, where=_at(where, inner), fix=fix)


def _skip_call(node: ast.stmt) -> bool:
    raised = node.exc if isinstance(node, ast.Raise) else None
    call = node.value if isinstance(node, ast.Expr) else raised
    if not isinstance(call, ast.Call):
        return False
    *owner, name = dotted(call.func).split(".")
    return (name in _SKIPPING and bool(owner) and owner[-1] in _OWNERS) or name == "SkipTest"


def _fails(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    if isinstance(node, ast.Raise):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func) in {"pytest.fail", "self.fail"}


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of the functions and classes in it."""
    waiting = direct(function)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += direct(node)
