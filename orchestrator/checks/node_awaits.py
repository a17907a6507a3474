"""What a Node test starts and nobody waits for: promises with assertions in them (spec 1 C2). By syntax tree."""

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.javascript_tests import FUNCTIONS, FoundTest, bindings, call_arguments
from orchestrator.syntax.javascript_tree import SUFFIXES, below, node_text, root

_ASSERTS = re.compile(r"assert\b|\bexpect\(|\.should\b")
_REJECTING = re.compile(r"(^|\.)(rejects|doesNotReject)$")
_PROMISED = re.compile(r"^expect\b.*\.(resolves|rejects)\.", re.DOTALL)
_LATER = re.compile(r"^(setTimeout|setImmediate|queueMicrotask|process\.nextTick)$|\.(then|catch|finally)$", re.DOTALL)
_ENDING = re.compile(r"(close|end|stop|destroy|abort|listen|disconnect)\w*$")
_HOLDING = frozenset({"await_expression", "return_statement", "yield_expression", "variable_declarator", "arguments"})
_THROUGH = frozenset({"parenthesized_expression", "as_expression", "non_null_expression", "member_expression"})
_FIX = "Make the test async and `await` it, or return the promise."


def awaits(tree: Node, tests: Iterable[FoundTest], project: Project, where: Where) -> Iterator[Finding]:
    """Major: a promise that decides the test, and that the test does not wait for."""
    started = frozenset(_async_functions(tree)) | _imported(tree, project)
    told: set[int] = set()
    for test in tests:
        if test.body is None or _parameters(test.body) > 1 or ".plan(" in node_text(test.body):
            continue  # it ends when it says so, or counts its assertions
        for call in (node for node in below(test.body) if node.type == "call_expression"):
            message = _floating(call, test.body, started)
            if message and call.id not in told:
                told.add(call.id)
                place = where.model_copy(update={"line": call.start_point.row + 1})
                yield major("suite.not_awaited", message, where=place, fix=_FIX)


def _floating(call: Node, body: Node, started: frozenset[str]) -> str:
    """Why nobody waits for the call although it matters; "" when somebody does, or it does not."""
    name = _callee(call)
    if (_REJECTING.search(name) and "assert" in name) or _PROMISED.match(name):
        return "" if _is_held(call) else f"`{name[:60]}` gives a promise that is not awaited, so it fails nothing"
    if _is_condition(call) and name in started:
        return f"`{name}(…)` is not awaited: a promise is always true"
    if _is_held(call):
        return ""
    inside = [node for node in call_arguments(call) if node.type in FUNCTIONS]
    asserts = any(_ASSERTS.search(node_text(node)) for node in inside)
    if (
        asserts
        and name.endswith(".forEach")
        and any(child.type == "async" for node in inside for child in node.children)
    ):
        return "`forEach` does not wait for an async function, so its assertions come too late"
    if asserts and _LATER.search(name) and _function_around(call) == body:
        return "assertions in a callback that the test does not wait for come too late"
    if not _is_statement(call) or _ENDING.search(name):
        return ""
    if name in started:
        return f"`{name}(…)` is not awaited"
    called = call.child_by_field_name("function")
    made = called is not None and called.type == "parenthesized_expression" and name.startswith("(async")
    return "an async function is called and not awaited" if made and _ASSERTS.search(name) else ""


def _callee(call: Node) -> str:
    return node_text(call.child_by_field_name("function")) if call.type == "call_expression" else ""


def _is_async(function: Node) -> bool:
    return any(child.type == "async" for child in function.children)


def _is_statement(call: Node) -> bool:
    return call.parent is not None and call.parent.type == "expression_statement"


def _is_condition(call: Node) -> bool:
    """The first argument of an assertion of truth."""
    around = call.parent.parent if call.parent is not None and call.parent.type == "arguments" else None
    if around is None or not re.search(r"^(\w+\.)*(assert|ok)$", _callee(around)):
        return False
    return call_arguments(around)[:1] == [call]


def _is_held(call: Node) -> bool:
    """Whether the promise goes somewhere: awaited, returned, kept, or handed on."""
    node, parent = call, call.parent
    while parent is not None:
        if parent.type in _HOLDING or parent.type in {"array", "spread_element", "pair", "ternary_expression"}:
            return True
        if parent.type == "arrow_function":
            return parent.child_by_field_name("body") == node
        if parent.type == "assignment_expression":
            return True
        if parent.type not in _THROUGH and parent.type != "call_expression":
            return False
        node, parent = parent, parent.parent
    return False


def _function_around(node: Node) -> Node | None:
    here = node.parent
    while here is not None and here.type not in FUNCTIONS:
        here = here.parent
    return here


def _parameters(function: Node) -> int:
    several = function.child_by_field_name("parameters")
    return len(several.named_children) if several is not None else 1


def _async_functions(tree: Node) -> Iterator[str]:
    """Names of a file's own async functions."""
    for node in below(tree):
        value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
        function = value if value is not None and value.type in FUNCTIONS else node
        if function.type in FUNCTIONS and function.type != "method_definition" and _is_async(function):
            yield node_text(node.child_by_field_name("name"))


def _imported(tree: Node, project: Project) -> frozenset[str]:
    """Names of async functions of the files under test, as they are imported here."""
    sources = ((path, text) for path, text in project.sources.items() if path.endswith(SUFFIXES) and "async" in text)
    offered = {name for path, text in sources for name in _async_functions(root(text, path))} - {""}
    return frozenset(one.name for one in bindings(tree) if one.module.startswith(".") and one.export in offered)
