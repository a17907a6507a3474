"""The HTTP endpoints a Python text declares: Flask and its kin, FastAPI, Django, by syntax tree."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from orchestrator.domain.surface import Endpoint
from orchestrator.syntax.python_source import dotted, parse

_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
_ROUTES = frozenset({"route", "api_route"})
_APPS = frozenset({"Flask", "Quart", "FastAPI", "APIRouter", "Blueprint", "APIBlueprint", "Starlette"})
_MOUNTS = frozenset({"include_router", "register_blueprint"})
_DJANGO = frozenset({"path", "re_path", "url"})
_DRF = frozenset({"DefaultRouter", "SimpleRouter"})
_HINT = re.compile(
    r"@\s*[\w.]+\.(?:route|api_route|websocket|get|post|put|patch|delete|head|options)\s*\("
    r"|\burlpatterns\b|\b(?:add_url_rule|add_api_route|include_router|register_blueprint|DefaultRouter|SimpleRouter)\b"
)
"""A text without any of these declares nothing; most texts need no tree for that."""
_Call = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(maxsize=8)  # a changed file is asked for its routes and for what it mounts, as it was and as it is
def endpoints(text: str, path: str) -> tuple[Endpoint, ...]:
    """In order of the text; () when it does not parse. `path` is the file's own, for the record."""
    if not _HINT.search(text):
        return ()
    tree = parse(text)
    if tree is None:
        return ()
    nodes = list(ast.walk(tree))
    prefixes = _prefixes(nodes)
    found = [*_decorated(nodes, prefixes, path), *_called(nodes, prefixes, path), *_django(tree, nodes, path)]
    return tuple(dict.fromkeys(found))


def _word(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """A positional argument or the keyword of one of these names."""
    if place < len(call.args):
        return call.args[place]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def _prefixes(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Variable that holds an app or router → the prefix it was made with."""
    found = {}
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if dotted(node.value.func).split(".")[-1] in _APPS:
            prefix = _word(_argument(node.value, 99, "url_prefix", "prefix")) or ""
            found.update({target.id: prefix for target in node.targets if isinstance(target, ast.Name)})
    return found


def _decorated(nodes: Sequence[ast.AST], prefixes: Mapping[str, str], path: str) -> Iterator[Endpoint]:
    for node in nodes:
        if isinstance(node, _Call):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
                    yield from _route(decorator, decorator.func, prefixes, path, node.name)


def _route(
    call: ast.Call, function: ast.Attribute, prefixes: Mapping[str, str], file: str, target: str
) -> Iterator[Endpoint]:
    verb, owner = function.attr, dotted(function.value)
    route = _word(_argument(call, 0, "path", "rule"))
    # A slash or a known router: other decorators take texts too.
    if route is None or not (route.startswith("/") or owner in prefixes):
        return
    whole = prefixes.get(owner, "") + route or "/"
    if verb in _VERBS:
        yield Endpoint(method=verb.upper(), path=whole, file=file, target=target)
    elif verb == "websocket":
        yield Endpoint(method="WS", path=whole, file=file, target=target)
    elif verb in _ROUTES:
        for method in _methods(call):
            yield Endpoint(method=method, path=whole, file=file, target=target)


def _methods(call: ast.Call) -> tuple[str, ...]:
    """What `methods=` names; GET when it is absent, ANY when it cannot be read."""
    given = _argument(call, 99, "methods")
    if given is None:
        return ("GET",)
    items = given.elts if isinstance(given, ast.List | ast.Tuple | ast.Set) else []
    return tuple(word.upper() for word in map(_word, items) if word) or ("ANY",)


def _called(nodes: Sequence[ast.AST], prefixes: Mapping[str, str], path: str) -> Iterator[Endpoint]:
    """`add_url_rule`, `add_api_route`, and routers hung into others."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, prefixes.get(dotted(node.func.value), "")
        if name in _MOUNTS and node.args:
            mounted = _word(_argument(node, 99, "prefix", "url_prefix")) or ""
            yield Endpoint(method="MOUNT", path=owner + mounted or "/", file=path, target=dotted(node.args[0]))
        elif name in {"add_url_rule", "add_api_route"} and (route := _word(_argument(node, 0, "rule", "path"))):
            handler = _argument(node, 1 if name == "add_api_route" else 2, "view_func", "endpoint")
            for method in _methods(node):
                yield Endpoint(method=method, path=owner + route, file=path, target=dotted(handler) if handler else "")


def _django(tree: ast.Module, nodes: Sequence[ast.AST], path: str) -> Iterator[Endpoint]:
    routers = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if dotted(node.value.func).split(".")[-1] in _DRF
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "urlpatterns" for target in targets):
            yield from _patterns(getattr(node, "value", None), "/", path)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _registered(node.value, routers, path)


def _registered(call: ast.Call, routers: set[str], path: str) -> Iterator[Endpoint]:
    """`router.register("users", UserViewSet)` of Django REST framework."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "register" or len(call.args) < 2:
        return
    route = _word(call.args[0])
    if route is not None and dotted(call.func.value) in routers:
        yield Endpoint(method="ANY", path=f"/{route}/", file=path, target=dotted(call.args[1]))


def _patterns(value: ast.AST | None, prefix: str, file: str) -> Iterator[Endpoint]:
    """Calls of a urlpatterns value in order, those of a nested `include([...])` behind its prefix."""
    waiting: list[tuple[ast.AST | None, str]] = [(value, prefix)]
    while waiting:
        node, before = waiting.pop()
        if isinstance(node, ast.BinOp):
            waiting += [(node.right, before), (node.left, before)]
        elif isinstance(node, ast.List | ast.Tuple):
            waiting += [(item, before) for item in reversed(node.elts)]
        elif isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in _DJANGO:
            route, handler = _word(_argument(node, 0, "route")), _argument(node, 1, "view")
            whole = before + (route or "").removeprefix("^")
            included = _included(handler)
            if isinstance(included, ast.List | ast.Tuple):
                waiting.append((included, whole))
            elif route is not None:
                yield _pattern(whole, handler, included, file)


def _included(handler: ast.expr | None) -> ast.expr | None:
    if isinstance(handler, ast.Call) and dotted(handler.func).split(".")[-1] == "include" and handler.args:
        return handler.args[0]
    return None


def _pattern(whole: str, handler: ast.expr | None, included: ast.expr | None, file: str) -> Endpoint:
    if included is not None:
        return Endpoint(method="MOUNT", path=whole, file=file, target=_word(included) or dotted(included))
    view = handler.func if isinstance(handler, ast.Call) else handler
    target = (dotted(view) if view is not None else "").removesuffix(".as_view")
    return Endpoint(method="ANY", path=whole, file=file, target=target)
