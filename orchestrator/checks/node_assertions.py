"""Does a Node test assert anything, and can that fail (spec 1 C2)? By syntax tree."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.checks.node_always_true import always_true
from orchestrator.checks.node_reached import DECLARED, run_nodes
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import ASSERT_MODULES, FUNCTIONS, bindings, call_arguments
from orchestrator.syntax.javascript_tree import below, everything, node_text

_CHECKING = re.compile(r"^(check|verify|ensure|should|must|compare)")
_PLANNED = re.compile(r"\.plan\(|\bplan\s*:")


@dataclass(frozen=True)
class Assertion:
    """One assertion; `always_true` says why it cannot fail, "" when it can."""

    line: int
    always_true: str = ""


class Assertions:
    """Reads the tests of one file. A function of the file that asserts makes its callers assert."""

    def __init__(self, tree: Node) -> None:
        found = tuple(bindings(tree))
        self._names = {one.name: one.export for one in found if one.module in ASSERT_MODULES}
        helpers = (one.name for one in found if one.module.startswith((".", "#")) and _CHECKING.match(one.name))
        self._imported = frozenset(helpers)
        self._helpers = _helpers(tree)
        self._asserting: dict[str, bool] = {}

    def of(self, body: Node) -> list[Assertion]:
        """What the function asserts itself or by functions of the same file."""
        planned = bool(_PLANNED.search(node_text(body)))
        plans = _plans(body)
        found: list[Assertion] = []
        for node in run_nodes(body, planned=planned):
            line = node.start_point.row + 1
            if node.type == "throw_statement" or _should_be(node):
                found.append(Assertion(line))
            elif node.type == "call_expression":
                verb = self.verb(node)
                if verb:
                    reason = always_true(verb, node)
                    # With a plan an assertion of the context counts by being reached, not by what it compares.
                    counted = planned and ".assert." in node_text(node.child_by_field_name("function"))
                    found.append(Assertion(line, "" if counted else reason))
                elif self._otherwise(node, plans):
                    found.append(Assertion(line))
        return found

    def verb(self, call: Node) -> str:
        """Which assertion the call is (`ok`, `equal`, `expect` …), "" for none."""
        head, *members = node_text(call.child_by_field_name("function")).split(".")
        if head in self._names:
            export = self._names[head]
            return members[-1] if members else "ok" if export in {"default", "*", "strict", "ok"} else export
        if "assert" in members[:-1]:  # a test context's own: t.assert.equal
            return members[-1]
        if head.startswith(("expect(", "expect ")):
            return "expect"
        if head == "expect" and not members:
            # alone it asserts nothing; `expect(x).to.be.true` asserts by naming a member
            return "expect" if call.parent is not None and _asked_of(call.parent) else ""
        if members and members[-1] == "expect" and "(" in node_text(call.child_by_field_name("function")):
            return "other"  # a request's: request(app).get("/").expect(200)
        known = "assert" in head.lower() or head.lower().startswith(("expect", "should", "verify"))
        return "other" if known or "should" in members[:-1] else ""

    def _otherwise(self, call: Node, plans: frozenset[str]) -> bool:
        """Whether a helper, a plan, or a function that is given an assertion asserts here."""
        name = node_text(call.child_by_field_name("function"))
        if name in self._imported or name.partition(".")[0] in plans or self._by_helper(name):
            return True
        given = [node_text(argument) for argument in call_arguments(call)]
        return any(self._names.get(text.partition(".")[0]) and "(" not in text for text in given)

    def _by_helper(self, name: str) -> bool:
        """Whether calling the file's function `name` comes to an assertion; walks without recursion."""
        if name not in self._asserting:
            self._asserting[name] = self._comes_to_one(name)
        return self._asserting[name]

    def _comes_to_one(self, name: str) -> bool:
        waiting, seen = [name], set[str]()
        while waiting:
            here = waiting.pop()
            if here in seen or here not in self._helpers:
                continue
            seen.add(here)
            for node in run_nodes(self._helpers[here]):
                if node.type == "throw_statement" or (node.type == "call_expression" and self.verb(node)):
                    return True
                if node.type == "call_expression":
                    waiting.append(node_text(node.child_by_field_name("function")))
        return False


def _should_be(node: Node) -> bool:
    """`(value).should.be.true;` as a statement of its own"""
    if node.type != "expression_statement" or not node.named_children:
        return False
    held = node.named_children[0]
    return held.type == "member_expression" and ".should." in node_text(held)


def _asked_of(node: Node) -> bool:
    """Whether a member chain ends there, as in `expect(x).to.be.true`; one that is called is read where it is."""
    while node.parent is not None and node.type == "member_expression" and node.parent.type == "member_expression":
        node = node.parent
    return node.type == "member_expression" and node.parent is not None and node.parent.type == "expression_statement"


def _plans(body: Node) -> frozenset[str]:
    """Names that are made from the test's context and assert for it: `const plan = tspl(t, { plan: 2 })`."""
    found = set[str]()
    for node in below(body):
        value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
        if value is not None and value.type == "call_expression":
            arguments = [node_text(argument) for argument in call_arguments(value)]
            if arguments[:1] == ["t"] and len(arguments) > 1 and "plan" in arguments[1]:
                found.add(node_text(node.child_by_field_name("name")))
    return frozenset(found)


def _helpers(tree: Node) -> Mapping[str, Node]:
    found: dict[str, Node] = {}
    for node in everything(tree):
        if node.type in DECLARED:
            found[node_text(node.child_by_field_name("name"))] = node
        elif node.type == "variable_declarator":
            value = node.child_by_field_name("value")
            if value is not None and value.type in FUNCTIONS:
                found[node_text(node.child_by_field_name("name"))] = value
    return found
