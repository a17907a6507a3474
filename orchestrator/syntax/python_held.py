"""Which expressions of a Python text a name or a collection stands for."""

import ast
from collections.abc import Iterator

from orchestrator.syntax.python_holes import label
from orchestrator.syntax.python_scopes import Bound, How, Scope, Survey

MOST = 64
"""Answers that one expression may have; with more it is a hole."""
MAX_DEPTH = 25
_MAX_STEPS = 60_000
"""Expressions looked at for one text; what comes behind is unknown."""
_SAME_ITEMS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "dict"})

Read = tuple[ast.AST | None, Scope]
"""An expression and the scope it is to be read in; None for what is unknown."""


class Held:
    """The bindings of one tree. Never raises; its work is bounded."""

    def __init__(self, tree: ast.Module) -> None:
        self.survey = Survey(tree)
        self._steps = 0
        self._level = 0

    def spent(self) -> bool:
        """Count one more expression; whether it is one too many."""
        self._steps += 1
        return self._steps > _MAX_STEPS

    def bindings(self, node: ast.AST, scope: Scope) -> tuple[Scope | None, str, tuple[Bound, ...]]:
        """The scope that a name, or an attribute of one's own object or class, is bound in, and what to."""
        name, home = "", None
        if isinstance(node, ast.Name):
            name, home = node.id, scope.home(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.attr
            owner = scope.home(node.value.id)
            of_class = owner.classes.get(node.value.id) if owner is not None else None
            home = scope.own_class() if node.value.id in {"self", "cls"} else of_class
        return (home, name, tuple(home.names.get(name, ())[:MOST])) if home is not None else (None, name, ())

    def values_of(self, node: ast.AST | None, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        """The expressions that a name stands for, through names and wrappers that keep what is inside."""
        if node is None or self._level > MAX_DEPTH or self.spent():
            return []
        self._level += 1
        try:
            found: list[tuple[ast.AST, Scope]] = []
            for inner, home in self._behind(node, scope):
                found += [(node, home)] if inner is node else self.values_of(inner, home)
                if len(found) > MOST:
                    break
            return found
        finally:
            self._level -= 1

    def _behind(self, node: ast.AST, scope: Scope) -> Iterator[Read]:
        """One step from a name, a wrapper or a place in a collection to what it stands for; else the node itself."""
        if isinstance(node, ast.Name | ast.Attribute):
            for bound in self.bindings(node, scope)[2]:
                yield from self._stood_for(bound)
        elif isinstance(node, ast.Call) and label(node.func).rsplit(".", 1)[-1] in _SAME_ITEMS and node.args:
            yield node.args[0], scope
        elif isinstance(node, ast.Subscript):
            for value, home in self.values_of(node.value, scope):
                yield from ((inner, home) for inner in _below(value, node.slice)[:MOST])
        elif isinstance(node, ast.IfExp):
            yield from ((node.body, scope), (node.orelse, scope))
        else:
            yield node, scope

    def _stood_for(self, bound: Bound) -> Iterator[Read]:
        if bound.how is How.PARAMETER:
            yield from self.handed(bound)
        elif bound.how is How.EACH or bound.path:
            yield from self.parts(bound)
        elif bound.how is How.VALUE:
            yield bound.node, bound.scope

    def handed(self, bound: Bound) -> Iterator[Read]:
        """What a parameter may be: its default, what the calls in this text hand over, and what nobody knows."""
        node, name, around = bound.node, bound.name, bound.scope.parent
        if around is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if (default := _default(node.args, name)) is not None:
            yield default, around
        called = "" if isinstance(node, ast.Lambda) else f".{node.name}" if around.is_class else node.name
        calls = self.survey.called.get(called, ())
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        place = names.index(name) - around.is_class if name in names else -1
        for call, scope in calls[:MOST]:
            words = [word.value for word in call.keywords if word.arg == name]
            yield from ((value, scope) for value in words or call.args[place : place + 1 if place >= 0 else place])
        private = called.startswith("_") or isinstance(around.node, ast.FunctionDef)
        if not (private and 0 < len(calls) <= MOST and self.survey.loaded.get(called, 0) == len(calls)):
            yield None, around

    def items(self, node: ast.AST | None, scope: Scope) -> list[Read]:
        """The expressions that the elements of a collection are; one that is None for what is unknown."""
        found: list[Read] = []
        method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        held = node.func.value if method in {"items", "keys", "values"} else node  # type: ignore[union-attr]
        for value, home in self.values_of(held, scope):
            if isinstance(value, ast.Dict):
                pairs = zip(value.keys, value.values, strict=True)
                found += [(_of_pair(method, key, inner), home) for key, inner in pairs]
            elif isinstance(value, ast.List | ast.Tuple | ast.Set):
                found += [(element, home) for element in value.elts]
            else:
                found.append((None, home))
        return found[: MOST + 1]

    def parts(self, bound: Bound) -> list[Read]:
        """The expressions that a name stands for which goes over a collection, or was unpacked."""
        found: list[Read] = [(bound.node, bound.scope)]
        path = (-1, *bound.path) if bound.how is How.EACH else bound.path
        for place in path:
            found = [
                inner
                for node, scope in found[:MOST]
                for inner in (self.items(node, scope) if place == -1 else self._part(node, scope, place))
            ]
        return found

    def _part(self, node: ast.AST | None, scope: Scope, place: int) -> list[Read]:
        found: list[Read] = []
        for value, home in self.values_of(node, scope):
            fits = isinstance(value, ast.Tuple | ast.List) and place < len(value.elts)
            found.append((value.elts[place], home) if fits else (None, home))  # type: ignore[attr-defined]
        return found or [(None, scope)]


def _of_pair(method: str, key: ast.expr | None, value: ast.expr) -> ast.AST | None:
    if method == "items":
        return ast.Tuple(elts=[key, value], ctx=ast.Load()) if key is not None else None
    return value if method == "values" else key


def lists_packages(node: ast.AST | None) -> bool:
    """Whether an expression goes over the modules of a package that is there."""
    if not isinstance(node, ast.Call) or label(node.func).rsplit(".", 1)[-1] not in {"iter_modules", "walk_packages"}:
        return False
    return bool(node.args or node.keywords)


def _below(value: ast.AST, key: ast.expr) -> list[ast.expr]:
    """What a dictionary or list holds under a key; under one that is computed all of it."""
    fixed = key.value if isinstance(key, ast.Constant) else None
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [
            held for name, held in pairs if fixed is None or not isinstance(name, ast.Constant) or name.value == fixed
        ]
    if isinstance(value, ast.List | ast.Tuple):
        at = fixed if isinstance(fixed, int) else None
        return value.elts if at is None else value.elts[at : at + 1] if at >= 0 else value.elts[at:][:1]
    return []


def _default(args: ast.arguments, name: str) -> ast.expr | None:
    plain = [*args.posonlyargs, *args.args]
    behind = dict(zip((arg.arg for arg in reversed(plain)), reversed(args.defaults), strict=False))
    words = {arg.arg: value for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value is not None}
    return behind.get(name) or words.get(name)
