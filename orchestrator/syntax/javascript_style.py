"""Countable habits of a JavaScript text: what it does how often. Counts add up over files."""

from collections import Counter

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tree import below, literal, node_text, root

_FUNCTIONS = frozenset({"function_declaration", "arrow_function", "method_definition", "function_expression"})
_STATEMENTS = frozenset({"expression_statement", "lexical_declaration", "import_statement", "return_statement"})
_RUNNERS = {
    "node:test": "node:test",
    "vitest": "vitest",
    "@jest/globals": "jest",
    "mocha": "mocha",
    "supertest": "supertest",
}


def habits(text: str, path: str) -> Counter[str]:
    """Habit → how often, as far as the text can be read.

    `modules`, `es modules`, `commonjs`, `functions`, `async`, `semicolons`, `no semicolons`, `single quotes`, `double
    quotes`, `tabs`, `classes`.
    """
    found: Counter[str] = Counter({"modules": 1, "tabs": int("\n\t" in text)})
    kinds: Counter[str] = Counter()
    for node in below(root(text, path)):
        kinds[node.type] += 1
        if node.type in _FUNCTIONS:
            found["async"] += bool(node.children) and node.children[0].type == "async"
        elif node.type in _STATEMENTS:
            found["semicolons" if _ends_with_semicolon(node) else "no semicolons"] += 1
        elif node.type == "string" and node.is_named:  # without a name it is TypeScript's type
            found["single quotes" if node.children[0].type == "'" else "double quotes"] += 1
        elif node.type == "call_expression":
            kinds["require"] += _called(node) == "require"
    found["functions"] = sum(kinds[kind] for kind in _FUNCTIONS)
    found["classes"] = kinds["class_declaration"]
    found["es modules"] = int(bool(kinds["import_statement"] + kinds["export_statement"]))
    found["commonjs"] = int(not found["es modules"] and bool(kinds["require"] or "module.exports" in text))
    return +found


def test_habits(text: str, path: str) -> Counter[str]:
    """The same for a test file: `test files`, `tests`, `suites`, and the runners and helpers it names."""
    found: Counter[str] = Counter({"test files": 1})
    for node in below(root(text, path)):
        if node.type == "string" and (word := _RUNNERS.get(literal(node))):
            found[word] += 1
        elif node.type == "call_expression":
            called = _called(node)
            found["tests"] += called in {"test", "it"}
            found["suites"] += called == "describe"
            found["expect"] += called == "expect"
            found["assert"] += called.startswith("assert")
    return +found


test_habits.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def _ends_with_semicolon(node: Node) -> bool:
    return bool(node.children) and node.children[-1].type == ";"


def _called(node: Node) -> str:
    """The name a call is made by, `a` or `a.b`; "" for a longer way, whose text may be as long as the file."""
    function = node.child_by_field_name("function")
    owner = function.child_by_field_name("object") if function is not None else None
    short = function is not None and (
        function.type == "identifier" or (owner is not None and owner.type == "identifier")
    )
    return node_text(function) if short else ""
