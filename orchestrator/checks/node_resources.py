"""What a Node test file leaves open or opens too early: databases, servers, responses (spec 1 C2). By syntax tree."""

import re
from collections.abc import Callable, Iterator

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import FUNCTIONS, bindings, call_arguments, string_value
from orchestrator.syntax.javascript_tree import below, everything, node_text

_HANDLES = frozenset(
    {"db", "database", "conn", "connection", "pool", "knex", "sequelize", "prisma", "mongoose", "dbclient", "sqlite"}
)
"""Names that stand for an open database, in lower case; classes and functions that open one are not among them."""
_OPENING = re.compile(
    r"^(open|create|connect)(to)?(the)?(db|database|pool|connection|sqlite)\w*$|^database(sync)?$|^pool$", re.IGNORECASE
)
_STARTING = re.compile(r"^(start|run|launch)(the)?(test)?(server|app)$", re.IGNORECASE)
_CLOSING = r"(close|end|destroy|disconnect|\$disconnect|stop|shutdown|terminate|closeAllConnections)"
_LOOPBACK = re.compile(r"^\w+://(localhost|127\.|\[::1\]|0\.0\.0\.0|\$|:|$)")
_READS = frozenset({"text", "json", "arrayBuffer", "blob", "bytes", "formData", "body"})
_DRAINS = re.compile(r"^(resume|pipe|read|toArray|setEncoding|text|json)$")


def resources(tree: Node, file: str, first_test_line: int) -> list[Finding]:
    """Findings on the file's databases, servers and requests; tests begin at `first_test_line`."""
    where = Where(file=file)
    found = [*_databases(tree, where, first_test_line), *_servers(tree, where), *_requests(tree, where)]
    return sorted(found, key=lambda finding: finding.where.line or 0)


def _at(where: Where, node: Node) -> Where:
    return where.model_copy(update={"line": node.start_point.row + 1})


def _databases(tree: Node, where: Where, first_test_line: int) -> Iterator[Finding]:
    opened: dict[str, Node] = {}
    for found in bindings(tree):
        if not found.module.startswith(".") or found.name.lower() not in _HANDLES:
            continue
        opened.setdefault(found.name, found.node)
        if _function_around(found.node) is None and found.node.start_point.row + 1 <= first_test_line:
            message = f"the database handle `{found.name}` is imported at file level, so it opens before any test"
            fix = "Import it with `await import(…)` in a before hook, when the test's own file and settings stand."
            yield major("suite.database_import", message, where=_at(where, found.node), fix=fix)
    for target, value in _assignments(tree):
        if _OPENING.match(_callee(value)):
            opened.setdefault(target, value)
    for name, node in opened.items():
        if not _is_closed(tree, name):
            message = f"the database `{name}` is never closed, so the run does not end"
            fix = f"Close it in an after hook: `after(() => {name}.close())`."
            yield major("suite.database_open", message, where=_at(where, node), fix=fix)


def _servers(tree: Node, where: Where) -> Iterator[Finding]:
    assigned = {value.id: target for target, value in _assignments(tree)}
    for node in everything(tree):
        if node.type != "call_expression":
            continue
        callee = node.child_by_field_name("function")
        names = [assigned[node.id]] if node.id in assigned else []
        if callee is not None and callee.type == "member_expression" and _member(callee) == "listen":
            names.append(node_text(callee.child_by_field_name("object")))
        elif not names or not _STARTING.match(_callee(node)):
            continue
        if not any(_is_closed(tree, name) for name in names if name.isidentifier()):
            fix = "Keep what listens in a variable and close it in an after hook: `after(() => server.close())`."
            yield major("suite.server_open", "a server is started and never closed", where=_at(where, node), fix=fix)


def _requests(tree: Node, where: Where) -> Iterator[Finding]:
    fix = "Read the body also where only the status counts: `await response.text()`."
    for node in everything(tree):
        if node.type != "call_expression":
            continue
        callee, arguments = node_text(node.child_by_field_name("function")), call_arguments(node)
        if callee == "fetch":
            undrained = _fetch_undrained(node)
        elif re.match(r"^https?\.(get|request)$", callee):
            undrained = _callback_undrained(arguments)
        else:
            continue
        address = arguments and _beginning(arguments[0])
        if address and re.match(r"^https?:", address) and not _LOOPBACK.match(address):
            message = f"the test sends a request to `{address[:100]}`"
            yield major("suite.network", message, where=_at(where, node), fix="Start what is asked on loopback.")
        if undrained:
            message = "the response of a request is not drained, which keeps its connection open"
            yield major("suite.undrained", message, where=_at(where, node), fix=fix)


def _fetch_undrained(call: Node) -> bool:
    """Whether nobody reads the body: the response is used on the spot for something else, or kept and never read."""
    node = call.parent
    while node is not None and node.type in {"await_expression", "parenthesized_expression"}:
        node = node.parent
    if node is None or call.parent is None or call.parent.type != "await_expression":
        return node is not None and node.type == "expression_statement"
    if node.type == "member_expression":
        return _member(node) not in _READS
    if node.type == "expression_statement":
        return True
    name = node.child_by_field_name("name") if node.type == "variable_declarator" else None
    name = node.child_by_field_name("left") if node.type == "assignment_expression" else name
    if name is None or name.type == "object_pattern":
        return name is not None and not any(node_text(part).split(":")[0] in _READS for part in name.named_children)
    return not _is_read(_scope(node), node_text(name), lambda member: member in _READS)


def _callback_undrained(arguments: list[Node]) -> bool:
    callback = next((node for node in arguments if node.type in FUNCTIONS), None)
    if callback is None:
        return False  # its `response` event is taken elsewhere
    single = callback.child_by_field_name("parameter")
    several = callback.child_by_field_name("parameters")
    first = single or (several.named_children[0] if several is not None and several.named_children else None)
    if first is None:
        return True
    name = node_text(first)
    if re.search(rf"\b{re.escape(name)}\s*\.(on|once|addListener)\(\s*['\"`](data|readable)", node_text(callback)):
        return False
    body = callback.child_by_field_name("body")
    return body is not None and not _is_read(body, name, lambda member: bool(_DRAINS.match(member)))


def _is_read(scope: Node, name: str, reads: Callable[[str], bool]) -> bool:
    """Whether `name` has a reading member used, is iterated, returned, or handed to another function."""
    for node in below(scope):
        if node.type == "member_expression" and node_text(node.child_by_field_name("object")) == name:
            if reads(_member(node)):
                return True
        elif node.type == "identifier" and node_text(node) == name and node.parent is not None:
            parent = node.parent
            if parent.type in {"arguments", "return_statement", "spread_element", "array", "pair"}:
                return True
            if parent.type == "for_in_statement" and parent.child_by_field_name("right") == node:
                return True
    return False


def _assignments(tree: Node) -> Iterator[tuple[str, Node]]:
    """(name, called value) of declarations and assignments; `await` and brackets around the call are looked through."""
    for node in everything(tree):
        if node.type == "variable_declarator":
            target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        elif node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        else:
            continue
        while value is not None and value.type in {"await_expression", "parenthesized_expression"}:
            value = value.named_children[0] if value.named_children else None
        if target is None or target.type != "identifier" or value is None:
            continue
        if value.type in {"call_expression", "new_expression"}:
            yield node_text(target), value


def _callee(value: Node) -> str:
    """Last part of the name of what is called or constructed."""
    called = value.child_by_field_name("function") or value.child_by_field_name("constructor")
    return node_text(called).rsplit(".", 1)[-1]


def _member(node: Node) -> str:
    return node_text(node.child_by_field_name("property"))


def _is_closed(tree: Node, name: str) -> bool:
    """Whether the file calls a closing method of `name` (or names one), or hands it to a closing function."""
    method = re.compile(rf"(?<![\w$.]){re.escape(name)}\??\.{_CLOSING}\b")
    handed = re.compile(rf"\b{_CLOSING}\w*\([^()]*\b{re.escape(name)}\b", re.IGNORECASE)
    for node in everything(tree):
        if node.type == "member_expression" and method.fullmatch(node_text(node)):
            return True
        if node.type == "call_expression" and handed.match(node_text(node)):
            return True
    return False


def _function_around(node: Node) -> Node | None:
    here = node.parent
    while here is not None and here.type not in FUNCTIONS:
        here = here.parent
    return here


def _scope(node: Node) -> Node:
    """The function the node stands in, else the whole file."""
    around = _function_around(node)
    here = node
    while around is None and here.parent is not None:
        here = here.parent
    return around or here


def _beginning(node: Node) -> str:
    """The literal text an address begins with, "" when it cannot be seen."""
    text = string_value(node)
    if text is None and node.type == "template_string":
        text = node_text(node)[1:]
    if text is None and node.type == "new_expression" and call_arguments(node):
        return _beginning(call_arguments(node)[-1])
    return text or ""
