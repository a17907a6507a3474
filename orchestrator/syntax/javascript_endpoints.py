"""The HTTP endpoints a JavaScript or TypeScript text declares with Express, by a tolerant syntax tree."""

from collections.abc import Iterator

from orchestrator.domain.surface import Endpoint
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tree import below, literal, node_text, root

_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options", "all"})
_MAKERS = frozenset({"express", "express.Router", "Router"})
_NAMES = ("app", "router", "server", "api")
"""What apps and routers are called when they come from elsewhere (a parameter, an import)."""
_MAX_CHAIN, _MAX_NAME = 12, 120
"""Verbs in a chain and bytes of a name that are looked at: a hostile text has both as long as itself."""


def endpoints(text: str, path: str) -> tuple[Endpoint, ...]:
    """In order of the text, as far as it can be read. `path` is the file's own, for the record."""
    if not any(word in text for word in ("express", "Router", "app.", "router.")):
        return ()
    nodes = list(below(root(text, path)))
    owners = {name for node in nodes if node.type == "variable_declarator" and (name := _made(node))}
    found: list[Endpoint] = []
    for node in nodes:
        if node.type == "call_expression":
            found += _call(node, owners, path)
    return tuple(dict.fromkeys(found))


def _made(node: Node) -> str:
    """The variable that a declarator binds to an app or router, or ""."""
    value = node.child_by_field_name("value")
    if value is None or value.type not in {"call_expression", "new_expression"}:
        return ""
    maker = value.child_by_field_name("function") or value.child_by_field_name("constructor")
    made = maker is not None and maker.end_byte - maker.start_byte < _MAX_NAME and node_text(maker) in _MAKERS
    return node_text(node.child_by_field_name("name")) if made else ""


def _call(node: Node, owners: set[str], file: str) -> Iterator[Endpoint]:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or function.type != "member_expression" or arguments is None:
        return
    verb = node_text(function.child_by_field_name("property"))
    owner, given = function.child_by_field_name("object"), arguments.named_children
    if owner is None or not given:
        return
    chained = _chained_route(owner, owners)
    if chained is not None and verb in _VERBS:
        yield _endpoint(verb, chained, given[-1], file)
    elif _is_owner(owner, owners) and len(given) > 1:
        # One argument alone reads a setting: app.get("title").
        for route in _routes(given[0]):
            if verb in _VERBS:
                yield _endpoint(verb, route, given[-1], file)
            elif verb == "use":
                yield Endpoint(method="MOUNT", path=route, file=file, target=_target(given[-1]))


def _is_owner(node: Node, owners: set[str]) -> bool:
    name = _target(node)
    last = name.rpartition(".")[2]
    return name in owners or last.lower() in _NAMES or last.endswith(("Router", "Routes"))


def _chained_route(node: Node, owners: set[str]) -> str | None:
    """The path of `app.route("/x").get(…)`, also with other verbs between."""
    for _ in range(_MAX_CHAIN):
        if node.type != "call_expression":
            return None
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or function.type != "member_expression" or arguments is None:
            return None
        owner = function.child_by_field_name("object")
        if owner is None:
            return None
        if node_text(function.child_by_field_name("property")) == "route" and _is_owner(owner, owners):
            return literal(arguments.named_children[0]) or None if arguments.named_children else None
        node = owner
    return None


def _routes(node: Node) -> Iterator[str]:
    """The literal path, or those of an array."""
    for item in node.named_children if node.type == "array" else [node]:
        route = literal(item)
        if route.startswith(("/", "*")):
            yield route


def _endpoint(verb: str, route: str, handler: Node, file: str) -> Endpoint:
    method = "ANY" if verb == "all" else verb.upper()
    return Endpoint(method=method, path=route, file=file, target=_target(handler))


def _target(node: Node) -> str:
    """The handler's name; "" for one written in place."""
    if node.type == "call_expression" and node_text(node.child_by_field_name("function")) == "require":
        arguments = node.child_by_field_name("arguments")
        return literal(arguments.named_children[0]) if arguments is not None and arguments.named_children else ""
    named = node.type in {"identifier", "member_expression"} and node.end_byte - node.start_byte < _MAX_NAME
    return node_text(node) if named else ""
