"""Which nodes of a Node test a run could come to, with consequences (spec 1 C2). By syntax tree."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.checks.node_always_true import falsy
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import FUNCTIONS, call_arguments
from orchestrator.syntax.javascript_tree import below, node_text

DECLARED = frozenset({"function_declaration", "generator_function_declaration"})
_ENDS = frozenset({"return_statement", "throw_statement", "break_statement", "continue_statement"})
_FAILING = re.compile(r"assert|expect|\bfail\b|should|plan")
_BARE_CALL = re.compile(r"^console\.")


def run_nodes(function: Node, *, planned: bool = False) -> Iterator[Node]:
    """Nodes that run when the function does, as far as the tree shows.

    Left out: functions that only get a name here, what stands behind a `return`, in `if (false)` or a loop over
    nothing, in a `try` whose `catch` swallows what is thrown, and in a `catch` when nothing fails without the error.
    With a plan that counts assertions nothing can be lost by an error that is caught or does not come.
    """
    waiting = [function]
    while waiting:
        node = waiting.pop()
        yield node
        whole = planned and node.type == "try_statement"
        children = node.children if whole else _children(node)
        waiting.extend(reversed([child for child in children if child.type not in DECLARED]))


def _children(node: Node) -> Iterable[Node]:
    if node.type in {"statement_block", "program"}:
        return list(_alive(node.children))
    if node.type == "try_statement":
        return _tried(node)
    if node.type in {"if_statement", "while_statement"} and falsy(node.child_by_field_name("condition")):
        rest = node.child_by_field_name("alternative")
        return [rest] if rest is not None else []
    if node.type == "for_in_statement" and node_text(node.child_by_field_name("right")) in {"[]", "{}", "''", '""'}:
        return []
    if node.type == "variable_declarator":
        return [child for child in node.children if child.type not in FUNCTIONS]
    return node.children


def _alive(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if node.type in _ENDS:
            return


def _tried(node: Node) -> list[Node]:
    body, handler = node.child_by_field_name("body"), node.child_by_field_name("handler")
    swallowed = handler is not None and _swallows(handler)
    fails = body is not None and any(_may_fail(part) for part in below(body))
    left_out = {part.id for part in (body if swallowed else None, None if swallowed or fails else handler) if part}
    return [child for child in node.children if child.id not in left_out]


def _may_fail(node: Node) -> bool:
    if node.type == "throw_statement":
        return True
    return node.type == "call_expression" and bool(_FAILING.search(node_text(node.child_by_field_name("function"))))


def _swallows(handler: Node) -> bool:
    """Whether a `catch` goes on as if nothing had happened: it neither throws nor hands the error to anybody."""
    parameter = node_text(handler.child_by_field_name("parameter"))
    for node in below(handler):
        if node.type == "throw_statement":
            return False
        if node.type == "call_expression":
            callee = node_text(node.child_by_field_name("function"))
            handed = parameter and any(node_text(argument) == parameter for argument in call_arguments(node))
            if _FAILING.search(callee) or (handed and not _BARE_CALL.match(callee)):
                return False
    return True
