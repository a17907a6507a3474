"""Python tests that nobody awaits, and calls in them that nobody awaits (spec 1 C2). By syntax tree."""

import ast
import re
from collections.abc import Iterable, Iterator

from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax import python_source
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import FoundTest, Function, PythonSuite, direct

_DRIVEN = re.compile(r"async|anyio|trio|curio|tornado|coro|loop|sync|gen_test|inject", re.IGNORECASE)
_CASES = re.compile(r"(^|\.)(IsolatedAsyncioTestCase|Async\w*TestCase|AioHTTPTestCase)$")
_ASYNC_CLIENT = re.compile(r"(^|\.)(AsyncClient|ClientSession|AsyncTestClient)$")
_SENDING = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "request", "send"})
_BY_HAND = "Write a plain test function that calls asyncio.run(…) on what is to be awaited."


def awaits(suite: PythonSuite, project: Project, where: Where) -> Iterator[Finding]:
    """Major: an async test that pytest would not run, a coroutine that is asserted or left alone instead of awaited."""
    driven = _marked_file(suite.tree) or bool(project.awaits_by_itself)
    classes = {node.name: node for node in suite.nodes if isinstance(node, ast.ClassDef)}
    for test in suite.tests:
        if isinstance(test.node, ast.AsyncFunctionDef):
            yield from _never_run(test, classes.get(test.owner), driven, project, where)
    coroutines = _coroutines(suite.nodes, project)
    for test in suite.tests:
        yield from _left_alone(test.node, coroutines, where)


def _never_run(
    test: FoundTest, owner: ast.ClassDef | None, driven: bool, project: Project, where: Where
) -> Iterator[Finding]:
    place = where.model_copy(update={"line": test.node.lineno})
    bases = [dotted(base) for base in owner.bases] if owner else []
    if any(_CASES.search(base) for base in bases):
        return
    marks = [mark for mark in _marks(test.node, owner) if _DRIVEN.search(mark)]
    if any(base.rpartition(".")[2] == "TestCase" for base in bases) and all("mark." in mark for mark in marks):
        message = f"`{test.name}` is async in a unittest.TestCase, which never awaits it"
        fix = "Derive the class from unittest.IsolatedAsyncioTestCase."
        yield major("suite.not_awaited", message, where=place, fix=fix)
        return
    if marks and all(mark.endswith("asyncio") for mark in marks) and _lacks_asyncio(project):
        message = f"`{test.name}` needs pytest-asyncio, which the project does not have"
        yield major("suite.not_awaited", message, where=place, fix=_BY_HAND)
    elif not marks and not driven:
        if project.awaits_by_itself is None:
            message = f"`{test.name}` is async and runs only where the project sets asyncio_mode = auto"
            yield minor("suite.not_awaited", message, where=place, fix=_BY_HAND)
        else:
            message = f"`{test.name}` is async, and nothing here makes pytest await it"
            yield major("suite.not_awaited", message, where=place, fix=_BY_HAND)


def _lacks_asyncio(project: Project) -> bool:
    return project.packages is not None and "pytest-asyncio" not in project.packages


def _marks(node: Function, owner: ast.ClassDef | None) -> Iterator[str]:
    for decorator in (*node.decorator_list, *(owner.decorator_list if owner else ())):
        yield dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    for statement in owner.body if owner else ():
        yield from _pytestmark(statement)
    yield from (argument.arg for argument in node.args.args if argument.arg in {"anyio_backend", "event_loop"})


def _marked_file(tree: ast.Module) -> bool:
    return any(_DRIVEN.search(mark) for statement in tree.body for mark in _pytestmark(statement))


def _pytestmark(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == "pytestmark":
        held = statement.value
        for mark in held.elts if isinstance(held, ast.List | ast.Tuple) else [held]:
            yield dotted(mark.func if isinstance(mark, ast.Call) else mark)


def _coroutines(nodes: Iterable[ast.AST], project: Project) -> frozenset[str]:
    """Names whose calls are awaited or not at all: async functions of the file and of the files under test."""
    plain = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    found = {node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef)} - plain
    offered = _async_names(project)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names if alias.name in offered}
    return frozenset(found - {""})


def _async_names(project: Project) -> frozenset[str]:
    found: set[str] = set()
    for path, text in project.sources.items():
        tree = python_source.parse(text) if path.endswith(".py") else None
        found |= {node.name for node in (tree.body if tree else ()) if isinstance(node, ast.AsyncFunctionDef)}
    return frozenset(found)


def _async_clients(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.AsyncWith):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and _ASYNC_CLIENT.search(dotted(call.func)):
                    yield dotted(item.optional_vars) if item.optional_vars else ""


def _left_alone(function: ast.AST, coroutines: frozenset[str], where: Where) -> Iterator[Finding]:
    """Calls of coroutines that stand as a statement, in a condition, or have a member asked of them.

    What the same function awaits elsewhere is one, too, and a request of an async client that it opens.
    """
    inner: list[ast.AST] = []
    nodes = list(_own(function, inner))
    for one in inner:
        yield from _left_alone(one, coroutines, where)
    clients = set(_async_clients(nodes))
    waited = {dotted(n.value.func) for n in nodes if isinstance(n, ast.Await) and isinstance(n.value, ast.Call)}
    for node in nodes:
        for call in _used(node):
            name = dotted(call.func)
            head, _, method = name.partition(".")
            if name in coroutines or (name and name in waited) or (head in clients and method in _SENDING):
                place = where.model_copy(update={"line": call.lineno})
                message = f"`{name}(…)` is not awaited: a coroutine is true, and never runs"
                fix = f"Write `await {name}(…)` in an async test, or `asyncio.run({name}(…))` in a plain one."
                yield major("suite.not_awaited", message, where=place, fix=fix)


def _own(function: ast.AST, inner: list[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions in it, which are added to `inner`."""
    waiting = direct(function)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            inner.append(node)
            continue
        yield node
        waiting += direct(node)


def _used(node: ast.AST) -> list[ast.Call]:
    if isinstance(node, ast.Expr | ast.Attribute | ast.Subscript):
        held: list[ast.expr] = [node.value]
    elif isinstance(node, ast.Assert):
        held = [node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test]
    elif isinstance(node, ast.Compare):
        held = [node.left, *node.comparators]
    else:
        return []
    return [one for one in held if isinstance(one, ast.Call)]
