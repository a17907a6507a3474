"""The parts of JavaScript's expressions, as every reader of their meaning needs them."""

from collections.abc import Iterable

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tree import name_text, string_value

EACH = "*"
"""Stands for any element of a list or an object."""
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


def members(holder: Node, key: str) -> Iterable[Node | None]:
    """The values under `key` in a literal of an object or a list, None for what is spread into it."""
    found: list[Node | None] = []
    for place, member in enumerate(child for child in holder.named_children if child.type != "comment"):
        if member.type == "spread_element":
            found.append(None)
        elif holder.type == "array":
            found += [member] if key in {EACH, str(place)} else []
        elif member.type == "pair":
            name = member.child_by_field_name("key")
            found += (
                [member.child_by_field_name("value")] if key in {EACH, string_value(name) or name_text(name)} else []
            )
        elif member.type == "shorthand_property_identifier" and key in {EACH, name_text(member)}:
            found.append(member)
    return found or [None]
