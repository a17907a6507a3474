"""What a JavaScript or TypeScript text exports and imports, by a tolerant tree: broken ones give a part.

Imports are statements and calls with a literal, also in pages and single-file components.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import splitext

from orchestrator.code.grammar import Node, node_text
from orchestrator.code.javascript.tree import (
    FUNCTIONS,
    arguments,
    callee,
    nodes_of,
    root,
    short_text,
    string_value,
)
from orchestrator.code.python.source import Import
from orchestrator.core.value import remembered

_LOADS = frozenset({"require", "import", "require.resolve", "jest.mock", "vi.mock"})
_TYPES = re.compile(r"""///\s*<reference\s+types\s*=\s*["'](?P<types>[^"']+)""")
# A pragma by which the compiler imports.
_JSX = re.compile(r"@jsxImportSource\s+(?P<module>[^\s*]+)")
_CHOICES = frozenset({"try_statement", "if_statement", "ternary_expression", "binary_expression"})
"""What stands in these may not be loaded at all: UMD asks `typeof require` first."""


_LOADERS = frozenset({"import_statement", "export_statement", "import_require_clause", "call_expression", "comment"})


def loaded(text: str, path: str = "") -> Iterator[Import]:
    """Returns every module that `text` loads, in order; one may come several times. Never raises."""
    around: list[tuple[int, bool, bool]] = []  # of each node that holds the next: its end, and whether that is a choice
    for node in nodes_of(root(text, path), path, _LOADERS | _CHOICES | FUNCTIONS):
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        _, optional, lazy = around[-1] if around else (0, False, False)
        if node.type in _LOADERS:
            for one in _loaded_by(node):
                yield one.model_copy(update={"optional": optional, "lazy": lazy})
        else:
            around.append((node.end_byte, optional or node.type in _CHOICES, lazy or node.type in FUNCTIONS))


def _loaded_by(node: Node) -> Iterator[Import]:
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


def _found(module: str, node: Node, *, types: bool = False) -> Import:
    line = node.start_point.row + 1
    return Import(module=module, line=line, relative=module.startswith("."), type_only=types)


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
    """Returns whether `import("x")` stands in a type, as in `typeof import("x")`."""
    node = call.parent
    while node is not None and node.type in {"member_expression", "nested_identifier", "nested_type_identifier"}:
        node = node.parent
    kind = node.type if node is not None else ""
    return (kind != "type_assertion" and kind.startswith(("type_", "literal_type"))) or kind.endswith("_type")


def unique(found: Iterable[Import]) -> tuple[Import, ...]:
    """Returns each module of each line once; one that is used as more than types there is not only types."""
    kept: dict[tuple[str, int], Import] = {}
    for one in found:
        key = (one.module, one.line)
        if key not in kept or (kept[key].type_only and not one.type_only):
            kept[key] = one
    return tuple(kept.values())


MIXED = (".vue", ".svelte", ".astro", ".mdx")
"""JavaScript between other things, which no grammar here knows."""
_SCRIPT = r"<script\b(?![^>]*json)[^>]*>(?P<script>.*?)(?:</script\s*>|\Z)"
_PROGRAMS = {
    ".mdx": re.compile(r"(?m)(?:\A|(?<=\n\n))(?P<code>(?:import|export)[\s{*\"'][^\n]*(?:\n(?![ \t]*$)[^\n]+)*)"),
    ".astro": re.compile(rf"(?ims)\A\s*---[^\n]*\n(?P<code>.*?)^---|{_SCRIPT}"),
    "": re.compile(rf"(?is){_SCRIPT}"),
}
"""Suffix → where programs stand: paragraphs that import or export, the part before the page, script elements."""
_FENCED = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,}).*?(?:^ {0,3}(?P=mark)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SOURCE = re.compile(r"""<script\b[^>]*?\bsrc\s*=\s*["']?(?P<module>[^"'\s>]+)""", re.IGNORECASE)


def scripts(text: str, path: str) -> str:
    """Returns the text with all that is no program turned into blanks, so that lines stay.

    A file that is none of these is its own program.
    """
    suffix = splitext(path.lower())[1]
    if suffix not in MIXED:
        return text
    if suffix == ".mdx":
        text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)  # code that is only shown
    pieces, at = [], 0
    for found in _PROGRAMS.get(suffix, _PROGRAMS[""]).finditer(text):
        name = found.lastgroup or "code"
        pieces += ["\n" * text.count("\n", at, found.start(name)), found[name], ";"]
        at = found.end(name)
    return "".join(pieces)


_QUOTED = r"""(["'`])(?P<module>[^"'`$\s]+)\1"""
# In the markup of a component.
_CALLED = re.compile(rf"\b(?:import|require)\s*\(\s*{_QUOTED}")
# Broken text: a word that imports, and a quoted module at most forty characters behind it on the line.
_ANYHOW = re.compile(
    rf"\b(?:from|import|require|_load|importScripts)\b(?:\s|/\*[^*]{{0,80}}\*/|[\])(.,\w]){{0,40}}?{_QUOTED}"
)


def exported_names(text: str, path: str = "") -> tuple[str, ...]:
    """Names other modules may import, in order, each once; `default` for a default export. Types are among them.

    Knows `export` declarations and lists, `module.exports = {…}`, `module.exports.x =` and `exports.x =`.
    """
    names: dict[str, None] = {}
    for node in nodes_of(root(text, path), path, frozenset({"export_statement", "assignment_expression"})):
        if node.type == "export_statement":
            names.update(dict.fromkeys(_export(node)))
        elif node.type == "assignment_expression":
            names.update(dict.fromkeys(_common_js(node)))
    return tuple(names)


@remembered(16)
def imports(text: str, path: str = "") -> tuple[Import, ...]:
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
        found += _by_line(_without_comments(programs, tree, name), _ANYHOW, found)
    if mixed and not path.lower().endswith(".mdx"):
        found += _by_line(text, _CALLED, found)
        found += _by_line(text, _SOURCE, found)
    return unique(found)


def _without_comments(text: str, tree: Node, path: str) -> str:
    data = text.encode("utf-8", "replace")
    pieces, at = [], 0
    for node in nodes_of(tree, path, frozenset({"comment"})):
        pieces += [data[at : node.start_byte], b"\n" * node_text(node).count("\n")]
        at = node.end_byte
    return b"".join([*pieces, data[at:]]).decode("utf-8", "replace")


def _by_line(text: str, pattern: re.Pattern[str], known: Sequence[Import]) -> Iterator[Import]:
    seen = {(one.module, one.line) for one in known}
    for number, line in enumerate(text.split("\n"), start=1):
        for module in (match["module"] for match in pattern.finditer(line)):
            if (module, number) not in seen:
                yield Import(module=module, line=number, relative=module.startswith("."), optional=True)


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
