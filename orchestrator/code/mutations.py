"""Other expectations for the tests of a suite: each changed test has to fail where the original one passed.

A mutation changes what one test expects and nothing else: not its name, not its arguments, and as little as possible
of what it does before. A runner that reports a mutated test as passed reports what it likes. For pytest and unittest,
and for `node --test` and its kin.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random
from string import ascii_lowercase

from orchestrator.code.grammar import Node, node_text
from orchestrator.code.javascript.tests import ASSERT_MODULES, FoundTest, bindings, find_tests
from orchestrator.code.javascript.tree import FUNCTIONS, arguments, literal, root
from orchestrator.core.value import Value


class Mutation(Value):
    """One change to one test."""

    case: str
    """The test as its runner names it: `Class::method` or `function` for pytest, for node the titles of the
    describe blocks and its own, joined with ` > `."""
    start: int
    """First changed byte of the UTF-8 text."""
    end: int
    """First byte behind the change; equal to `start` where something is only inserted."""
    text: str
    """What stands there instead."""
    other_value: bool = False
    """Whether another value is expected, which an object that equals everything does not notice."""


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = ast.Module | ast.ClassDef
_EQUAL = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual"})
_TRUTH = frozenset({"assertTrue", "assertFalse"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def python_mutations(text: str, random: Random) -> tuple[Mutation, ...]:
    """Returns at most one mutation per test of a pytest or unittest file; none for a text that does not parse.

    Tests that may end without reaching the change are left out: with a `return` or `yield` of their own, or with a
    decorator that could catch or repeat a failure (anything but marks and patches); and coroutines in a plain
    `unittest.TestCase`, which nothing awaits.
    """
    tree = _parsed(text)
    if tree is None:
        return ()
    mutator = _PythonMutator(text, random)
    tests = [*_tests(tree, "")]
    counts = Counter(case for case, _ in tests)
    found = (mutator.mutation(case, test) for case, test in tests if counts[case] == 1 and _always_ends(test))
    return tuple(mutation for mutation in found if mutation is not None)


def _parsed(text: str) -> ast.Module | None:
    # Not `parse_python`: a tree of rewritten newer syntax has other places than the text.
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _tests(scope: _Scope, prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in scope.body:
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            awaited = not any(ast.unparse(base).rpartition(".")[2] == "TestCase" for base in node.bases)
            inner = _tests(node, f"{prefix}{node.name}::")
            yield from ((case, test) for case, test in inner if awaited or not isinstance(test, ast.AsyncFunctionDef))


def _always_ends(test: _Function) -> bool:
    """Whether a passing test runs to the end of its body."""
    inner = any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in _own_nodes(test))
    return not inner and all(_is_harmless(one) for one in test.decorator_list)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _INNER):
            yield from _own_nodes(child)


def _is_harmless(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    is_patch = "patch" in name.split(".")
    return is_patch or (name.startswith("pytest.mark.") and name.rpartition(".")[2] not in {"xfail", "flaky"})


class _Places:
    """Byte offsets of the nodes of a Python text."""

    def __init__(self, text: str) -> None:
        self.content = text.encode()
        # bytes.splitlines ends lines where Python's parser does; str.splitlines knows more line ends.
        self.lines = [0, *accumulate(map(len, self.content.splitlines(keepends=True)))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.content[self.start(node) : self.end(node)].decode()


class _PythonMutator:
    """Writes the changes for one text."""

    def __init__(self, text: str, random: Random) -> None:
        self._at, self._random = _Places(text), random

    def mutation(self, case: str, test: _Function) -> Mutation | None:
        """Returns the change to one test: of the assertion that it ends with, else an assertion that is added behind.

        Everything before the end still happens: what a test opens, it closes, and what later tests need is there.
        """
        last = test.body[-1]
        start, end = self._at.start(last), self._at.end(last)
        if (change := self._changed(last)) is not None:
            node, text = change
            return Mutation(
                case=case,
                start=self._at.start(node),
                end=self._at.end(node),
                text=text,
                other_value=not text.startswith("not ("),
            )
        before = self._at.content[self._at.lines[last.lineno - 1] : start]
        behind = self._at.content[end : self._at.lines[last.end_lineno or last.lineno]].strip()
        # No line of its own can be added to `def test_a(): f()` and behind `f(); g()`.
        if last.lineno == test.lineno or before.strip() or (behind and not behind.startswith(b"#")):
            return None
        less, more = sorted(self._random.sample(range(100), 2))
        return Mutation(case=case, start=end, end=end, text=f"\n{before.decode()}assert {less} == {more}")

    def _changed(self, statement: ast.stmt) -> tuple[ast.expr, str] | None:
        if isinstance(statement, ast.Assert):
            test = statement.test
            if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
                return self._other_operand(test.comparators[0], test.left, self._at.text(test))
            return test, f"not ({self._at.text(test)})"
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        called, given = statement.value.func, statement.value.args
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if name in _EQUAL and len(given) > 1:
            return self._other_operand(given[1], given[0], self._at.text(statement))
        return (given[0], f"not ({self._at.text(given[0])})") if name in _TRUTH and given else None

    def _other_operand(self, expected: ast.expr, found: ast.expr, text: str) -> tuple[ast.expr, str]:
        """Returns what is expected, or else found, as another literal; else the expected value within a dictionary.

        Another number may be within the tolerance of `pytest.approx`; and telling two long lists apart takes minutes.
        """
        changed = None if "approx" in text else self._other_literal(expected) or self._other_literal(found)
        return changed or (expected, f"{{{self._random.randint(2, 9)}: {self._at.text(expected)}}}")

    def _other_literal(self, node: ast.expr) -> tuple[ast.expr, str] | None:
        """Returns a number, text or truth value as another one of its type."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        if isinstance(value, bool):
            return node, str(not value)
        if isinstance(value, int | float | complex):
            other = value + self._random.randint(2, 9)
            return node, repr(other if other != value else -value)  # a float may be too large to count
        if isinstance(value, str | bytes) and isinstance(node, ast.Constant):
            prefix = "b" * isinstance(value, bytes)
            return node, f"{self._at.text(node)} {prefix}'{self._random.randint(10, 99)}'"
        return None


_EXPECTED = {
    **dict.fromkeys(("equal", "strictEqual", "deepEqual", "deepStrictEqual"), 1),
    **dict.fromkeys(("toBe", "toEqual", "toStrictEqual"), 0),
}
"""Assertion → which of its arguments is the expectation."""
_OPTIONS = frozenset({"timeout", "concurrency", "signal", "plan"})
"""Options that change nothing about what a failing test is reported as."""
_AROUND_TESTS = FUNCTIONS | frozenset(
    {"program", "expression_statement", "await_expression", "unary_expression", "call_expression", "arguments"}
    | {"statement_block"}
)
"""What stands around a test that runs exactly once: no loop, no condition."""
_SWITCHES_ITSELF = re.compile(r"\w+\.(skip|todo)")
_DECLARATION = re.compile(r"(function|async|class)\b")
"""How an expression begins that would be a declaration as a statement."""
_AROUND_VALUE = frozenset(
    {"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "type_assertion"}
)
_NUMBER = re.compile(r"-?\s*(?:0|[1-9]\d{0,14})(?:\.\d+)?")
"""Numbers whose other one is counted; those written in another way become a part of a list, as computed ones do."""


def node_mutations(path: str, text: str, random: Random) -> tuple[Mutation, ...]:
    """Returns at most one mutation per test, in the order of the text and never overlapping; () for a broken text.

    A test is left out when its name is computed or comes twice, when it is switched or has other options than plain
    ones, when it runs in a loop, on a condition or inside another test, and when its function ends by a callback, by
    a `return` or elsewhere.
    """
    tree = root(text, path)
    if tree.has_error:
        return ()
    names = {one.name: one.export for one in bindings(tree) if one.module in ASSERT_MODULES}
    found = (_node_mutation(test, text, names, random) for test in _plain_tests(tree))
    return tuple(mutation for mutation in found if mutation is not None)


def _plain_tests(tree: Node) -> Iterator[FoundTest]:
    """Yields the tests that are sure to run once and to be reported as what they come to."""
    tests = find_tests(tree)
    times = Counter(test.name for test in tests)
    by_body = {test.body.id: test for test in tests if test.body is not None}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        test = by_body.get(node.id)
        if test is not None:
            if test.name is not None and times[test.name] == 1 and not test.switch and _is_plain_function(node):
                yield test
        elif node.type in _AROUND_TESTS and (node.type != "call_expression" or _has_plain_options(node)):
            waiting.extend(reversed(node.children))


def _has_plain_options(call: Node) -> bool:
    for argument in arguments(call)[1:]:
        pairs = argument.named_children if argument.type == "object" else []
        keys = {node_text(pair.child_by_field_name("key")) if pair.type == "pair" else "" for pair in pairs}
        if argument.type not in {"object", *FUNCTIONS} or not keys <= _OPTIONS:
            return False
    return True


def _is_plain_function(function: Node) -> bool:
    """Whether a run comes to the function's end, and the test ends there."""
    parameters = function.child_by_field_name("parameters")
    given = [one for one in parameters.named_children if one.type != "comment"] if parameters is not None else []
    if function.type not in {"arrow_function", "function_expression"} or len(given) > 1:
        return False
    waiting = [function.child_by_field_name("body")]
    while waiting:
        node = waiting.pop()
        if node is None or node.type in FUNCTIONS:
            continue
        if node.type == "return_statement":
            return False
        if node.type == "call_expression" and _SWITCHES_ITSELF.fullmatch(_callee(node)):
            return False
        waiting.extend(node.children)
    return True


def _callee(call: Node) -> str:
    return node_text(call.child_by_field_name("function"))


def _node_mutation(test: FoundTest, text: str, names: dict[str, str], random: Random) -> Mutation | None:
    """Returns the change of the first rule that fits: another literal, an opposite, a failing statement at the end.

    Only the assertion that a test ends with is changed, so that everything before it still happens: servers are
    closed, and what later tests need is there.
    """
    body = test.body.child_by_field_name("body") if test.body is not None else None
    if test.name is None or test.body is None or body is None:
        return None
    call = _last_call(body)
    changed = _other_expectation(call, names, random) if call is not None else None
    if changed is not None:
        node, new, other = changed
        return Mutation(case=test.name, start=node.start_byte, end=node.end_byte, text=new, other_value=other)
    less, more = sorted(random.sample(range(100), 2))
    failing = f"throw new Error('expected {less} to be {more}');"
    if body.type == "statement_block":
        place, new = _at_end(body, failing, text.split("\n"))
        return Mutation(case=test.name, start=place, end=place, text=new)
    kept = node_text(body)
    if call is None or _DECLARATION.match(kept):
        return None
    is_async = any(child.type == "async" for child in test.body.children)
    kept = f"await {kept}" if is_async and body.type == "call_expression" else kept
    return Mutation(case=test.name, start=body.start_byte, end=body.end_byte, text=f"{{ {kept}; {failing} }}")


def _last_call(body: Node) -> Node | None:
    """Returns the call, awaited or not, that the body ends with, or is; None for any other end."""
    last: Node | None = body
    if body.type == "statement_block":
        statements = [one for one in body.named_children if one.type != "comment"]
        last = (
            statements[-1].named_children[0] if statements and statements[-1].type == "expression_statement" else None
        )
    if last is not None and last.type == "await_expression":
        last = last.named_children[0]
    return last if last is not None and last.type == "call_expression" else None


def _verb(call: Node, names: dict[str, str]) -> str:
    """Returns which assertion the call is (`ok`, `equal`, `toBe` …), "" for none."""
    called = call.child_by_field_name("function")
    held = called.child_by_field_name("object") if called is not None else None
    if called is not None and held is not None and held.type == "call_expression" and _callee(held) == "expect":
        matcher = node_text(called.child_by_field_name("property"))
        return matcher if matcher.startswith("to") else ""
    head, *members = (part.strip() for part in node_text(called).split("."))
    if head in names:
        verb = members[-1] if members else names[head]
        return "ok" if verb in {"default", "*", "strict"} else verb
    # a test context's own: t.assert.equal
    return members[1] if len(members) == 2 and members[0] == "assert" else ""


def _other_expectation(call: Node, names: dict[str, str], random: Random) -> tuple[Node, str, bool] | None:
    """Returns what is changed, its new text, and whether that is another value of the same type."""
    verb = _verb(call, names)
    node = _argument(call, 0 if verb == "ok" else _EXPECTED.get(verb))
    if node is None:
        return None
    if verb == "ok":
        return node, f"!({node_text(node)})", False
    inner = node
    while inner.type in _AROUND_VALUE and (parts := [one for one in inner.named_children if one.type != "comment"]):
        inner = parts[-1 if inner.type == "type_assertion" else 0]
    text, step = node_text(inner), random.randint(2, 99)
    if inner.type in {"true", "false"}:
        return inner, "false" if inner.type == "true" else "true", True
    if _NUMBER.fullmatch(text):
        other = float(re.sub(r"\s", "", text)) + step
        return inner, str(int(other)) if other.is_integer() else repr(other), True
    if literal(inner) or text in {"''", '""', "``"}:
        # No digit: behind an escaped zero it would be an octal escape, which modules refuse.
        return inner, f"{text[:-1]}{random.choice(ascii_lowercase)}{text[-1]}", True
    # No value equals a list that holds it and more, not even by `==`.
    return node, f"[{node_text(node)}, {step}]", False


def _argument(call: Node, place: int | None) -> Node | None:
    """Returns the argument at that place; None when there is none, or when one is spread."""
    given = arguments(call)
    if place is None or len(given) <= place or any(one.type == "spread_element" for one in given[: place + 1]):
        return None
    return given[place]


def _at_end(block: Node, statement: str, lines: Sequence[str]) -> tuple[int, str]:
    """Returns where a last statement of the block goes, and how it is written there."""
    last = block.named_children[-1] if block.named_children else None
    place = last.end_byte if last is not None else block.start_byte + 1
    if block.start_point.row == block.end_point.row:
        closed = last is None or node_text(last).endswith(";")
        return place, f" {statement} " if last is None else f"{'' if closed else ';'} {statement}"
    # Indented as the first statement is: a comment may stand behind the last one.
    first = block.named_children[0] if last is not None else block
    line = lines[first.start_point.row]
    indent = line[: len(line) - len(line.lstrip())] + ("  " if last is None else "")
    return place, f"\n{indent}{statement}"
