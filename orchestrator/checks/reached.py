"""Which nodes of a Python test a run could come to, with consequences (spec 1 C2). By syntax tree."""

import ast
from collections.abc import Iterable, Iterator

from orchestrator.checks.always_true import always_false, always_true
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import direct

_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException"})
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ENDING_CALLS = frozenset({"skip", "skipTest", "xfail", "exit", "_exit"})
_FAILING = frozenset({"fail", "skip", "skipTest", "xfail"})
_UNCALLED = frozenset(
    {"fixture", "contextmanager", "asynccontextmanager", "wraps", "property", "staticmethod", "overload"}
)
_TYPES_ONLY = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING"})


def reached(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Every node that a run of these statements could come to; a stack, because hostile code nests deeply.

    Left out: what stands behind a return or a skip, in `if False` or a loop over nothing, in a `try` that swallows a
    failed assertion, in an `except` when nothing fails without the exception, and in inner functions, unless a
    decorator takes them.
    """
    waiting: list[ast.AST] = list(_alive(body))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    return direct(node) if isinstance(node, ast.expr) else _of_statement(node)


def _of_statement(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Try | ast.TryStar):
        yield from _tried(node)
    elif isinstance(node, ast.If | ast.While):
        yield from _branches(node)
    elif isinstance(node, ast.For | ast.AsyncFor) and _empty(node.iter):
        yield from _alive(node.orelse)
    elif isinstance(node, ast.With | ast.AsyncWith) and any(_suppresses(item.context_expr) for item in node.items):
        yield from (item.context_expr for item in node.items)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if _taken(node):
            yield from _alive(node.body)
    elif isinstance(node, ast.ClassDef) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)):
        return  # counts where it is called
    else:
        yield from _all(node)


def _all(node: ast.AST) -> Iterator[ast.AST]:
    for value in vars(node).values():
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from _alive(item for item in value if isinstance(item, ast.AST))


def _branches(node: ast.If | ast.While) -> Iterator[ast.AST]:
    if always_false(node.test) or dotted(node.test) in _TYPES_ONLY:
        yield from _alive(node.orelse)
    else:
        yield node.test
        yield from _alive(node.body)
        if not always_true(node.test) or isinstance(node, ast.While):
            yield from _alive(node.orelse)


def _tried(node: ast.Try | ast.TryStar) -> Iterator[ast.AST]:
    swallowed = any(_swallows(handler) for handler in node.handlers)
    if not swallowed:
        yield from _alive(node.body)
    if swallowed or _may_fail([*node.body, *node.orelse]):
        for handler in node.handlers:
            yield from _alive(handler.body)
    yield from _alive(node.orelse)
    yield from _alive(node.finalbody)


def _alive(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if isinstance(node, _ENDS) or _ends_by_call(node):
            return


def _ends_by_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    name = dotted(node.value.func)
    return name.rpartition(".")[2] in _ENDING_CALLS and name.partition(".")[0] in {"pytest", "self", "sys", "os"}


def _may_fail(body: list[ast.stmt]) -> bool:
    """Whether something in the body fails the test without an exception of the program's."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assert | ast.Raise):
                return True
            if isinstance(node, ast.Call):
                name = dotted(node.func).rpartition(".")[2]
                if name in _FAILING or name.startswith("assert"):
                    return True
    return False


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches a failed assertion and goes on as if nothing had happened."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or dotted(kind).split(".")[-1] in _SWALLOWING for kind in caught):
        return False
    for part in ast.walk(handler):
        if isinstance(part, ast.Raise) or (isinstance(part, ast.Assert) and not always_true(part.test)):
            return False
        if isinstance(part, ast.Call) and dotted(part.func).split(".")[-1] in _FAILING:
            return False
    return True


def _suppresses(context: ast.expr) -> bool:
    """`with contextlib.suppress(Exception)`"""
    if not isinstance(context, ast.Call) or dotted(context.func).rpartition(".")[2] != "suppress":
        return False
    return any(dotted(kind).rpartition(".")[2] in _SWALLOWING for kind in context.args)


def _empty(iterated: ast.expr) -> bool:
    """A literal without elements, `range(0)`"""
    if isinstance(iterated, ast.Dict):
        return not iterated.keys
    if isinstance(iterated, ast.Call):
        bare = dotted(iterated.func) in {"list", "tuple", "set", "dict"} and not iterated.args
        none = dotted(iterated.func) == "range" and len(iterated.args) == 1 and always_false(iterated.args[0])
        return bare or none
    return isinstance(iterated, ast.List | ast.Tuple | ast.Constant) and always_false(iterated)


def _taken(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator takes the function, as a framework's route does."""
    names = [dotted(d.func if isinstance(d, ast.Call) else d).rpartition(".")[2] for d in node.decorator_list]
    return bool(names) and not _UNCALLED.intersection(names)
