"""Mutations of Python tests: what an assertion expects is changed, so that the test cannot pass any more."""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from orchestrator.code.mutations import Mutation

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_EQUAL = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual"})
_TRUTH = frozenset({"assertTrue", "assertFalse"})
_RAISES = frozenset({"raises", "assertRaises"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LETTERS = "abcdefghijklmnoprstuvwz"


def python_mutations(text: str, random: Random) -> tuple[Mutation, ...]:
    """At most one mutation per test of a pytest or unittest file; none for a text that does not parse.

    Tests that may end without reaching the change are left out: with a `return` or `yield` of their own, or with a
    decorator that could catch or repeat a failure (anything but marks and patches); and coroutines in a plain
    `unittest.TestCase`, which is never awaited.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # newer Python, or broken: nothing to change
        return ()
    mutator = _Mutator(text, random)
    tests = [*_tests(tree, "")]
    counts = Counter(case for case, _ in tests)
    found = (mutator.mutation(case, test) for case, test in tests if counts[case] == 1 and _always_ends(test))
    return tuple(mutation for mutation in found if mutation is not None)


def _tests(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in scope.body:
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            awaited = not any(ast.unparse(base).rpartition(".")[2] == "TestCase" for base in node.bases)
            inner = _tests(node, f"{prefix}{node.name}::")
            yield from ((case, test) for case, test in inner if awaited or not isinstance(test, ast.AsyncFunctionDef))


def _always_ends(test: _Function) -> bool:
    """Returns whether a passing test runs to the end of its body."""
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


class _Mutator:
    """Writes the changes for one text."""

    def __init__(self, text: str, random: Random) -> None:
        self._bytes, self._random = text.encode(), random
        # bytes.splitlines ends lines where Python's parser does; str.splitlines knows more line ends.
        self._lines = [0, *accumulate(map(len, self._bytes.splitlines(keepends=True)))]

    def mutation(self, case: str, test: _Function) -> Mutation | None:
        """Returns the change to one test: of the assertion that it ends with, else an assertion that is added behind.

        Everything before the end still happens: what a test opens, it closes, and what later tests need is there.
        """
        last = test.body[-1]
        if (change := self._changed(last)) is not None:
            node, text = change
            other = not text.startswith("not (")
            return Mutation(case=case, start=self._start(node), end=self._end(node), text=text, other_value=other)
        if last.lineno == test.lineno or self._shares_line(last):
            return None
        line = b"\n" + self._bytes[self._lines[last.lineno - 1] : self._start(last)] + self._added(test).encode()
        return Mutation(case=case, start=self._end(last), end=self._end(last), text=line.decode())

    def _changed(self, statement: ast.stmt) -> tuple[ast.expr, str] | None:
        if isinstance(statement, ast.Assert):
            return self._other_comparison(statement.test) or (statement.test, f"not ({self._of(statement.test)})")
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        called, arguments = statement.value.func, statement.value.args
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if name in _EQUAL and len(arguments) > 1:
            return self._other_operand(arguments[1], arguments[0], self._of(statement))
        if name in _TRUTH and arguments:
            return arguments[0], f"not ({self._of(arguments[0])})"
        return None

    def _other_comparison(self, test: ast.expr) -> tuple[ast.expr, str] | None:
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
            return None
        return self._other_operand(test.comparators[0], test.left, self._of(test))

    def _other_operand(self, expected: ast.expr, found: ast.expr, text: str) -> tuple[ast.expr, str]:
        """What is expected, or else found, as another literal; else the expected value within a dictionary.

        Another number may be within the tolerance of `pytest.approx`; and telling two long lists apart takes minutes.
        """
        literal = None if "approx" in text else self._other_of(expected) or self._other_of(found)
        return literal or (expected, f"{{{self._random.randint(2, 9)}: {self._of(expected)}}}")

    def _other_of(self, node: ast.expr) -> tuple[ast.expr, str] | None:
        """Returns a literal with another value of its type; an object that equals everything equals that as well."""
        text, number = self._of(node), self._random.randint(2, 9)
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # not a literal
            return None
        word = "".join(self._random.choices(_LETTERS, k=self._random.randint(2, 5)))
        match value:
            case bool():
                return node, str(not value)
            case int() | float() | complex():
                return node, repr(value + number) if value + number != value else repr(-value)
            case str():
                return node, f"{text} {word!r}" if isinstance(node, ast.Constant) else repr(value + word)
            case bytes():
                return node, f"{text} b{word!r}"
            case list():
                return node, f"[*{text}, {number}]"
            case tuple():
                return node, f"(*({text}), {number})"
            case set():
                return node, f"{{*{text}, {word!r}}}"
            case dict():
                return node, f"{{**{text}, {word!r}: {number}}}"
        return None

    def _added(self, test: _Function) -> str:
        """Returns a statement that fails, in the manner of the test's own."""
        for node in ast.walk(test):
            if isinstance(node, ast.With) and len(node.items) == 1:
                call = node.items[0].context_expr
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _RAISES:
                    return f"with {ast.unparse(call)}: pass"
        less, more = sorted(self._random.sample(range(100), 2))
        methods = test.args.args and test.args.args[0].arg == "self"
        own = any(isinstance(node, ast.Attribute) and node.attr in _EQUAL | _TRUTH for node in ast.walk(test))
        return f"self.assertEqual({more}, {less})" if methods and own else f"assert {less} == {more}"

    def _shares_line(self, last: ast.stmt) -> bool:
        """Returns whether something other than its indentation stands before or behind a statement on its lines."""
        before = self._bytes[self._lines[last.lineno - 1] : self._start(last)]
        behind = self._bytes[self._end(last) : self._lines[last.end_lineno or last.lineno]]
        return bool(before.strip()) or not (behind.strip() == b"" or behind.strip().startswith(b"#"))

    def _of(self, node: ast.expr | ast.stmt) -> str:
        return self._bytes[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
