"""Modules that a JavaScript or TypeScript text names: by statements, and by calls with a literal."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_parts import arguments, callee
from orchestrator.syntax.javascript_tree import node_text, root, short_text, string_value
from orchestrator.syntax.python_source import Import

_LOADS = frozenset({"require", "import", "require.resolve", "jest.mock", "vi.mock"})
_TYPES = re.compile(r"""///\s*<reference\s+types\s*=\s*["'](?P<types>[^"']+)""")
_JSX = re.compile(r"@jsxImportSource\s+(?P<module>[^\s*]+)")
_FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "function_declaration", "method_definition", "generator_function"}
    | {"generator_function_declaration"}
)
_CHOICES = frozenset({"try_statement", "if_statement", "ternary_expression", "binary_expression"})
"""What stands in these may not be loaded at all: UMD asks `typeof require` first."""


class Loaded(Import):
    """One module that a text loads, as written."""


def loaded(text: str, path: str = "") -> Iterator[Loaded]:
    """Returns every module that `text` loads, in order; one may come several times. Never raises."""
    waiting = [(root(text, path), False, False)]
    while waiting:
        node, optional, lazy = waiting.pop()
        for one in _loaded_by(node):
            yield one.model_copy(update={"optional": optional, "lazy": lazy})
        optional = optional or node.type in _CHOICES
        lazy = lazy or node.type in _FUNCTIONS
        waiting += [(child, optional, lazy) for child in reversed(node.children)]


def _loaded_by(node: Node) -> Iterator[Loaded]:
    if node.type in {"import_statement", "export_statement", "import_require_clause"}:
        if module := string_value(node.child_by_field_name("source")):
            yield _found(module, node, types=any(child.type == "type" for child in node.children) or _only_types(node))
    elif node.type == "call_expression" and short_text(callee(node)) in _LOADS:
        given = arguments(node)
        if given and (module := string_value(given[0])):
            yield _found(module, node, types=_in_type(node))
    elif node.type == "comment":
        text = node_text(node)
        yield from (_found(match["types"], node, types=True) for match in _TYPES.finditer(text))
        yield from (_found(match["module"], node) for match in _JSX.finditer(text))


def _found(module: str, node: Node, *, types: bool = False) -> Loaded:
    line = node.start_point.row + 1
    return Loaded(module=module, line=line, relative=module.startswith("."), type_only=types)


def _only_types(node: Node) -> bool:
    """`import { type A, type B }`: nothing but types."""
    clause = next((child for child in node.named_children if child.type in {"import_clause", "export_clause"}), None)
    if clause is None:
        return False
    names = clause if clause.type == "export_clause" else next(iter(clause.named_children), clause)
    if len(clause.named_children) > 1 and clause.type == "import_clause":
        return False
    items = [one for one in names.named_children if one.type in {"import_specifier", "export_specifier"}]
    return bool(items) and all(any(part.type == "type" for part in one.children) for one in items)


def _in_type(call: Node) -> bool:
    """Whether `import("x")` stands in a type, as in `typeof import("x")`."""
    node = call.parent
    while node is not None and node.type in {"member_expression", "nested_identifier", "nested_type_identifier"}:
        node = node.parent
    kind = node.type if node is not None else ""
    return (kind != "type_assertion" and kind.startswith(("type_", "literal_type"))) or kind.endswith("_type")


def unique(found: Iterable[Loaded]) -> tuple[Loaded, ...]:
    """Returns each module of each line once; one that is used as more than types there is not only types."""
    kept: dict[tuple[str, int], Loaded] = {}
    for one in found:
        key = (one.module, one.line)
        if key not in kept or (kept[key].type_only and not one.type_only):
            kept[key] = one
    return tuple(kept.values())
