"""Which function a Python expression means: `im` after `from importlib import import_module as im`."""

import ast
from collections.abc import Iterator

from orchestrator.syntax.python_holes import is_whole, label
from orchestrator.syntax.python_scopes import Bound, How, Scope
from orchestrator.syntax.python_values import Values

UNKNOWN = "?"
"""Stands for the object that a method is called on, where nothing says what it is."""
_MAX_DEPTH = 12
_LOADERS = frozenset({"__import__", "importlib.import_module", "importlib.__import__", "builtins.__import__"})
_HAND_ON = frozenset(
    {"partial", "map", "starmap", "imap", "submit", "to_thread", "run_sync", "run_in_executor", "Thread", "Process"}
    | {"Timer", "apply", "apply_async", "call_soon", "call_later", "start_new_thread", "register", "defer"}
)
"""What runs a function that it is handed."""
_BUILTINS = frozenset({"__builtins__", "builtins"})


class Meanings:
    """Dotted names under which the functions of one tree are known elsewhere. Never raises."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._known: dict[tuple[int, str], frozenset[str]] = {}

    def of(self, node: ast.AST, scope: Scope, depth: int = 0) -> frozenset[str]:
        """What an expression may mean: `subprocess.run`; `?.run` of an unknown object; nothing for what is local."""
        if depth > _MAX_DEPTH or self.values.spent():
            return frozenset({UNKNOWN})
        if isinstance(node, ast.Name):
            return self._name(node, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope, depth)
        if isinstance(node, ast.Call):
            return self._call(node, scope, depth)
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value, scope, depth + 1)
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = (node.body, node.orelse) if isinstance(node, ast.IfExp) else node.values[:8]
            return frozenset(name for part in parts for name in self.of(part, scope, depth + 1))
        return frozenset({UNKNOWN})

    def _name(self, node: ast.Name, scope: Scope, depth: int) -> frozenset[str]:
        home, name, bounds = self.values.bindings(node, scope)
        if not bounds:
            return frozenset({name, *(f"{module}.{name}" for module in self.values.survey.stars)})
        key = (id(home), name)
        if key not in self._known:
            self._known[key] = frozenset({UNKNOWN})  # a name that comes back to itself
            self._known[key] = self._bound(bounds, depth)
        return self._known[key]

    def _bound(self, bounds: tuple[Bound, ...], depth: int) -> frozenset[str]:
        found: set[str] = set()
        for bound in bounds[:16]:
            if bound.how is How.MODULE:
                found.add(bound.name)
            elif bound.how is How.VALUE and bound.node is not None and not bound.path:
                found |= self.of(bound.node, bound.scope, depth + 1)
            elif bound.how is How.OPAQUE and isinstance(bound.node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            else:
                found.add(UNKNOWN)
        return frozenset(found)

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> frozenset[str]:
        if node.attr == "__dict__":
            return self.of(node.value, scope, depth + 1)
        home, name, bounds = self.values.bindings(node, scope)
        if bounds:
            key = (id(home), name)
            if key not in self._known:
                self._known[key] = frozenset()  # an attribute that comes back to itself
                self._known[key] = self._bound(bounds, depth)
            return self._known[key] | {f"{UNKNOWN}.{name}"}
        return frozenset(f"{name}.{node.attr}" for name in self.of(node.value, scope, depth + 1)) or frozenset(
            {f"{UNKNOWN}.{node.attr}"}
        )

    def _subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> frozenset[str]:
        """`__builtins__["x"]`, `vars(module)["x"]`, `globals()["x"]`, `sys.modules["x"]`."""
        keys = [text for text in self.values.texts(node.slice, scope) if is_whole(text)]
        found: set[str] = set()
        for name in self.of(node.value, scope, depth + 1):
            for key in keys:
                found.add(key if name in {"sys.modules", "globals()", "locals()"} else f"{name}.{key}")
        return frozenset(found or {UNKNOWN})

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> frozenset[str]:
        """`getattr(module, "x")`, `vars(module)`, `__import__("module")`, `globals()`, `partial(f, …)`."""
        if not isinstance(node.func, ast.Name | ast.Attribute):
            return frozenset({UNKNOWN})
        called = self.of(node.func, scope, depth + 1)
        last = {name.rsplit(".", 1)[-1] for name in called}
        if last & {"globals", "locals"} and not node.args:
            return frozenset({"globals()"})
        if not node.args:
            return frozenset({UNKNOWN})
        first = node.args[0]
        if "getattr" in last and len(node.args) > 1:
            names = [text for text in self.values.texts(node.args[1], scope) if is_whole(text)]
            return frozenset(f"{base}.{name}" for base in self.of(first, scope, depth + 1) for name in names)
        if "vars" in called:
            return self.of(first, scope, depth + 1)
        if called & _LOADERS:
            return frozenset(text for text in self.values.texts(first, scope) if is_whole(text)) or frozenset({UNKNOWN})
        if last & {"get", "__getitem__", "pop"} and isinstance(node.func, ast.Attribute):
            return self._subscript(ast.Subscript(value=node.func.value, slice=first, ctx=ast.Load()), scope, depth + 1)
        return frozenset({UNKNOWN})


def handed_on(call: ast.Call) -> Iterator[ast.Call]:
    """The calls that a call may make of what it is handed: `partial(f, x)`, `map(f, xs)`, `Thread(target=f)`."""
    name = label(call.func).rsplit(".", 1)[-1]
    if name not in _HAND_ON:
        return
    mapped = name in {"map", "starmap", "imap"}
    for place, arg in enumerate(call.args[:4]):
        rest = call.args[place + 1 :]
        if not isinstance(arg, ast.Name | ast.Attribute) or not rest:
            continue
        if mapped:
            yield from (_call_of(arg, [part], call) for part in _spread(rest[0]))
        else:
            yield _call_of(arg, rest, call)
    target = next((word.value for word in call.keywords if word.arg in {"target", "func"}), None)
    given = next((word.value for word in call.keywords if word.arg == "args"), None)
    if isinstance(target, ast.Name | ast.Attribute) and given is not None:
        yield _call_of(target, _spread(given), call)


def _spread(node: ast.expr) -> list[ast.expr]:
    """What stands in a list, as far as it stands there."""
    return node.elts if isinstance(node, ast.List | ast.Tuple) else [ast.Starred(value=node, ctx=ast.Load())]


def _call_of(func: ast.expr, args: list[ast.expr], call: ast.Call) -> ast.Call:
    return ast.copy_location(ast.Call(func=func, args=args, keywords=[]), call)


def plain(name: str) -> str:
    """A dotted name without the module of the built-in functions before it."""
    first, _, rest = name.partition(".")
    return rest if first in _BUILTINS and rest else name


def last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rsplit(".", 1)[-1]
