"""What a Node test starts and nobody waits for: promises with assertions in them (spec 1 C2). By syntax tree."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import FUNCTIONS, FoundTest, bindings, call_arguments
from orchestrator.syntax.javascript_tree import SUFFIXES, below, everything, node_text, root

_ASSERTS = re.compile(r"assert\b|\bexpect\(|\.should\b")
_REJECTING = re.compile(r"(^|\.)(rejects|doesNotReject)$")
_PROMISED = re.compile(r"^expect\b.*\.(resolves|rejects)\.", re.DOTALL)
_LATER = re.compile(r"^(setTimeout|setImmediate|queueMicrotask|process\.nextTick)$|\.(then|catch|finally)$", re.DOTALL)
_ENDING = re.compile(r"(close|end|stop|destroy|abort|listen|disconnect)\w*$")
_HOLDING = frozenset(
    {"await_expression", "return_statement", "yield_expression", "variable_declarator", "arguments", "array", "pair"}
    | {"spread_element", "ternary_expression", "assignment_expression"}
)
_THROUGH = frozenset(
    {"parenthesized_expression", "as_expression", "non_null_expression", "member_expression", "call_expression"}
)
_CLIMB = 40
"""Links of a chain that are followed; a longer one is taken as held."""
_FIX = "Make the test async and `await` it, or return the promise."


def awaits(tree: Node, tests: Iterable[FoundTest], project: Project, where: Where) -> Iterator[Finding]:
    """Major: a promise that decides the test, and that the test does not wait for."""
    started = frozenset(_async_functions(tree)) | _imported(tree, project)
    around = _Around(tree)
    told: set[int] = set()
    for test in tests:
        if test.body is None or _parameters(test.body) > 1 or ".plan(" in node_text(test.body):
            continue  # it ends when it says so, or counts its assertions
        for call in (node for node in below(test.body) if node.type == "call_expression" and node.id not in told):
            message = _floating(call, test.body, started, around)
            if message:
                told.add(call.id)
                place = where.model_copy(update={"line": call.start_point.row + 1})
                yield major("suite.not_awaited", message, where=place, fix=_FIX)


class _Around:
    """What stands around each node: a node itself finds its parent only by a walk from the root."""

    def __init__(self, tree: Node) -> None:
        self._parents: dict[int, Node] = {}
        self._functions: dict[int, Node | None] = {}
        waiting: list[tuple[Node, Node | None]] = [(tree, None)]
        while waiting:
            node, function = waiting.pop()
            inner = node if node.type in FUNCTIONS else function
            for child in node.children:
                self._parents[child.id] = node
                self._functions[child.id] = inner
                waiting.append((child, inner))

    def parent(self, node: Node) -> Node | None:
        """The node right around it."""
        return self._parents.get(node.id)

    def function(self, node: Node) -> Node | None:
        """The innermost function around it."""
        return self._functions.get(node.id)

    def holds(self, call: Node) -> bool:
        """Whether the promise goes somewhere: awaited, returned, kept, or handed on."""
        node, parent = call, self.parent(call)
        for _ in range(_CLIMB):
            if parent is None:
                return False
            if parent.type in _HOLDING:
                return True
            if parent.type == "arrow_function":
                return parent.child_by_field_name("body") == node
            if parent.type not in _THROUGH:
                return False
            node, parent = parent, self.parent(parent)
        return True


def _floating(call: Node, body: Node, started: frozenset[str], around: _Around) -> str:
    """Why nobody waits for the call although it matters; "" when somebody does, or it does not."""
    name = _callee(call)
    if (_REJECTING.search(name) and "assert" in name) or _PROMISED.match(name):
        return "" if around.holds(call) else f"`{name[:60]}` gives a promise that is not awaited, so it fails nothing"
    if name in started and _is_condition(call, around):
        return f"`{name}(…)` is not awaited: a promise is always true"
    if around.holds(call):
        return ""
    inside = [node for node in call_arguments(call) if node.type in FUNCTIONS]
    asserts = any(_ASSERTS.search(node_text(node)) for node in inside)
    if asserts and name.endswith(".forEach") and any(map(_is_async, inside)):
        return "`forEach` does not wait for an async function, so its assertions come too late"
    if asserts and _LATER.search(name) and around.function(call) == body:
        return "assertions in a callback that the test does not wait for come too late"
    parent = around.parent(call)
    if parent is None or parent.type != "expression_statement" or _ENDING.search(name):
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


def _is_condition(call: Node, around: _Around) -> bool:
    """The first argument of an assertion of truth."""
    arguments = around.parent(call)
    asked = around.parent(arguments) if arguments is not None and arguments.type == "arguments" else None
    if asked is None or not re.search(r"^(\w+\.)*(assert|ok)$", _callee(asked)):
        return False
    return call_arguments(asked)[:1] == [call]


def _parameters(function: Node) -> int:
    several = function.child_by_field_name("parameters")
    return len(several.named_children) if several is not None else 1


def _async_functions(tree: Node) -> Iterator[str]:
    """Names of a file's own async functions."""
    for node in everything(tree):
        value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
        function = value if value is not None and value.type in FUNCTIONS else node
        if function.type in FUNCTIONS and function.type != "method_definition" and _is_async(function):
            yield node_text(node.child_by_field_name("name"))


def _imported(tree: Node, project: Project) -> frozenset[str]:
    """Names of async functions of the files under test, as they are imported here."""
    sources = ((path, text) for path, text in project.sources.items() if path.endswith(SUFFIXES) and "async" in text)
    offered = {name for path, text in sources for name in _async_functions(root(text, path))} - {""}
    return frozenset(one.name for one in bindings(tree) if one.module.startswith(".") and one.export in offered)
