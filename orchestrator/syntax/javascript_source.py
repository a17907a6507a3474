"""What a JavaScript or TypeScript text exports and imports, by a tolerant syntax tree: broken ones give a part."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from orchestrator.syntax.javascript_tree import SUFFIXES, below, literal, node_text, root
from orchestrator.syntax.python_source import Import

__all__ = ["MIXED", "SUFFIXES", "exported_names", "imports"]

_BY_LINE = re.compile(r"""\b(?:from|import|require\s*\(|import\s*\()\s*(["'`])(?P<module>[^"'`$\s]+)\1""")

MIXED = (".vue", ".svelte", ".astro")
"""JavaScript between other things, which no grammar here knows."""
_REQUIRE_MADE = re.compile(r"\b(\w+)\s*=\s*(?:\w+\.)?createRequire\s*\(")
"""A name that requires like `require` itself."""


def exported_names(text: str, path: str = "") -> tuple[str, ...]:
    """Names other modules may import, in order, each once; `default` for a default export. Types are among them.

    Knows `export` declarations and lists, `module.exports = {…}`, `module.exports.x =` and `exports.x =`.
    """
    names: dict[str, None] = {}
    for node in below(root(text, path)):
        if node.type == "export_statement":
            names.update(dict.fromkeys(_export(node)))
        elif node.type == "assignment_expression":
            names.update(dict.fromkeys(_common_js(node)))
    return tuple(names)


def imports(text: str, path: str = "") -> tuple[Import, ...]:
    """Every module named by import, `export … from`, `require("x")` or `import("x")`, as written, with its line.

    Where the tree has errors (broken text, or syntax the grammar does not know) or the file is a mixed one, the lines
    are searched as well, so that an import is rather found too often than missed.
    """
    found: dict[tuple[str, int], bool] = {}
    tree = root(text, path)
    requires = {"require", "import", "require.resolve", "module.require", "import.meta.resolve"}
    requires.update(match[1] for match in _REQUIRE_MADE.finditer(text))
    for node in below(tree):
        module = _module_of(node, requires)
        if module:
            key = (module, node.start_point.row + 1)
            found[key] = found.get(key, True) and any(child.type == "type" for child in node.children)
    if tree.has_error or path.lower().endswith(MIXED):
        for number, line in enumerate(text.split("\n"), start=1):
            for match in _BY_LINE.finditer(line):
                found.setdefault((match["module"], number), False)
    return tuple(
        Import(module=name, line=line, relative=name.startswith("."), type_only=types)
        for (name, line), types in found.items()
    )


def _module_of(node: Node, requires: set[str]) -> str:
    if node.type in {"import_statement", "export_statement", "import_require_clause"}:
        return literal(node.child_by_field_name("source"))
    if node.type == "call_expression":
        called = node_text(node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        made_here = called.startswith(("createRequire(", "module.createRequire("))
        given = (
            [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []
        )
        if (called in requires or made_here) and given:
            return _joined(given[0])
    return ""


def _joined(node: Node | None) -> str:
    """A literal, or literals joined by `+`; "" for anything else."""
    if node is None or node.type != "binary_expression":
        return literal(node)
    left, right = _joined(node.child_by_field_name("left")), _joined(node.child_by_field_name("right"))
    return left + right if left and right and node_text(node.child_by_field_name("operator")) == "+" else ""


def _export(node: Node) -> Iterator[str]:
    if any(child.type == "default" for child in node.children):
        yield "default"
        return
    declaration = node.child_by_field_name("declaration")
    if declaration is not None and declaration.type == "ambient_declaration" and declaration.named_children:
        declaration = declaration.named_children[0]
    if declaration is not None:
        yield from _declared(declaration)
    for clause in node.named_children:
        if clause.type == "export_clause":
            for item in clause.named_children:
                yield node_text(item.child_by_field_name("alias") or item.child_by_field_name("name")).strip("\"'")
        elif clause.type == "namespace_export" and clause.named_children:
            yield node_text(clause.named_children[0])


def _declared(declaration: Node) -> Iterator[str]:
    name = declaration.child_by_field_name("name")
    if name is not None:
        yield node_text(name)
    for part in declaration.named_children:
        if part.type == "variable_declarator":
            yield from _bound(part.child_by_field_name("name"))


def _bound(target: Node | None) -> Iterator[str]:
    """Names bound by a declarator: an identifier or a destructuring pattern."""
    waiting = [target]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if node.type in {"identifier", "shorthand_property_identifier_pattern"}:
            yield node_text(node)
        elif node.type == "pair_pattern":
            waiting.append(node.child_by_field_name("value"))
        elif node.type == "assignment_pattern":
            waiting.append(node.child_by_field_name("left"))
        else:
            waiting.extend(reversed(node.named_children))


def _common_js(node: Node) -> Iterator[str]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    target = node_text(left) if left is not None and left.type == "member_expression" else ""
    if target == "module.exports":
        yield from _members(right)
    elif target.startswith(("exports.", "module.exports.")):
        yield target.rsplit(".", 1)[1]


def _members(value: Node | None) -> Iterator[str]:
    if value is None or value.type != "object":
        yield "default"
        return
    for member in value.named_children:
        if member.type == "shorthand_property_identifier":
            yield node_text(member)
        elif member.type == "pair":
            yield node_text(member.child_by_field_name("key")).strip("\"'")
        elif member.type == "method_definition":
            yield node_text(member.child_by_field_name("name"))
