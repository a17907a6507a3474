"""The tests of a JavaScript or TypeScript file as their runner would report them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from orchestrator.code.grammar import Node, node_text
from orchestrator.code.javascript.tree import FUNCTIONS, arguments, everything, root, string_value

JOIN = " > "
"""Stands between the titles of nested tests in a test's whole name."""
_TESTS, _SUITES = frozenset({"test", "it", "specify"}), frozenset({"describe", "suite", "context"})
_VARIANTS = frozenset({"skip", "todo", "only"})
_MODES = frozenset({"concurrent", "sequential", "serial"})
_TABLES = frozenset({"each", "for"})
"""`test.each(rows)('title of %s', …)`: one test for each row."""
# Rather too much than too little: what makes no test by its name may still run some.
_MAKES_TESTS = re.compile(r"test|spec|suite|scenario|describe|\bx?it\b|\bcontext\b", re.IGNORECASE)
_USED_AT_ONCE = frozenset({"expression_statement", "call_expression", "member_expression"})
"""Where a module is loaded for what it does, as in `require('./shared').tests('GET')`."""
_BLOCKS = frozenset({"statement_block", "if_statement", "else_clause", "switch_case", "switch_default"})
"""What may hold a test of the same title as another one beside it."""
_RUNNERS = frozenset({"node:test", "vitest", "@jest/globals", "mocha", "ava"})
"""Modules that have the functions which make tests. jest, mocha and vitest also make them known to every file."""
_AROUND = frozenset(
    {"await_expression", "parenthesized_expression", "member_expression"}
    | {"as_expression", "satisfies_expression", "non_null_expression"}
)
"""What may stand around a call whose value is the module, or a part of it."""


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
    """Returns the whole names of the tests that are sure to be there, each once, in order; () when none is."""
    return tuple(dict.fromkeys(test.name for test in find_tests(root(text, path)) if test.name is not None))


test_names.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


@lru_cache(maxsize=4)  # several checks ask for the tests of one suite in a row
def find_tests(tree: Node) -> tuple[FoundTest, ...]:
    """Returns every call of `test` or `it` that comes from a test runner, subtests of a context included, in order.

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
    """Returns skip, todo or only of `test.skip(…)` and `test("a", { skip: true }, …)`; `maybe` for a computed one."""
    last = node_text(call.child_by_field_name("function")).rpartition(".")[2]
    if last in _VARIANTS:
        return last
    for options in (one for one in arguments(call) if one.type == "object"):
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


@lru_cache(maxsize=4)
def bindings(tree: Node) -> tuple[Binding, ...]:
    """Returns the names bound by import statements, `require(…)` and `await import(…)` anywhere in the file."""
    return tuple(_bindings(tree))


def _bindings(tree: Node) -> Iterator[Binding]:
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
    given = arguments(value)
    if node_text(value.child_by_field_name("function")) not in {"require", "import"} or not given:
        return ""
    return string_value(given[0])


def _test_functions(tree: Node) -> dict[str, str]:
    """Returns local name → test, describe, or `*` for what has both as members."""
    known: dict[str, str] = {}
    found = [binding for binding in bindings(tree) if binding.module in _RUNNERS]
    if not found:
        return {**dict.fromkeys(_TESTS, "test"), **dict.fromkeys(_SUITES, "describe")}
    for binding in found:
        if binding.export in _TESTS:
            known[binding.name] = "test"
        elif binding.export in _SUITES:
            known[binding.name] = "describe"
        elif binding.export in {"default", "*"} and binding.module in {"node:test", "ava"}:
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
    """Returns the title; None for a computed one, as each row of a table has its own."""
    given, function = arguments(call), call.child_by_field_name("function")
    title = string_value(given[0]) if given else ""
    is_table = function is not None and function.type == "call_expression"
    return None if is_table and re.search(r"[%$]", title) else title or None


def _callback(call: Node) -> Node | None:
    return next((node for node in reversed(arguments(call)) if node.type in FUNCTIONS), None)


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
    module = string_value(statement.child_by_field_name("source"))
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
