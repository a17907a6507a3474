"""Does a Node test assert anything, and can that fail (spec 1 C2)? By syntax tree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from orchestrator.syntax.javascript_tests import FUNCTIONS, bindings, call_arguments
from orchestrator.syntax.javascript_tree import below, node_text

_MODULES = frozenset({"assert", "assert/strict", "node:assert", "node:assert/strict"})
_COMPARING = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual", "partialDeepStrictEqual"})
_TRUTH = frozenset({"ok", "assert"})
_DECLARED = frozenset({"function_declaration", "generator_function_declaration"})
_ALWAYS = frozenset({"true", "array", "object", "regex", "arrow_function", "function_expression", "class"})
_WRAPPING = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"})
_EFFECTS = frozenset({"call_expression", "await_expression", "new_expression", "yield_expression", "update_expression"})


@dataclass(frozen=True)
class Assertion:
    """One assertion; `always_true` says why it cannot fail, "" when it can."""

    line: int
    always_true: str = ""


class Assertions:
    """Reads the tests of one file. A function of the file that asserts makes its callers assert."""

    def __init__(self, tree: Node) -> None:
        self._names = {found.name: found.export for found in bindings(tree) if found.module in _MODULES}
        self._helpers = _helpers(tree)
        self._memo: dict[str, bool] = {}

    def of(self, body: Node) -> list[Assertion]:
        """What the function asserts itself or by functions of the same file."""
        found: list[Assertion] = []
        for node in _run_nodes(body):
            if node.type == "throw_statement":
                found.append(Assertion(node.start_point.row + 1))
            elif node.type == "call_expression":
                verb = self._verb(node)
                if verb:
                    found.append(Assertion(node.start_point.row + 1, _always_true(verb, node)))
                elif self._by_helper(node_text(node.child_by_field_name("function"))):
                    found.append(Assertion(node.start_point.row + 1))
        return found

    def _verb(self, call: Node) -> str:
        """Which assertion the call is (`ok`, `equal`, `expect` …), "" for none."""
        head, *members = node_text(call.child_by_field_name("function")).split(".")
        if head in self._names:
            export = self._names[head]
            return members[-1] if members else "ok" if export in {"default", "*", "strict", "ok"} else export
        if "assert" in members[:-1]:  # a test context's own: t.assert.equal
            return members[-1]
        if head.startswith(("expect(", "expect ")):
            return "expect"
        return "other" if "assert" in head.lower() or head.lower().startswith(("expect", "should", "verify")) else ""

    def _by_helper(self, name: str) -> bool:
        """Whether calling the file's function `name` comes to an assertion; walks without recursion."""
        waiting, seen = [name], set[str]()
        while waiting:
            here = waiting.pop()
            if here in seen or here not in self._helpers:
                continue
            seen.add(here)
            for node in _run_nodes(self._helpers[here]):
                if node.type == "throw_statement" or (node.type == "call_expression" and self._verb(node)):
                    return True
                if node.type == "call_expression":
                    waiting.append(node_text(node.child_by_field_name("function")))
        return False


def _helpers(tree: Node) -> Mapping[str, Node]:
    found: dict[str, Node] = {}
    for node in below(tree):
        if node.type in _DECLARED:
            found[node_text(node.child_by_field_name("name"))] = node
        elif node.type == "variable_declarator":
            value = node.child_by_field_name("value")
            if value is not None and value.type in FUNCTIONS:
                found[node_text(node.child_by_field_name("name"))] = value
    return found


def _run_nodes(function: Node) -> Iterator[Node]:
    """Nodes that run when the function does, as far as the tree shows.

    Left out: functions that only get a name here, and the body of a `try` whose `catch` swallows what is thrown.
    """
    waiting = [function]
    while waiting:
        node = waiting.pop()
        yield node
        children = list(node.children)
        if node.type == "try_statement" and _swallows(node):
            body = node.child_by_field_name("body")
            children = [child for child in children if child != body]
        elif node.type == "variable_declarator":
            children = [child for child in children if child.type not in FUNCTIONS]
        waiting.extend(child for child in reversed(children) if child.type not in _DECLARED)


def _swallows(statement: Node) -> bool:
    handler = statement.child_by_field_name("handler")
    if handler is None:
        return False
    return not any(node.type in {"throw_statement", "call_expression"} for node in below(handler))


def _always_true(verb: str, call: Node) -> str:
    if verb == "expect":
        return _expectation(call)
    arguments = call_arguments(call)
    if verb in _TRUTH and arguments:
        return _truth(arguments[0])
    if verb in _COMPARING and len(arguments) > 1 and _same(arguments[0], arguments[1]):
        return "a value is compared with itself"
    return ""


def _truth(value: Node) -> str:
    while value.type in _WRAPPING and value.named_children:
        value = value.named_children[0]
    text = node_text(value)
    if value.type in _ALWAYS or text in {"!false", "!0", "!null", "!undefined"}:
        return f"`{text[:60]}` is true"
    if value.type in {"string", "template_string"} and len(text) > 2:
        return "a text is true"
    if value.type == "number" and text.strip("0.") != "":
        return f"`{text[:60]}` is true"
    if value.type == "binary_expression":
        return _operation(value)
    return ""


def _operation(value: Node) -> str:
    left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    operator = node_text(value.child_by_field_name("operator"))
    if left is None or right is None:
        return ""
    if operator == "||" and (_truth(left) or _truth(right)):
        return "one side of `||` is true"
    if operator in {"==", "===", ">=", "<="} and _same(left, right):
        return "a value is compared with itself"
    if operator == ">=" and node_text(left).endswith(".length") and node_text(right) == "0":
        return "no length is below 0"
    return ""


def _expectation(call: Node) -> str:
    """`expect(x).toBe(x)` and the like."""
    callee = call.child_by_field_name("function")
    expected = call_arguments(call)
    inner = [node for node in below(callee) if node.type == "call_expression"] if callee is not None else []
    given = call_arguments(inner[0]) if inner else []
    negated = ".not." in node_text(callee)
    if given and expected and not negated and _same(given[0], expected[0]):
        return "a value is compared with itself"
    return ""


def _same(left: Node, right: Node) -> bool:
    if node_text(left) != node_text(right):
        return False
    return not any(node.type in _EFFECTS for node in below(left))
