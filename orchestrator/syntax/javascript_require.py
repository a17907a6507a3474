"""Where a program's `require` goes: its other names, and the places from which its calls are not seen any more."""

from collections.abc import Iterator

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_names import Binding
from orchestrator.syntax.javascript_parts import alternatives
from orchestrator.syntax.javascript_scope import Scope
from orchestrator.syntax.javascript_tree import name_text, node_text, short_text

REQUIRERS = frozenset({"require", "module", "process", "#module", "import.meta"})
"""What has a `require` that loads modules."""


def requirers(scope: Scope) -> frozenset[str]:
    """Names that are `require` itself, also by way of one another."""
    names = scope.names
    found = {name for name, bound in names.items() if any(_is_require(scope, one) for one in bound)}
    heirs: dict[str, list[str]] = {}
    for name, bound in names.items():
        for one in bound:
            for leaf in leaves(one.value) if not one.keys else ():
                heirs.setdefault(name_text(leaf), []).append(name)
    waiting = [*found, "require"]
    while waiting:
        fresh = [name for name in heirs.pop(waiting.pop(), ()) if name not in found]
        found.update(fresh)
        waiting += fresh
    return frozenset({"require", *found})


def _is_require(scope: Scope, one: Binding) -> bool:
    if one.module:
        return one.keys == ("require",)
    paths = scope.paths(one.value) if one.value is not None else ()
    whole = [(*path, *one.keys) for path in paths]
    return any(path[-1] == "require" and path[0] in REQUIRERS for path in whole)


def leaves(value: Node | None) -> Iterator[Node]:
    """The names that an expression may be."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node is not None and node.type == "identifier":
            yield node
        elif node is not None:
            waiting += alternatives(node)


def hands_on(node: Node, scope: Scope, names: frozenset[str]) -> bool:
    """Whether `require` itself goes from here to where its calls are not seen."""
    if node.type in {"identifier", "shorthand_property_identifier"}:
        return name_text(node) in names and _escapes(node)
    if node.type == "call_expression":
        return ("require",) in scope.paths(node) and _escapes(node)
    if node.type != "member_expression" or node_text(node.child_by_field_name("property")) != "require":
        return False
    return any(path[-1] == "require" and path[0] in REQUIRERS for path in scope.paths(node)) and _escapes(node)


_READ = frozenset(
    {"if_statement", "unary_expression", "expression_statement", "template_substitution", "while_statement"}
    | {"formal_parameters", "required_parameter", "optional_parameter", "import_specifier", "import_clause"}
    | {"namespace_import", "import_require_clause", "catch_clause", "class_heritage", "type_query"}
    | {"function_declaration", "function_expression", "labeled_statement", "object_assignment_pattern", "ERROR"}
    | {"assignment_pattern", "array_pattern", "rest_pattern", "pair_pattern", "method_definition", "object_pattern"}
    | {"binary_expression", "call_expression", "new_expression", "member_expression"}
    | {"function_signature", "non_null_expression", "update_expression", "delete_expression", "nested_identifier"}
)
"""Where a name is declared, asked about or called, and nothing gets hold of its value."""
_ON = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "sequence_expression"})


def _escapes(node: Node) -> bool:
    """Whether the value of this expression is handed to something that is not a name of this file."""
    while (parent := node.parent) is not None:
        kind = parent.type
        if kind == "template_substitution":  # of a template with a tag
            return parent.parent is not None and getattr(parent.parent.parent, "type", "") == "call_expression"
        if kind in _ON or (kind == "binary_expression" and _is_choice(parent)):
            node = parent
        elif kind == "ternary_expression":
            if parent.child_by_field_name("condition") == node:
                return False
            node = parent
        else:
            return _escapes_into(parent, node)
    return False


def _escapes_into(parent: Node, node: Node) -> bool:
    kind = parent.type
    if kind == "arguments":
        return not _is_known_hand(parent.parent)
    if kind == "subscript_expression":
        return parent.child_by_field_name("index") == node
    if kind == "variable_declarator":
        return parent.child_by_field_name("name") != node and _is_exported(parent)
    if kind == "assignment_expression":
        left = parent.child_by_field_name("left")
        return left != node and left is not None and left.type != "identifier"
    return kind not in _READ


def _is_choice(node: Node) -> bool:
    return node_text(node.child_by_field_name("operator")) in {"||", "&&", "??"}


def _is_exported(declarator: Node) -> bool:
    """Whether a declarator is one of an export, under a name by which no importer would be seen."""
    statement = declarator.parent.parent if declarator.parent is not None else None
    name = node_text(declarator.child_by_field_name("name"))
    return statement is not None and statement.type == "export_statement" and name != "require"


def _is_known_hand(call: Node | None) -> bool:
    called = short_text(call.child_by_field_name("function")) if call is not None else ""
    return called in {"Reflect.apply", "Object.freeze", "Boolean", "String"}
