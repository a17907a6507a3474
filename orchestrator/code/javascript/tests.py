"""The tests of a JavaScript or TypeScript file as their runner would report them, and programs with empty functions.

Of an emptied program parameters and declarations stay as they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import basename, splitext

from orchestrator.code.grammar import Node, below, node_text
from orchestrator.code.javascript.tree import everything, is_typescript, root

JOIN = " > "
"""Stands between the titles of nested tests in a test's whole name."""
FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "function_declaration", "generator_function", "method_definition"}
    | {"generator_function_declaration"}
)
ASSERT_MODULES = frozenset({"assert", "assert/strict", "node:assert", "node:assert/strict"})
_TESTS, _SUITES = frozenset({"test", "it", "specify"}), frozenset({"describe", "suite", "context"})
_VARIANTS = frozenset({"skip", "todo", "only"})
_MODES = frozenset({"concurrent", "sequential"})
_TABLES = frozenset({"each", "for"})
"""`test.each(rows)('title of %s', …)`: one test for each row."""
_MAKES_TESTS = re.compile(r"test|spec|suite|scenario|describe|\bx?it\b|\bcontext\b", re.IGNORECASE)
_USED_AT_ONCE = frozenset({"expression_statement", "call_expression", "member_expression"})
"""Where a module is loaded for what it does, as in `require('./shared').tests('GET')`."""
_BLOCKS = frozenset({"statement_block", "if_statement", "else_clause", "switch_case", "switch_default"})
"""What may hold a test of the same title as another one beside it."""
_RUNNERS = frozenset({"node:test", "vitest", "@jest/globals", "mocha"})
"""Modules that have the functions which make tests. jest, mocha and vitest also make them known to every file."""
_AROUND = frozenset(
    {"await_expression", "parenthesized_expression", "member_expression"}
    | {"as_expression", "satisfies_expression", "non_null_expression"}
)
"""What may stand around a call whose value is the module, or a part of it."""
_ESCAPE = re.compile(r"\\(u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r\n|[\s\S])")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


@dataclass(frozen=True)
class FoundTest:
    """One test: its whole name (None when a title is computed), its line, and its function when it stands there."""

    name: str | None
    line: int
    body: Node | None
    switch: str = ""
    """skip, todo or only, when it or what stands around it says so; `maybe` when a condition decides; else ""."""
    scope: int = 0
    """Which block of the file it stands in."""


@dataclass(frozen=True)
class Binding:
    """A name bound to (a part of) a module: `export` is `default`, `*` or the exported name; None for the whole."""

    name: str
    module: str
    export: str
    node: Node


def test_names(text: str, path: str) -> tuple[str, ...]:
    """Whole names of the tests that are sure to be there, each once, in order; () when none is."""
    return tuple(dict.fromkeys(test.name for test in find_tests(root(text, path)) if test.name is not None))


test_names.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def find_tests(tree: Node) -> tuple[FoundTest, ...]:
    """Every call of `test` or `it` that comes from a test runner, subtests of a test's context included, in order.

    In a file that imports none of a runner's the functions are those that jest, mocha and vitest make known.
    """
    known = _test_functions(tree)
    found: list[FoundTest] = []
    waiting = [(tree, _Place())]
    while waiting:
        node, place = waiting.pop()
        kind = _kind(node, known, place.contexts) if node.type == "call_expression" else ""
        if not kind:
            # What stands in another function runs when and as often as that is called: its names are not sure.
            inside = replace(place, path=(*place.path, None)) if node.type in FUNCTIONS else place
            inside = replace(inside, scope=node.id) if node.type in _BLOCKS else inside
            waiting.extend((child, inside) for child in reversed(node.children))
            continue
        title, body, switch = _title(node), _callback(node), _switch(node) or place.switch
        whole = (*place.path, title)
        if kind == "test":
            name = JOIN.join(part for part in whole if part is not None) if None not in whole else None
            found.append(FoundTest(name, node.start_point.row + 1, body, switch, place.scope))
        if body is not None:
            contexts = place.contexts | _first_parameter(body) if kind == "test" else place.contexts
            inside = _Place(path=whole, contexts=contexts, switch=switch, scope=node.id)
            waiting.extend((child, inside) for child in reversed(body.children))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """What stands around a node: titles, names of test contexts, and a switch."""

    path: tuple[str | None, ...] = ()
    contexts: frozenset[str] = frozenset()
    switch: str = ""
    scope: int = 0


def _switch(call: Node) -> str:
    """skip, todo or only of `test.skip(…)` and `test("a", { skip: true }, …)`; `maybe` for a computed one."""
    last = node_text(call.child_by_field_name("function")).rpartition(".")[2]
    if last in _VARIANTS:
        return last
    for options in (one for one in call_arguments(call) if one.type == "object"):
        for pair in options.named_children:
            key, value = node_text(pair.child_by_field_name("key")).strip("\"'"), pair.child_by_field_name("value")
            if pair.type == "shorthand_property_identifier" and node_text(pair) in _VARIANTS:
                return "maybe"
            if key in _VARIANTS and value is not None and value.type not in {"false", "undefined", "null"}:
                return key if value.type in {"true", "string", "template_string"} else "maybe"
    return ""


def may_make_tests(tree: Node) -> bool:
    """Returns whether a test could come of the file: something is called that makes one by its name (`test`, `avaTest`,
    `ruleTester.run` …), or a file is loaded for what it does (`require('./shared')`).
    """
    for node in everything(tree):
        if node.type == "call_expression":
            called = node_text(node.child_by_field_name("function"))
            used = node.parent is not None and node.parent.type in _USED_AT_ONCE
            if _MAKES_TESTS.search(called) or (called == "require" and used):
                return True
        elif node.type == "import_statement" and not any(one.type == "import_clause" for one in node.children):
            return True
    return False


def bindings(tree: Node) -> Iterator[Binding]:
    """Names bound by import statements, `require(…)` and `await import(…)` anywhere in the file."""
    for node in everything(tree):
        if node.type == "import_statement":
            yield from _imported(node)
        elif node.type == "variable_declarator":
            module = required_module(node.child_by_field_name("value"))
            if module:
                yield from _destructured(node, module)


def required_module(value: Node | None) -> str:
    """Returns the module of `require("x")` or `await import("x")`, also with a member behind it; else ""."""
    while value is not None and value.type in _AROUND:
        value = value.named_children[0] if value.named_children else None
    if value is None or value.type != "call_expression":
        return ""
    arguments = call_arguments(value)
    if node_text(value.child_by_field_name("function")) not in {"require", "import"} or not arguments:
        return ""
    return string_value(arguments[0]) or ""


def call_arguments(call: Node) -> list[Node]:
    """Returns the arguments of a call or `new`, comments left out."""
    arguments = call.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []


def string_value(node: Node | None) -> str | None:
    """What a string literal, or a template without substitutions, stands for; None for anything else."""
    if node is None or node.type not in {"string", "template_string"}:
        return None
    if any(child.type == "template_substitution" for child in node.children):
        return None
    return _ESCAPE.sub(_unescaped, node_text(node)[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    digits = match[2] or match[3] or match[4]
    if digits:
        return chr(int(digits, 16)) if int(digits, 16) <= 0x10FFFF else match[0]
    return _LETTERS.get(match[1], match[1])


def _test_functions(tree: Node) -> dict[str, str]:
    """Local name → test, describe, or `*` for what has both as members."""
    known: dict[str, str] = {}
    found = [binding for binding in bindings(tree) if binding.module in _RUNNERS]
    if not found:
        return {**dict.fromkeys(_TESTS, "test"), **dict.fromkeys(_SUITES, "describe")}
    for binding in found:
        if binding.export in _TESTS:
            known[binding.name] = "test"
        elif binding.export in _SUITES:
            known[binding.name] = "describe"
        elif binding.export in {"default", "*"} and binding.module == "node:test":
            known[binding.name] = "*"
    return known


def _kind(call: Node, known: dict[str, str], contexts: frozenset[str]) -> str:
    """Returns `test` or `describe` when this call makes one, else ""."""
    function = call.child_by_field_name("function")
    if function is not None and function.type == "call_expression":
        function = function.child_by_field_name("function")
        if node_text(function).rpartition(".")[2] not in _TABLES:
            return ""
    head, *members = node_text(function).replace("?.", ".").split(".")
    if members and members[-1] in _TABLES:
        if function is call.child_by_field_name("function"):
            return ""  # the call that only takes the table
        members.pop()
    if head in contexts:
        return "test" if members == ["test"] else ""
    kind = known.get(head, "")
    if kind == "*":
        kind = "test"
        if members and members[0] in _TESTS | _SUITES:
            kind = "test" if members.pop(0) in _TESTS else "describe"
    return kind if {*members} <= _VARIANTS | _MODES else ""


def _title(call: Node) -> str | None:
    arguments = call_arguments(call)
    title = string_value(arguments[0]) if arguments else None
    return None if _is_of_table(call) and re.search(r"[%$]", title or "") else title or None


def _is_of_table(call: Node) -> bool:
    function = call.child_by_field_name("function")
    return function is not None and function.type == "call_expression"


def _callback(call: Node) -> Node | None:
    return next((node for node in reversed(call_arguments(call)) if node.type in FUNCTIONS), None)


def _first_parameter(function: Node) -> frozenset[str]:
    single = function.child_by_field_name("parameter")
    if single is not None:
        return frozenset({node_text(single)})
    several = function.child_by_field_name("parameters")
    first = several.named_children[0] if several is not None and several.named_children else None
    if first is not None and first.type in {"required_parameter", "optional_parameter"}:
        first = first.child_by_field_name("pattern")
    return frozenset({node_text(first)}) if first is not None else frozenset()


def _imported(statement: Node) -> Iterator[Binding]:
    module = string_value(statement.child_by_field_name("source")) or ""
    clause = next((child for child in statement.children if child.type == "import_clause"), None)
    for part in clause.named_children if clause is not None else ():
        if part.type == "identifier":
            yield Binding(node_text(part), module, "default", statement)
        elif part.type == "namespace_import":
            yield Binding(node_text(part.named_children[-1]), module, "*", statement)
        elif part.type == "named_imports":
            for item in part.named_children:
                name, alias = item.child_by_field_name("name"), item.child_by_field_name("alias")
                yield Binding(node_text(alias or name), module, node_text(name).strip("\"'"), statement)


def _destructured(declarator: Node, module: str) -> Iterator[Binding]:
    target, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
    if target is None:
        return
    if target.type == "identifier":
        member = value.child_by_field_name("property") if value is not None else None
        yield Binding(node_text(target), module, node_text(member) or "default", declarator)
    for item in target.named_children if target.type == "object_pattern" else ():
        if item.type == "shorthand_property_identifier_pattern":
            yield Binding(node_text(item), module, node_text(item), declarator)
        elif item.type == "pair_pattern":
            key, bound = item.child_by_field_name("key"), item.child_by_field_name("value")
            yield Binding(node_text(bound), module, node_text(key).strip("\"'"), declarator)


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
    """Returns the files in which a function became empty, and the names of what a test may speak of besides functions.

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
