"""Which values the names of a JavaScript or TypeScript text are bound to, whatever their scope."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_parts import EACH
from orchestrator.syntax.javascript_tree import name_text, string_value

_OVER_ELEMENTS = frozenset({"map", "forEach", "filter", "flatMap", "some", "every", "find"})
_FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "function", "function_declaration", "method_definition"}
    | {"generator_function", "generator_function_declaration"}
)


class Binding(NamedTuple):
    """One value that a name gets somewhere in the text."""

    value: Node | None
    """None: a value that is not in the text, such as a parameter's."""
    keys: tuple[str, ...] = ()
    """What is taken out of the value, from the outside in."""
    module: str = ""
    """The module it is imported from, instead of a value."""


_UNKNOWN = Binding(None)


def bindings(nodes: Iterable[Node]) -> Mapping[str, list[Binding]]:
    """Name → every value it gets, by declaration, assignment, import, loop or as a parameter.

    A name that means several things in several functions has all their values: what holds for a name holds for each.
    """
    found: dict[str, list[Binding]] = {}
    for node in nodes:
        for name, binding in _bound_by(node):
            found.setdefault(name, []).append(binding)
    return found


def targets(pattern: Node | None) -> Iterator[tuple[str, tuple[str, ...], Node | None]]:
    """(name, keys into the value, its default) for every name that a pattern binds."""
    waiting: list[tuple[Node | None, tuple[str, ...], Node | None]] = [(pattern, (), None)]
    while waiting:
        node, keys, default = waiting.pop()
        if node is None:
            continue
        if node.type in {"identifier", "shorthand_property_identifier_pattern"}:
            name = name_text(node)
            yield name, (*keys, name) if node.type.startswith("shorthand") else keys, default
        elif node.type == "pair_pattern":
            waiting.append((node.child_by_field_name("value"), (*keys, _key(node)), default))
        elif node.type in {"assignment_pattern", "object_assignment_pattern"}:
            waiting.append((node.child_by_field_name("left"), keys, node.child_by_field_name("right")))
        elif node.type == "array_pattern":
            waiting += [(child, (*keys, str(place)), None) for place, child in enumerate(node.named_children)]
        elif node.type in {"object_pattern", "rest_pattern"}:
            waiting += [(child, keys, None) for child in node.named_children]


def _key(node: Node) -> str:
    key = node.child_by_field_name("key")
    return string_value(key) or name_text(key)


def _bound_by(node: Node) -> Iterator[tuple[str, Binding]]:
    kind = node.type
    if kind == "variable_declarator":
        yield from _assigned(node.child_by_field_name("name"), node.child_by_field_name("value"))
    elif kind == "assignment_expression":
        yield from _assigned(node.child_by_field_name("left"), node.child_by_field_name("right"))
    elif kind == "augmented_assignment_expression":
        yield from ((name, _UNKNOWN) for name, _, _ in targets(node.child_by_field_name("left")))
    elif kind == "for_in_statement":
        for name, keys, _ in targets(node.child_by_field_name("left")):
            over = any(child.type == "of" for child in node.children)
            yield name, Binding(node.child_by_field_name("right"), (EACH, *keys)) if over else _UNKNOWN
    elif kind == "catch_clause":
        yield from ((name, _UNKNOWN) for name, _, _ in targets(node.child_by_field_name("parameter")))
    elif kind == "import_statement":
        yield from _imported(node)
    elif kind in _FUNCTIONS:
        yield from _of_function(node)


def _assigned(left: Node | None, value: Node | None) -> Iterator[tuple[str, Binding]]:
    if left is not None and left.type in {"member_expression", "subscript_expression"}:
        while left is not None and left.type in {"member_expression", "subscript_expression"}:
            left = left.child_by_field_name("object")
        if left is not None and left.type == "identifier":
            yield name_text(left), _UNKNOWN  # something in it is not what its literal says any more
    elif value is not None:
        for name, keys, default in targets(left):
            yield name, Binding(value, keys)
            if default is not None:
                yield name, Binding(default)


def _imported(node: Node) -> Iterator[tuple[str, Binding]]:
    module = string_value(node.child_by_field_name("source"))
    for clause in node.named_children:
        if clause.type == "import_require_clause":
            module = string_value(clause.child_by_field_name("source"))
            yield name_text(clause.named_children[0]), Binding(None, module=module)
        for part in clause.named_children if clause.type == "import_clause" else ():
            if part.type == "identifier":
                yield name_text(part), Binding(None, module=module)
            elif part.type == "namespace_import" and part.named_children:
                yield name_text(part.named_children[0]), Binding(None, module=module)
            for one in part.named_children if part.type == "named_imports" else ():
                name = one.child_by_field_name("name")
                key = string_value(name) or name_text(name) or "default"
                yield name_text(one.child_by_field_name("alias") or name), Binding(None, (key,), module)


def _of_function(node: Node) -> Iterator[tuple[str, Binding]]:
    """A function's own name, and its parameters."""
    name = node.child_by_field_name("name")
    if name is not None and name.type == "identifier":
        yield name_text(name), Binding(node)
    over = _elements_of(node)
    single, several = node.child_by_field_name("parameter"), node.child_by_field_name("parameters")
    given = [single] if single is not None else several.named_children if several is not None else []
    for place, parameter in enumerate(given):
        pattern = parameter.child_by_field_name("pattern") or parameter
        for bound, keys, default in targets(pattern):
            yield bound, Binding(over, (EACH, *keys)) if over is not None and place == 0 else _UNKNOWN
            for value in (default, parameter.child_by_field_name("value")):
                if value is not None:
                    yield bound, Binding(value)


def _elements_of(function: Node) -> Node | None:
    """What a callback such as that of `list.map` goes over."""
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
    if called is None or called.type != "member_expression":
        return None
    if name_text(called.child_by_field_name("property")) not in _OVER_ELEMENTS:
        return None
    return called.child_by_field_name("object")
