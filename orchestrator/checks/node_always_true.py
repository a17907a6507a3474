"""Assertions of a Node test that hold whatever the program does (spec 1 C2). By syntax tree."""

import re

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import call_arguments
from orchestrator.syntax.javascript_tree import below, node_text

_COMPARING = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual", "partialDeepStrictEqual"})
_TRUTH = frozenset({"ok", "assert"})
_CONSTANTS = frozenset({"true", "false", "null", "undefined", "number", "string", "regex"})
_MADE = frozenset({"array", "object", "regex", "arrow_function", "function_expression", "class", "new_expression"})
_WRAPPING = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"})
_EFFECTS = frozenset({"call_expression", "await_expression", "new_expression", "yield_expression", "update_expression"})
_OPPOSITE = {"===": "!==", "==": "!=", "<": ">=", ">": "<="}
_DEPTH = 20
"""Operators inside operators that are looked into."""
_HOLDING = re.compile(r"^(toBeTruthy|toBeDefined|ok|true|exist|be|not\.toBeNull|not\.toBeUndefined)$")


def always_true(verb: str, call: Node) -> str:
    """Why this assertion cannot fail; "" when it can. `verb` is `ok`, `equal`, `expect` …"""
    if verb == "expect":
        return _expectation(call)
    arguments = call_arguments(call)
    if verb in _TRUTH and arguments:
        return truth(arguments[0])
    if verb in _COMPARING and len(arguments) > 1 and same(arguments[0], arguments[1]):
        return "a value is compared with itself"
    if verb in {"throws", "rejects"} and arguments and _throws_at_once(arguments[0]):
        return "the test throws itself what it expects"
    if verb in {"doesNotThrow", "doesNotReject"} and arguments and _empty(arguments[0]):
        return "an empty function never throws"
    return ""


def truth(value: Node, depth: int = 0) -> str:
    """Why the value is true, "" when it may not be, or is nested too deeply to say."""
    if depth > _DEPTH:
        return ""
    value = _bare(value)
    text = node_text(value)
    if value.type == "true" or value.type in _MADE:
        return f"`{text[:60]}` is true"
    if value.type in {"string", "template_string"} and len(text) > 2:
        return "a text is true"
    if value.type == "number" and text.strip("0.") != "":
        return f"`{text[:60]}` is true"
    if value.type == "unary_expression" and node_text(value.child_by_field_name("operator")) == "!":
        return f"`{text[:60]}` is true" if falsy(value.child_by_field_name("argument"), depth + 1) else ""
    return _operation(value, depth + 1) if value.type == "binary_expression" else ""


def falsy(value: Node | None, depth: int = 0) -> bool:
    """Whether the value is a constant that counts as false."""
    if value is None or depth > _DEPTH:
        return False
    value = _bare(value)
    if value.type == "unary_expression" and node_text(value.child_by_field_name("operator")) == "!":
        inner = value.child_by_field_name("argument")
        return inner is not None and bool(truth(inner, depth + 1))
    return node_text(value) in {"false", "0", "null", "undefined", '""', "''", "NaN"}


def same(left: Node, right: Node) -> bool:
    """The same expression twice, without a call: two calls may well differ."""
    if node_text(left) != node_text(right):
        return False
    return not any(node.type in _EFFECTS for node in below(left))


def _bare(value: Node) -> Node:
    while value.type in _WRAPPING and value.named_children:
        value = value.named_children[0]
    return value


def _operation(value: Node, depth: int) -> str:
    left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    operator = node_text(value.child_by_field_name("operator"))
    if left is None or right is None:
        return ""
    if operator == "||":
        if truth(left, depth) or truth(right, depth):
            return "one side of `||` is true"
        return "one side of `||` is the opposite of the other" if _opposite(left, right) else ""
    if operator in {"==", "===", ">=", "<="} and same(left, right):
        return "a value is compared with itself"
    if operator in {"!=", "!=="} and left.type in _CONSTANTS and right.type in _CONSTANTS:
        return "two constants are compared" if node_text(left) != node_text(right) else ""
    if _is_length(left) and (operator, node_text(right)) in {(">=", "0"), (">", "-1"), ("!==", "-1")}:
        return "no length is below 0"
    if _is_length(right) and (operator, node_text(left)) in {("<=", "0"), ("<", "-1")}:
        return "no length is below 0"
    return ""


def _is_length(node: Node) -> bool:
    return node_text(node).endswith((".length", ".size"))


def _opposite(left: Node, right: Node) -> bool:
    """`x` and `!x`, `x === null` and `x !== null`."""
    for one, other in ((_bare(left), _bare(right)), (_bare(right), _bare(left))):
        if other.type == "unary_expression" and node_text(other.child_by_field_name("operator")) == "!":
            inner = other.child_by_field_name("argument")
            if inner is not None and same(one, _bare(inner)):
                return True
        if one.type == other.type == "binary_expression":
            signs = [node_text(side.child_by_field_name("operator")) for side in (one, other)]
            parts = [[node_text(side.child_by_field_name(name)) for name in ("left", "right")] for side in (one, other)]
            if _OPPOSITE.get(signs[0]) == signs[1] and parts[0] == parts[1]:
                return True
    return False


def _throws_at_once(value: Node) -> bool:
    body = value.child_by_field_name("body")
    first = body.named_children[0] if body is not None and body.named_children else None
    return first is not None and first.type == "throw_statement"


def _empty(value: Node) -> bool:
    body = value.child_by_field_name("body")
    return body is not None and body.type == "statement_block" and not body.named_children


def _expectation(call: Node) -> str:
    """`expect(x).toBe(x)`, `expect(true).toBeTruthy()` and the like."""
    callee = call.child_by_field_name("function")
    expected = call_arguments(call)
    inner = [node for node in below(callee) if node.type == "call_expression"] if callee is not None else []
    given = call_arguments(inner[0]) if inner else []
    matcher = node_text(callee).rpartition(")")[2].lstrip(".")
    if given and expected and "not." not in matcher and same(given[0], expected[0]):
        return "a value is compared with itself"
    constant = bool(given) and given[0].type != "new_expression" and bool(truth(given[0]))
    return truth(given[0]) if constant and not expected and _HOLDING.match(matcher) else ""
