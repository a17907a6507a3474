"""JavaScript and TypeScript programs whose functions return nothing: parameters and declarations stay as they are."""

import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, splitext

from orchestrator.syntax.grammar import Node, below, node_text
from orchestrator.syntax.javascript_tests import FUNCTIONS, bindings, call_arguments, find_tests
from orchestrator.syntax.javascript_tree import is_typescript, root

_DECLARED = frozenset({"function_declaration", "generator_function_declaration", "method_definition"})
_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
_HOLDS_VALUE = {
    "variable_declarator": "name", "assignment_expression": "left", "pair": "key", "public_field_definition": "name",
    "field_definition": "property", "export_statement": "",
}  # fmt: skip
"""What a function is the value of → where its name stands."""
_NAMES = frozenset(
    {"identifier", "property_identifier", "private_property_identifier", "type_identifier"}
    | {"shorthand_property_identifier", "shorthand_property_identifier_pattern"}
)
_HOOKS = re.compile(r"^(before|setup)(Each|All)?$")
_FIELDS = frozenset({"public_field_definition", "field_definition"})
_SILENT = _DECLARED | frozenset(
    {"interface_declaration", "type_alias_declaration", "ambient_declaration", "import_statement", "export_statement"}
    | {"comment", "empty_statement", "hash_bang_line"}
)
"""Statements of a file that do nothing when it is loaded."""


def hollow_javascript(texts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The files in which a function became empty, and the names of what a test may speak of besides functions.

    Functions that an import calls stay, with all that they call; callbacks without a name stay as well.
    """
    trees = {path: tree for path, text in texts.items() if not (tree := root(text, path)).has_error}
    kept = _called_at_import(trees.values())
    done: dict[str, str] = {}
    left = {_stem(path) for path in texts if path not in trees}
    for path, tree in trees.items():
        functions = [*_outermost(tree)]
        emptied = [body for name, body in functions if name not in kept]
        left |= _declared(tree, _stem(path)) | {name for name, _ in functions if name in kept}
        if emptied:
            done[path] = _emptied(texts[path], emptied, typed=is_typescript(path))
    return done, left


def javascript_mentions(path: str, text: str) -> dict[str, frozenset[str]]:
    """By name of the test: the names and words in it, in the hooks of the file, and in what of it these name."""
    tree = root(text, path)
    definitions: dict[str, set[str]] = {}
    always = set[str]()
    imported = [*bindings(tree)]
    for one in imported:
        definitions.setdefault(one.name, set()).update({one.export, *_split(one.module)})
    known = {one.node.id for one in imported}
    for node in below(tree):
        if node.type in {"variable_declarator", *_DECLARED, "class_declaration"} and node.id not in known:
            words = _words(node)
            for name in _bound(node):
                definitions.setdefault(name, set()).update(words)
        elif node.type == "call_expression" and _HOOKS.match(node_text(node.child_by_field_name("function"))):
            always |= _words(node)
    found: dict[str, frozenset[str]] = {}
    for test in find_tests(tree):
        if test.name is None or test.body is None:
            continue
        words = always | _words(test.body)
        waiting = list(words)
        while waiting:
            more = definitions.get(waiting.pop(), set()) - words
            words |= more
            waiting += more
        found[test.name] = found.get(test.name, frozenset()) | words
    return found


def _stem(path: str) -> str:
    return splitext(basename(path))[0]


def _bound(node: Node) -> Iterator[str]:
    name = node.child_by_field_name("name")
    yield from (node_text(part) for part in below(name) if part.type in _NAMES) if name is not None else ()


def _words(node: Node) -> set[str]:
    found = set[str]()
    for part in below(node):
        if part.type in _NAMES:
            found.add(node_text(part))
        elif part.type in {"string_fragment", "template_string"}:
            found |= _split(node_text(part))
    return found


def _split(text: str) -> set[str]:
    """Its words, and what dots and hyphens join: `../src/price-list.js` speaks of `price-list` as well."""
    joined = re.findall(r"\w+(?:[.-]\w+)*", text)
    return {*joined, *(splitext(one)[0] for one in joined), *re.findall(r"\w+", text)}


def _outermost(tree: Node) -> Iterator[tuple[str, Node]]:
    """Functions and methods that have a name and stand in no other function: the name, and the function's node."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        name = _name(node)
        if name is not None:
            yield name, node
        elif node.type not in FUNCTIONS:
            waiting.extend(reversed(node.children))


def _name(node: Node) -> str | None:
    """How a function is called, "default" for one that is exported without a name; None for a callback."""
    if node.type in _DECLARED:
        return node_text(node.child_by_field_name("name"))
    holder = node.parent
    if node.type not in _VALUES or holder is None or holder.type not in _HOLDS_VALUE:
        return None
    place = _HOLDS_VALUE[holder.type]
    return node_text(holder.child_by_field_name(place)).rpartition(".")[2] if place else "default"


def _declared(tree: Node, stem: str) -> set[str]:
    """What the file declares besides functions; its own name when it does something when it is loaded."""
    found = set[str]()
    for statement in tree.named_children:
        node = statement
        if node.type == "export_statement":
            node = node.child_by_field_name("declaration") or node.child_by_field_name("value") or node
        if node.type in {"lexical_declaration", "variable_declaration"}:
            for one in node.named_children:
                value = one.child_by_field_name("value")
                if value is not None and _says_something(value, node_text(one.child_by_field_name("name"))):
                    found.update(_bound(one))
        elif node.type in {"class_declaration", "abstract_class_declaration", "class"}:
            body = node.child_by_field_name("body")
            fields = [part for part in (body.named_children if body is not None else ()) if part.type in _FIELDS]
            if any((value := one.child_by_field_name("value")) is None or value.type not in _VALUES for one in fields):
                found.add(node_text(node.child_by_field_name("name")) or stem)
        elif node.type == "enum_declaration":
            found.add(node_text(node.child_by_field_name("name")))
        elif node.type == "expression_statement":
            found |= _done_when_loaded(node.named_children[0], stem)
        elif _says_something(node, stem) if node is not statement else node.type not in _SILENT:
            found.add(stem)
    return found


def _says_something(value: Node, name: str) -> bool:
    """Whether a value could be what a test shows: `const app = express()` makes what has functions, `LIMIT` says it."""
    if value.type in _VALUES | _SILENT | {"identifier", "member_expression", "class"}:
        return False
    if value.type in {"call_expression", "new_expression"}:
        callbacks = any(one.type in _VALUES for one in call_arguments(value))
        required = node_text(value.child_by_field_name("function")) == "require"
        return not required and (callbacks or name[:1].isupper())
    if value.type == "await_expression":
        return False
    if value.type == "object":
        return any(one.type == "pair" and _holds_data(one) for one in value.named_children)
    return True


def _holds_data(pair: Node) -> bool:
    value = pair.child_by_field_name("value")
    return value is not None and value.type not in {*_VALUES, "identifier", "member_expression"}


def _done_when_loaded(node: Node, stem: str) -> set[str]:
    if node.type == "string":  # 'use strict'
        return set()
    if node.type == "assignment_expression":
        value, target = node.child_by_field_name("right"), node.child_by_field_name("left")
        name = node_text(target).rpartition(".")[2]
        return {name, stem} if value is not None and _says_something(value, name) else set()
    if node.type == "call_expression":
        # `app.get("/", (request, response) => …)`: what the callback does stays.
        called = node_text(node.child_by_field_name("function"))
        callbacks = any(one.type in _VALUES for one in call_arguments(node))
        return {called.partition(".")[0], stem} if callbacks else set()
    return {stem}


def _called_at_import(trees: Iterable[Node]) -> set[str]:
    """Names of functions and classes that are called while the files are loaded, and of what these call."""
    bodies: dict[str, list[Node]] = {}
    waiting: list[str] = []
    for tree in trees:
        for name, function in _outermost(tree):
            bodies.setdefault(name, []).append(function)
            if name == "constructor" and (held := function.parent) is not None and held.parent is not None:
                bodies.setdefault(node_text(held.parent.child_by_field_name("name")), []).append(function)
        waiting += _calls(tree)
    found = set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or name not in bodies:
            continue
        found.add(name)
        for function in bodies[name]:
            found.add(_name(function) or name)
            body = function.child_by_field_name("body")
            waiting += _calls(body) if body is not None else []
    return found


def _calls(tree: Node) -> Iterator[str]:
    """Last names of what is called or made in it, outside of other functions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.type in {"call_expression", "new_expression"}:
            called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
            if called is not None and called.type in {"identifier", "member_expression"}:
                yield node_text(called).rpartition(".")[2]
        if node.type not in FUNCTIONS:
            waiting.extend(node.children)


def _emptied(text: str, functions: Iterable[Node], *, typed: bool) -> str:
    content = text.encode()
    bodies = [(body, one) for one in functions if (body := one.child_by_field_name("body")) is not None]
    for body, function in sorted(bodies, key=lambda pair: pair[0].start_byte, reverse=True):
        nothing = " return undefined as any; " if typed and not _returns_nothing(function) else ""
        if _name(function) == "constructor" and any(part.type == "super" for part in below(body)):
            nothing = f" super(...{'(arguments as any)' if typed else 'arguments'}); "
        content = content[: body.start_byte] + f"{{{nothing}}}".encode() + content[body.end_byte :]
    return content.decode()


def _returns_nothing(function: Node) -> bool:
    """A constructor or setter, for which TypeScript allows no value."""
    return _name(function) == "constructor" or any(part.type == "set" for part in function.children)
