"""Node tests that are there and show nothing: switched off, sure to fail, or waiting for the clock. By syntax tree."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.checks.node_reached import run_nodes
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import FoundTest, call_arguments
from orchestrator.syntax.javascript_tree import everything, node_text

SHORT_WAIT_MS = 500
_SHOW = "Write a test that runs here and shows the criterion; leave out what cannot be tested."
_SKIPS = re.compile(r"^\w+\.(skip|todo)$")
_FAILS = re.compile(r"^(\w+\.)*assert(\.strict)?\.fail$")


def runs(tests: Iterable[FoundTest], where: Where) -> Iterator[Finding]:
    """Major: a test that is switched off or fails whatever happens; minor: one that a condition may switch off."""
    for test in tests:
        what, place = f"the test `{test.name or '…'}`", where.model_copy(update={"line": test.line})
        if test.switch == "maybe":
            message = f"{what} may be switched off, and would then show nothing"
            yield minor("suite.skipped", message, where=place, fix=_SHOW)
        elif test.switch == "only":
            fix = "Write it without `only`."
            yield major("suite.skipped", f"{what} is marked `only`, which hides the others", where=place, fix=fix)
        elif test.switch:
            yield major("suite.skipped", f"{what} is switched off by `{test.switch}`", where=place, fix=_SHOW)
        elif test.body is None:
            yield major("suite.skipped", f"{what} has no function, so nothing is run", where=place, fix=_SHOW)
        else:
            yield from _by_statement(test.body, what, where)


def waits(tree: Node, where: Where) -> Iterator[Finding]:
    """Major above half a second, else minor: time that is waited for with nothing but the clock."""
    if ".timers.enable" in node_text(tree):
        return
    promised = "timers/promises" in node_text(tree)
    fix = "Wait for the condition itself (an event, a promise), or set the clock with `mock.timers`."
    for node in everything(tree):
        milliseconds = _waited(node, promised) if node.type in {"new_expression", "await_expression"} else None
        if milliseconds is None or milliseconds == "0":
            continue
        make = minor if milliseconds.isdigit() and int(milliseconds) <= SHORT_WAIT_MS else major
        place = where.model_copy(update={"line": node.start_point.row + 1})
        yield make("suite.sleep", f"the test sleeps ({milliseconds[:40]} ms)", where=place, fix=fix)


def _by_statement(body: Node, what: str, where: Where) -> Iterator[Finding]:
    """What the statements of the test itself are sure to come to."""
    block = body.child_by_field_name("body")
    if block is None or block.type != "statement_block":
        return
    leaves = any(node.type == "return_statement" for node in run_nodes(body))
    for node in block.named_children:
        place = where.model_copy(update={"line": node.start_point.row + 1})
        callee = _called(node)
        if _SKIPS.match(callee):
            yield major("suite.skipped", f"{what} switches itself off", where=place, fix=_SHOW)
            return
        if (node.type == "throw_statement" or _FAILS.match(callee)) and not leaves:
            fix = "Let it fail only when the criterion is not met: assert what the program returns or stores."
            yield major("suite.always_fails", f"{what} fails whatever the program does", where=place, fix=fix)
            return


def _called(statement: Node) -> str:
    """The name of what a statement calls, "" when it is no call."""
    held = statement.named_children[0] if statement.named_children else None
    if statement.type != "expression_statement" or held is None or held.type != "call_expression":
        return ""
    return node_text(held.child_by_field_name("function"))


def _waited(node: Node, promised: bool) -> str | None:
    """The milliseconds of `new Promise((r) => setTimeout(r, 100))` and of `await setTimeout(100)`, as written."""
    if node.type == "await_expression":
        call = node.named_children[0] if node.named_children else None
        if not promised or call is None or call.type != "call_expression":
            return None
        name = node_text(call.child_by_field_name("function"))
        return _text(call_arguments(call), 0) if re.search(r"^(setTimeout|sleep|delay|wait)$", name) else None
    if node_text(node.child_by_field_name("constructor")) != "Promise" or not call_arguments(node):
        return None
    executor = call_arguments(node)[0]
    parameters = executor.child_by_field_name("parameters") or executor.child_by_field_name("parameter")
    resolve = re.sub(r"\W.*", "", node_text(parameters).lstrip("("), flags=re.DOTALL)
    body = executor.child_by_field_name("body")
    if body is not None and body.type == "statement_block" and len(body.named_children) == 1:
        body = body.named_children[0].named_children[0] if body.named_children[0].named_children else None
    if (
        body is None
        or body.type != "call_expression"
        or node_text(body.child_by_field_name("function")) != "setTimeout"
    ):
        return None
    callback = _text(call_arguments(body), 0)
    return _text(call_arguments(body), 1) if re.fullmatch(rf"{resolve}|\(\) => {resolve}\(\)", callback) else None


def _text(nodes: list[Node], place: int) -> str:
    return node_text(nodes[place]).replace("_", "") if len(nodes) > place else "0"
