"""Other expectations for the tests of a file for `node --test`: each changed test has to fail. By syntax tree."""

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from orchestrator.code.grammar import Node, node_text
from orchestrator.code.javascript.tests import (
    ASSERT_MODULES,
    FUNCTIONS,
    FoundTest,
    bindings,
    call_arguments,
    find_tests,
    string_value,
)
from orchestrator.code.javascript.tree import THROUGH, alternatives, root
from orchestrator.code.mutations import Mutation

_MATCHERS = {"toBe": 0, "toEqual": 0, "toStrictEqual": 0}
_EXPECTED = {"equal": 1, "strictEqual": 1, "deepEqual": 1, "deepStrictEqual": 1, **_MATCHERS}
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
_LEGACY_OCTAL = re.compile(r"-?0\d")
_PREFIXED = re.compile(r"-?0[xXbBoO]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SUFFIXES = ("Count", "Id", "Index", "Limit", "Offset", "Size", "Total", "Version")
_SENTENCES = (
    "expected {word} to be {number}",
    "unexpected {word}: {number}",
    "no {word} after {number} ms",
    "{word} differs from {number}",
    "{number} is not a {word}",
    "{word} should be at least {number}",
)


def node_mutations(path: str, text: str, random: Random) -> tuple[Mutation, ...]:
    """At most one per test, in the order of the text and never overlapping; () for a text that does not parse.

    A test is left out when its name is computed or comes twice, when it is switched or has other options than plain
    ones, when it runs in a loop, on a condition or inside another test, and when its function ends by a callback, by
    a `return` or elsewhere.
    """
    tree = root(text, path)
    if tree.has_error:
        return ()
    mutator = _Mutator(tree, text, random)
    return tuple(mutation for test in _plain_tests(tree) if (mutation := mutator.mutation(test)) is not None)


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
    for argument in call_arguments(call)[1:]:
        pairs = argument.named_children if argument.type == "object" else []
        keys = {node_text(pair.child_by_field_name("key")) if pair.type == "pair" else "" for pair in pairs}
        if argument.type not in {"object", *FUNCTIONS} or not keys <= _OPTIONS:
            return False
    return True


def _is_plain_function(function: Node) -> bool:
    """Returns whether a run comes to the function's end, and the test ends there."""
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


def _direct_calls(body: Node) -> list[Node]:
    """Returns the calls that are statements of the body themselves, awaited or not, the last one first."""
    if body.type == "statement_block":
        held = [one.named_children[0] for one in body.named_children if one.type == "expression_statement"]
    else:
        held = [body]
    held = [one.named_children[0] if one.type == "await_expression" else one for one in held]
    return [one for one in reversed(held) if one.type == "call_expression"]


def _ends_with_call(body: Node) -> bool:
    """Returns whether the body's last statement is a call, awaited or not: the first of `_direct_calls`."""
    if body.type != "statement_block":
        return True
    statements = [one for one in body.named_children if one.type != "comment"]
    last = statements[-1].named_children[0] if statements and statements[-1].type == "expression_statement" else None
    if last is not None and last.type == "await_expression":
        last = last.named_children[0]
    return last is not None and last.type == "call_expression"


def _is_async(function: Node) -> bool:
    return any(child.type == "async" for child in function.children)


def _other_number(text: str, random: Random) -> str | None:
    """Another number than the literal's, as near as a slip would be; None for one that cannot be read."""
    plain, step = re.sub(r"[_\s]", "", text), random.randint(1, 9)
    if _LEGACY_OCTAL.match(plain):
        return None
    try:
        if plain.endswith("n"):
            return f"{int(plain[:-1], 0) + step}n"
        value = float(int(plain, 0)) if _PREFIXED.match(plain) else float(plain)
    except (ValueError, OverflowError):  # not a number, or beyond a float
        return None
    other = value + step
    if other == value:  # infinite, or too large for the step to count
        other = float(step)
    return str(int(other)) if other.is_integer() and abs(other) < 1e15 else repr(other)


class _Mutator:
    """Changes the tests of one file."""

    def __init__(self, tree: Node, text: str, random: Random) -> None:
        self._text = text
        self._random = random
        self._names = {one.name: one.export for one in bindings(tree) if one.module in ASSERT_MODULES}

    def mutation(self, test: FoundTest) -> Mutation | None:
        """Returns the change of the first rule that fits: another literal, an opposite, a failing statement at the end.

        Only the assertion that a test ends with is changed, so that everything before it still happens: servers are
        closed, and what later tests need is there.
        """
        body = test.body.child_by_field_name("body") if test.body is not None else None
        if test.name is None or test.body is None or body is None:
            return None
        calls = [(self._verb(call), call) for call in _direct_calls(body)]
        for rule in (self._other_literal, self._opposite):
            for verb, call in calls[: _ends_with_call(body)]:
                changed = rule(verb, call, test.name)
                if changed is not None:
                    node, text = changed
                    other = rule == self._other_literal
                    return Mutation(
                        case=test.name, start=node.start_byte, end=node.end_byte, text=text, other_value=other
                    )
        failing = self._failing_statement(calls, test.name, is_async=_is_async(test.body))
        if body.type == "statement_block":
            place, text = _at_end(body, failing, self._text.split("\n"))
            return Mutation(case=test.name, start=place, end=place, text=text)
        kept = node_text(body)
        if body.type not in {"call_expression", "await_expression"} or _DECLARATION.match(kept):
            return None
        kept = f"await {kept}" if _is_async(test.body) and body.type == "call_expression" else kept
        return Mutation(case=test.name, start=body.start_byte, end=body.end_byte, text=f"{{ {kept}; {failing} }}")

    def _verb(self, call: Node) -> str:
        """Which assertion the call is (`ok`, `equal`, `toBe` …), "" for none."""
        called = call.child_by_field_name("function")
        held = called.child_by_field_name("object") if called is not None else None
        if called is not None and held is not None and held.type == "call_expression" and _callee(held) == "expect":
            matcher = node_text(called.child_by_field_name("property"))
            return matcher if matcher in _MATCHERS else ""
        head, *members = (part.strip() for part in node_text(called).split("."))
        if head in self._names:
            verb = members[-1] if members else self._names[head]
            return "ok" if verb in {"default", "*", "strict"} else verb
        # a test context's own: t.assert.equal
        return members[1] if len(members) == 2 and members[0] == "assert" else ""

    def _other_literal(self, verb: str, call: Node, case: str) -> tuple[Node, str] | None:
        """Returns a literal expectation and another one of its type."""
        node = _argument(call, _EXPECTED.get(verb))
        while node is not None and node.type in THROUGH:
            node = next(iter(alternatives(node)), None)
        if node is None:
            return None
        text, number, other = node_text(node), self._random.randint(2, 99), None
        if node.type in {"true", "false"}:
            other = "false" if node.type == "true" else "true"
        elif node.type == "number" or re.fullmatch(r"-\s*[\d.][\w.]*", text):
            other = _other_number(text, self._random)
        elif string_value(node) is not None:
            letters = self._random.choices(_LETTERS, k=self._random.randint(1, 3))
            other = f"{text[:-1]}{''.join(letters)}{text[-1]}"
        elif node.type == "array":
            other = f"[...{text}, {number}]"
        elif node.type == "object":
            other = f"{{ ...{text}, {self._new_key(case)}: {number} }}"
        return (node, other) if other is not None else None

    def _opposite(self, verb: str, call: Node, case: str) -> tuple[Node, str] | None:
        """What is asserted to be true, negated; a computed expectation, made a part of a list."""
        node = _argument(call, 0 if verb == "ok" else _EXPECTED.get(verb))
        if node is None:
            return None
        text = node_text(node)
        # No value equals a list that holds it and more, not even by `==`.
        return node, f"!({text})" if verb == "ok" else f"[{text}, {self._random.randint(2, 99)}]"

    def _failing_statement(self, calls: list[tuple[str, Node]], case: str, *, is_async: bool) -> str:
        """In the style of the test's own assertions of errors, else an error."""
        for verb, call in calls:
            if verb == "throws":
                return f"{_callee(call)}(() => {{}});"
            if verb == "rejects" and is_async:
                return f"await {_callee(call)}(async () => {{}});"
        sentence = self._random.choice(_SENTENCES).format(word=self._word(case), number=self._random.randint(2, 99))
        return f"throw new Error('{sentence}');"

    def _word(self, case: str) -> str:
        """Returns a word of the test's title: nothing that is the same in every run."""
        words: list[str] = re.findall(r"[a-z]{3,}", case) or ["value"]
        return self._random.choice(words)

    def _new_key(self, case: str) -> str:
        """Returns a name that the file does not know, so that no part of the object can have it."""
        key = f"{self._word(case)}{self._random.choice(_SUFFIXES)}"
        while key in self._text:
            key += self._random.choice(_LETTERS)
        return key


def _argument(call: Node, place: int | None) -> Node | None:
    """Returns the argument at that place; None when there is none, or when one is spread."""
    arguments = call_arguments(call)
    if place is None or len(arguments) <= place or any(one.type == "spread_element" for one in arguments[: place + 1]):
        return None
    return arguments[place]


def _at_end(block: Node, statement: str, lines: list[str]) -> tuple[int, str]:
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
