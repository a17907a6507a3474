"""The parts of JavaScript's expressions, as every reader of their meaning needs them."""

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tree import name_text

THROUGH = frozenset(
    {"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "type_assertion"}
    | {"await_expression", "sequence_expression", "template_substitution"}
)
"""Expressions that are what their last part is."""


def callee(call: Node) -> Node | None:
    """What is called, or made by `new`."""
    return call.child_by_field_name("function") or call.child_by_field_name("constructor")


def arguments(call: Node) -> list[Node]:
    """What stands between the brackets of a call, or behind its tag, without comments."""
    given = call.child_by_field_name("arguments")
    if given is None:
        return []
    return (
        [given] if given.type == "template_string" else [one for one in given.named_children if one.type != "comment"]
    )


def alternatives(node: Node) -> list[Node | None]:
    """The parts of an expression that is one of its parts; [] for any other."""
    if node.type in THROUGH:
        inner = [child for child in node.named_children if child.type != "comment"]
        behind = node.type in {"type_assertion", "sequence_expression"}
        return [inner[-1 if behind else 0]] if inner else []
    if node.type == "ternary_expression":
        return [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
    if node.type == "binary_expression":
        sign = name_text(node.child_by_field_name("operator"))
        sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
        return sides if sign in {"||", "??"} else sides[1:] if sign == "&&" else []
    return [node.child_by_field_name("right")] if node.type == "assignment_expression" else []
