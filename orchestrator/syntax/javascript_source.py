"""What a JavaScript or TypeScript text exports and imports, by a tolerant syntax tree: broken ones give a part."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_imports import Loaded, loaded, unique
from orchestrator.syntax.javascript_mixed import MIXED, scripts
from orchestrator.syntax.javascript_tree import SUFFIXES, below, node_text, root

__all__ = ["MIXED", "SUFFIXES", "Loaded", "exported_names", "imports"]

_QUOTED = r"""(["'`])(?P<module>[^"'`$\s]+)\1"""
_CALLED = re.compile(rf"\b(?:import|require)\s*\(\s*{_QUOTED}")
_ANYHOW = re.compile(
    rf"\b(?:from|import|require|_load|importScripts)\b(?:\s|/\*[^*]{{0,80}}\*/|[\])(.,\w]){{0,40}}?{_QUOTED}"
)


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


@lru_cache(maxsize=16)
def imports(text: str, path: str = "") -> tuple[Loaded, ...]:
    """Every module named by import, `export … from`, `require("x")` or `import("x")`, as written, with its line. Never
    raises.

    Where the tree has errors (broken text, or syntax the grammar does not know) or the file is a mixed one, the lines
    are searched as well, so that an import is rather found too often than missed.
    """
    mixed = path.lower().endswith(MIXED)
    programs, name = scripts(text, path), f"{path}.ts" if mixed else path
    found = list(loaded(programs, name))
    tree = root(programs, name)
    if tree.has_error:
        found += _by_line(_without_comments(programs, tree), _ANYHOW, found)
    if mixed and not path.lower().endswith(".mdx"):
        found += _by_line(text, _CALLED, found)
    return unique(found)


def _without_comments(text: str, tree: Node) -> str:
    data = text.encode("utf-8", "replace")
    pieces, at = [], 0
    for node in below(tree):
        if node.type == "comment":
            pieces += [data[at : node.start_byte], b"\n" * node_text(node).count("\n")]
            at = node.end_byte
    return b"".join([*pieces, data[at:]]).decode("utf-8", "replace")


def _by_line(text: str, pattern: re.Pattern[str], known: Sequence[Loaded]) -> Iterator[Loaded]:
    seen = {(one.module, one.line) for one in known}
    for number, line in enumerate(text.split("\n"), start=1):
        for module in (match["module"] for match in pattern.finditer(line)):
            if (module, number) not in seen:
                yield Loaded(module=module, line=number, relative=module.startswith("."), optional=True)


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
