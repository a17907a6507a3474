"""What a Python text declares outwards, by syntax tree.

HTTP endpoints of Flask and its kin, FastAPI and Django; tables of SQLAlchemy, SQLModel and Django.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.code.python.source import dotted, family, parse_python, walk
from orchestrator.core.contract import Endpoint, Table
from orchestrator.core.value import remembered

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


@remembered(8)  # a changed file is asked for its routes and for what it mounts, as it was and as it is
def endpoints(text: str, path: str) -> tuple[Endpoint, ...]:
    """In order of the text; () when it does not parse. `path` is the file's own, for the record."""
    if not _HINT.search(text):
        return ()
    tree = parse_python(text)
    if tree is None:
        return ()
    nodes = walk(tree)
    prefixes = _made_by(nodes, _APPS)
    found = [*_decorated(nodes, prefixes, path), *_called(nodes, prefixes, path), *_django(tree, nodes, path)]
    return tuple(dict.fromkeys(found))


def _word(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """Returns a positional argument or the keyword of one of these names."""
    if place < len(call.args):
        return call.args[place]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def _made_by(nodes: Sequence[ast.AST], makers: frozenset[str]) -> dict[str, str]:
    """Returns variable that holds what one of `makers` made → the prefix that it was given."""
    return {
        target.id: _word(_argument(node.value, 99, "url_prefix", "prefix")) or ""
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if dotted(node.value.func).split(".")[-1] in makers
        for target in node.targets
        if isinstance(target, ast.Name)
    }


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
    routers = {*_made_by(nodes, _DRF)}
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


MAX_COLUMN_CHARS = 100
_COLUMN_CALLS = frozenset({"Column", "mapped_column", "MappedColumn"})
_NO_COLUMNS = frozenset({"relationship", "Relationship", "ManyToManyField", "GenericForeignKey"})
_TABLE_HINT = re.compile(r"\b(?:Column|mapped_column)\s*\(|\bMapped\[|\bmodels\.\w+\(|\bSQLModel\b")
"""A text without any of these declares no table; most texts need no tree for that."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_models(text: str, path: str) -> tuple[Table, ...]:
    """Tables in order of the text; () when it does not parse. Abstract classes and mixins give theirs to heirs only.

    A model without a table name goes by its framework's rule where that needs this text alone: Flask's `UserRole` is
    `user_role`, SQLModel's `userrole`; Django's stays the class's name, because the app's is unknown here.
    """
    if not _TABLE_HINT.search(text):
        return ()
    tree = parse_python(text)
    if tree is None:
        return ()
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    core = _core_tables(tree, path) if "Table(" in text else ()
    found = [*(_model(node, classes, path) for node in classes.values()), *core]
    return tuple(table for table in found if table is not None)


def _model(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], path: str) -> Table | None:
    members = family(node, classes)
    bases = {dotted(base) for member in members for base in member.bases}
    columns: dict[str, str] = {}
    for member in reversed(members):
        columns.update(_columns(member))
    name = _table_name(node, members, bases, columns)
    return Table(name=name, columns=tuple(columns.values()), file=path) if name and columns else None


def _table_name(
    node: ast.ClassDef, members: list[ast.ClassDef], bases: set[str], columns: Mapping[str, str]
) -> str | None:
    """None for a class that is no table of its own."""
    own = _constant(node, "__tablename__")
    if own:
        return own
    if _is_sqlmodel(node):
        return node.name.lower()
    if _constant(node, "__abstract__") or _meta(node, "abstract"):
        return None
    if "models.Model" in bases or any(text.split(" ", 2)[1].startswith("models.") for text in columns.values()):
        return str(_meta(node, "db_table") or node.name) if _is_django(members) else None
    if any(base.endswith(".Model") for base in bases):
        return _CAMEL.sub("_", node.name).lower()
    return None


def _is_django(members: list[ast.ClassDef]) -> bool:
    """Returns whether something in the family says Model: a mixin of fields alone is no table."""
    return any(dotted(base).rpartition(".")[2].endswith("Model") for member in members for base in member.bases)


def _is_sqlmodel(node: ast.ClassDef) -> bool:
    """Whether it is `class Hero(SQLModel, table=True)`."""
    values = [keyword.value for keyword in node.keywords if keyword.arg == "table"]
    return any(isinstance(value, ast.Constant) and value.value for value in values)


def _constant(node: ast.ClassDef, name: str) -> str:
    """Returns a class attribute that is a literal, as text; "" when it is not there, or false."""
    for part in node.body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(part, "value", None)
            if isinstance(value, ast.Constant) and value.value:
                return str(value.value)
    return ""


def _meta(node: ast.ClassDef, name: str) -> str:
    inner = next((part for part in node.body if isinstance(part, ast.ClassDef) and part.name == "Meta"), None)
    return _constant(inner, name) if inner is not None else ""


def _columns(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(attribute, text shown) of the class's own columns."""
    for part in node.body:
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            name, note = part.targets[0].id, None
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name, note = part.target.id, part.annotation
        else:
            continue
        text = _column(part.value, note, plain=_is_sqlmodel(node))
        if text:
            yield name, f"{name} {text}"[:MAX_COLUMN_CHARS]


def _column(value: ast.expr | None, note: ast.expr | None, *, plain: bool) -> str:
    """Type and constraints of an attribute, "" when it is no column. `plain`: every annotated attribute is one."""
    call = dotted(value.func) if isinstance(value, ast.Call) else ""
    last = call.rpartition(".")[2]
    if last in _NO_COLUMNS:
        return ""
    is_mapped = isinstance(note, ast.Subscript) and dotted(note.value).rpartition(".")[2] == "Mapped"
    mapped = _text(note.slice) if is_mapped and isinstance(note, ast.Subscript) else ""
    if last in _COLUMN_CALLS and isinstance(value, ast.Call):
        return " ".join(filter(None, (mapped, _arguments(value)))) or "column"
    if call.startswith("models.") and last[:1].isupper() and isinstance(value, ast.Call):
        return " ".join(filter(None, (call, _arguments(value))))
    if mapped and value is None:
        return mapped
    if plain and note is not None:
        return " ".join(filter(None, (_text(note), _arguments(value) if isinstance(value, ast.Call) else "")))
    return ""


def _arguments(call: ast.Call) -> str:
    return ", ".join(_text(node) for node in (*call.args, *call.keywords))


def _text(node: ast.AST) -> str:
    """Returns the source of an expression on one line, short: a hostile one is cut before it is written out."""
    if isinstance(node, ast.keyword):
        return f"{node.arg}={_text(node.value)}"
    if sum(1 for _, _ in zip(ast.walk(node), range(60), strict=False)) >= 60:
        return "…"
    return " ".join(ast.unparse(node).split())


def _core_tables(tree: ast.Module, path: str) -> Iterator[Table]:
    """`Table("users", metadata, Column("id", Integer), …)`."""
    for node in walk(tree):
        if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] != "Table" or not node.args:
            continue
        name = node.args[0]
        columns = [
            f"{first.value} {_arguments(ast.Call(func=item.func, args=item.args[1:], keywords=item.keywords))}".strip()
            for item in node.args[1:]
            if isinstance(item, ast.Call) and dotted(item.func).rpartition(".")[2] in _COLUMN_CALLS and item.args
            if isinstance(first := item.args[0], ast.Constant) and isinstance(first.value, str)
        ]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and columns:
            yield Table(name=name.value, columns=tuple(text[:MAX_COLUMN_CHARS] for text in columns), file=path)
