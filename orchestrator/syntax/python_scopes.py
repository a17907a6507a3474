"""Who binds which name in a Python text: scopes, what is put into their names, and the calls made in them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

_GROWS = frozenset({"append", "extend", "insert", "add"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class How(Enum):
    """In which way a name came by what it holds."""

    VALUE = "it is this expression"
    EACH = "it is every element of this expression"
    MODULE = "it is what this dotted name is called elsewhere"
    PARAMETER = "it is what callers hand over"
    CLASS = "it is a class of this text"
    OPAQUE = "nobody knows"


@dataclass(slots=True, frozen=True)
class Bound:
    """One thing a name was bound to."""

    how: How
    scope: "Scope"
    """Where `node` is to be read; for a class its own scope."""
    node: ast.AST | None = None
    path: tuple[int, ...] = ()
    """Which part of it, where it was unpacked."""
    name: str = ""
    """The dotted name of a module, or the parameter's."""


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, a class, a function or a comprehension."""

    parent: "Scope | None" = None
    node: ast.AST | None = None
    names: dict[str, list[Bound]] = field(default_factory=dict)
    grown: dict[str, list[tuple[ast.expr, bool]]] = field(default_factory=dict)
    """What was added to a name later, and whether as one element."""
    classes: dict[str, "Scope"] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    """Names declared `global` or `nonlocal`."""

    @property
    def is_class(self) -> bool:
        """Whether it is a class's: functions inside do not see its names."""
        return isinstance(self.node, ast.ClassDef)

    def home(self, name: str) -> "Scope | None":
        """The scope that binds `name` as seen from here, None when none does."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None

    def own_class(self) -> "Scope | None":
        """The nearest class around."""
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def bind(self, name: str, bound: Bound) -> None:
        """Note one more thing that `name` may hold."""
        scope = self
        while name in scope.outside and scope.parent is not None:
            scope = scope.parent
        scope.names.setdefault(name, []).append(bound)


class Survey:
    """Every scope and call of one tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(node=tree)
        self.calls: list[tuple[ast.Call, Scope]] = []
        self.called: dict[str, list[tuple[ast.Call, Scope]]] = {}
        """Calls of a plain name, and under `.name` those of a method of one's own object or class."""
        self.loaded: dict[str, int] = {}
        """How often a plain name is read, calls included."""
        self.inside: dict[int, Scope] = {}
        """The scope of a comprehension, by the identity of its node."""
        self.stars: list[str] = []
        """Modules whose names all came in."""
        waiting: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while waiting:
            node, scope = waiting.pop()
            waiting.extend(reversed(list(self._inside(node, scope))))

    def _inside(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        """Note what `node` does to its scope; its children with the scopes they stand in."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, scope)
        elif isinstance(node, ast.Call):
            self._call(node, scope)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.loaded[node.id] = self.loaded.get(node.id, 0) + 1
        elif isinstance(node, ast.Global | ast.Nonlocal):
            scope.outside.update(node.names)
        else:
            _assign(node, scope)
        inner = self._entered(node, scope)
        for name, value in ast.iter_fields(node):
            place = scope if name in {"decorator_list", "returns", "bases", "keywords"} else inner
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    yield child, place

    def _entered(self, node: ast.AST, scope: Scope) -> Scope:
        if isinstance(node, _FUNCTIONS):
            inner = Scope(parent=scope, node=node)
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            for arg in every:
                inner.bind(arg.arg, Bound(How.PARAMETER, inner, node, name=arg.arg))
            for rest in filter(None, (node.args.vararg, node.args.kwarg)):
                inner.bind(rest.arg, Bound(How.OPAQUE, inner))
        elif isinstance(node, (ast.ClassDef, *_COMPREHENSIONS)):
            inner = Scope(parent=scope, node=node)
            self.inside[id(node)] = inner
        else:
            return scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope.bind(node.name, Bound(How.OPAQUE, scope, node))
        elif isinstance(node, ast.ClassDef):
            scope.bind(node.name, Bound(How.CLASS, inner))
            scope.classes[node.name] = inner
        return inner

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                scope.bind(alias.asname or name, Bound(How.MODULE, scope, name=name))
            return
        start = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(start)
            else:
                scope.bind(alias.asname or alias.name, Bound(How.MODULE, scope, name=f"{start}.{alias.name}"))

    def _call(self, node: ast.Call, scope: Scope) -> None:
        self.calls.append((node, scope))
        func = node.func
        if isinstance(func, ast.Name):
            self.called.setdefault(func.id, []).append((node, scope))
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            owner = func.value.id
            if owner in {"self", "cls"} or owner in scope.classes:
                self.called.setdefault(f".{func.attr}", []).append((node, scope))
            if func.attr in _GROWS and node.args:
                home = scope.home(owner) or self.module
                home.grown.setdefault(owner, []).append((node.args[-1], func.attr != "extend"))


def _assign(node: ast.AST, scope: Scope) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _bind(target, Bound(How.VALUE, scope, node.value), scope)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        _bind(node.target, Bound(How.VALUE, scope, node.value), scope)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        home = scope.home(node.target.id) or scope
        home.grown.setdefault(node.target.id, []).append((node.value, False))
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        _bind(node.target, Bound(How.EACH, scope, node.iter), scope)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _bind(node.optional_vars, Bound(How.OPAQUE, scope), scope)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        scope.bind(node.name, Bound(How.OPAQUE, scope))


def _bind(target: ast.expr, bound: Bound, scope: Scope) -> None:
    """Bind every name in a target; of an unpacked one each to its part."""
    waiting = [(target, bound.path)]
    while waiting:
        part, path = waiting.pop()
        if isinstance(part, ast.Name):
            place = scope
            while bound.how is How.VALUE and isinstance(place.node, _COMPREHENSIONS) and place.parent:
                place = place.parent  # a walrus in a comprehension binds outside of it
            place.bind(part.id, Bound(bound.how, bound.scope, bound.node, path))
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in {"self", "cls"}:
            owner = scope.own_class()
            if owner is not None:
                owner.bind(part.attr, Bound(bound.how, bound.scope, bound.node, path))
        elif isinstance(part, ast.Tuple | ast.List):
            waiting += [(inner, (*path, place)) for place, inner in enumerate(part.elts)]
        elif isinstance(part, ast.Starred):
            waiting.append((part.value, (*path, -1)))
