"""What expressions of a Python text come to, as far as the text itself says it: texts, lists of words, dotted names.

Nothing is run. An expression has several answers where a name is bound more than once; what cannot be known is a hole.
"""

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from orchestrator.syntax.python_held import MAX_DEPTH, MOST, Held, lists_packages
from orchestrator.syntax.python_holes import hole, is_whole, label
from orchestrator.syntax.python_scopes import Bound, How, Scope

_MOST_CHARS = 20_000
_MOST_WORDS = 2_000
_SAME_TEXT = frozenset({"str", "Path", "PurePath", "PosixPath", "fspath", "which", "quote", "fsencode", "fsdecode"})
_SAME_METHODS = frozenset(
    {"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "encode", "decode", "resolve", "absolute", "as_posix"}
)
_DEFAULTED = frozenset({"get", "getenv", "setdefault", "pop"})

Words = tuple[str, ...]


class Values(Held):
    """The answers for one tree. Never raises; its work is bounded."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._depth = 0
        self._busy: set[tuple[int, str, str]] = set()
        self._known: dict[tuple[int, str, str], tuple[str, ...]] = {}

    # ---- texts

    def texts(self, node: ast.AST | None, scope: Scope) -> tuple[str, ...]:
        """What text an expression may be, holes included."""
        if isinstance(node, ast.Constant):
            return (node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value),)
        if node is None or self._depth > MAX_DEPTH or self.spent():
            return (hole(label(node)),)
        self._depth += 1
        try:
            found = tuple(dict.fromkeys(islice(self._texts(node, scope), MOST + 1)))
        finally:
            self._depth -= 1
        fits = 0 < len(found) <= MOST and sum(map(len, found)) <= _MOST_CHARS
        return found if fits else (hole(label(node)),)

    def _texts(self, node: ast.AST, scope: Scope) -> Iterable[str]:
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, scope)
        if isinstance(node, ast.FormattedValue):
            plain = node.format_spec is None and node.conversion in {-1, ord("s")}
            return self.texts(node.value, scope) if plain else (hole(label(node.value)),)
        if isinstance(node, ast.BinOp):
            return self._operation(node, scope)
        if isinstance(node, ast.Call):
            return self._called(node, scope)
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self.texts(node.value, scope)
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = (node.body, node.orelse) if isinstance(node, ast.IfExp) else node.values
            return (text for part in parts for text in self.texts(part, scope))
        if isinstance(node, ast.Name | ast.Attribute):
            return self._held(node, scope)
        if isinstance(node, ast.Subscript):
            return self._subscript(node.value, node.slice, scope)
        return (hole(label(node)),)

    def _joined(self, parts: Sequence[ast.expr], scope: Scope, between: str = "") -> Iterator[str]:
        every = [self.texts(part, scope) for part in parts]
        return (between.join(chosen) for chosen in product(*every))

    def _operation(self, node: ast.BinOp, scope: Scope) -> Iterable[str]:
        if isinstance(node.op, ast.Mod):
            right = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return self._filled(r"%(?:\(\w+\))?[sdr]|%%", node.left, right, scope)
        if not isinstance(node.op, ast.Add | ast.Div):
            return (hole("…"),)
        parts: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, type(node.op)):
            parts.append(left.right)
            left = left.left
        return self._joined([left, *reversed(parts)], scope, "/" if isinstance(node.op, ast.Div) else "")

    def _filled(self, pattern: str, text: ast.expr, values: Sequence[ast.expr], scope: Scope) -> Iterator[str]:
        """A template with its places taken by the values, in their order."""
        for template in self.texts(text, scope):
            for chosen in product(*(self.texts(value, scope) for value in values)):
                waiting = iter(chosen)
                yield re.sub(pattern, lambda match, left=waiting: next(left, hole(match[0])), template)  # type: ignore[misc]

    def _called(self, node: ast.Call, scope: Scope) -> Iterable[str]:
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if isinstance(func, ast.Attribute):
            if name == "join" and node.args:
                return self._join(node, func.value, scope)
            if name == "format":
                values = [*node.args, *(word.value for word in node.keywords)]
                return self._filled(r"\{\w*\}", func.value, values, scope)
            if name in _SAME_METHODS:
                return self._transformed(name, func.value, node, scope)
            if name == "replace" and len(node.args) > 1:
                chosen = product(*(self.texts(part, scope) for part in (func.value, *node.args[:2])))
                return (text.replace(old, new) if old else text for text, old, new in chosen)
        if name == "chr" and node.args:
            codes = (text for text in self.texts(node.args[0], scope) if re.fullmatch(r"\d{1,6}", text))
            return (chr(int(code)) for code in codes)
        if name in _SAME_TEXT and node.args:
            return self._joined(node.args, scope, "/")
        if name in _DEFAULTED:
            method = isinstance(func, ast.Attribute) and name in {"get", "pop"} and node.args
            held = self._subscript(func.value, node.args[0], scope) if method else ()  # type: ignore[attr-defined]
            return (*held, *(text for part in node.args[1:2] for text in self.texts(part, scope)), hole(label(node)))
        return (hole(label(node)),)

    def _transformed(self, name: str, node: ast.expr, call: ast.Call, scope: Scope) -> Iterator[str]:
        chars = self.texts(call.args[0], scope)[0] if call.args and name.endswith("strip") else None
        for text in self.texts(node, scope):
            if name.endswith("strip"):
                yield getattr(text, name)(chars)
            else:
                yield getattr(text, name)() if name in {"lower", "upper", "casefold"} and is_whole(text) else text

    def _join(self, node: ast.Call, between: ast.expr, scope: Scope) -> Iterator[str]:
        """`" ".join(words)`, `os.path.join(a, b)`."""
        if label(between).endswith("path"):
            yield from self._joined(node.args, scope, "/")
            return
        for glue in self.texts(between, scope):
            yield from (glue.join(words) for words in self.words(node.args[0], scope))

    def _subscript(self, held: ast.expr, key: ast.expr, scope: Scope) -> Iterator[str]:
        """What a dictionary or list of this text holds under a key."""
        place = ast.Subscript(value=held, slice=key, ctx=ast.Load())
        for value, home in self.values_of(place, scope):
            yield from self.texts(value, home)

    # ---- names

    def _held(self, node: ast.Name | ast.Attribute, scope: Scope) -> tuple[str, ...]:
        home, name, bounds = self.bindings(node, scope)
        if home is None or not bounds:
            of_packages = isinstance(node, ast.Attribute) and self._from_packages(node.value, scope)
            return (hole(f"{label(node)} in __path__" if of_packages else label(node)),)
        key = (id(home), name, "text")
        if key in self._known:
            return self._known[key]
        if key in self._busy:
            return (hole(label(node)),)
        self._busy.add(key)
        found = tuple(dict.fromkeys(text for bound in bounds for text in self._bound(bound, label(node))))
        for more, single in home.grown.get(name, ())[:MOST]:
            ends = () if single else self.texts(more, home)
            found = tuple(dict.fromkeys((*found, *(text + end for text in found[:8] for end in ends[:8]))))
        self._busy.discard(key)
        self._known[key] = found[: MOST + 1]
        return self._known[key]

    def _from_packages(self, node: ast.expr, scope: Scope) -> bool:
        return any(bound.how is How.EACH and lists_packages(bound.node) for bound in self.bindings(node, scope)[2])

    def _bound(self, bound: Bound, name: str) -> Iterator[str]:
        if _is_none(bound.node):
            return
        if bound.how is How.VALUE and not bound.path:
            yield from self.texts(bound.node, bound.scope)
        elif bound.how is How.PARAMETER:
            reads = [(node, home) for node, home in self.handed(bound) if not _is_none(node)]
            yield from (text for node, home in reads for text in (self.texts(node, home) if node else (hole(name),)))
        elif bound.how in {How.EACH, How.VALUE}:
            if lists_packages(bound.node):
                yield hole(f"{name} in __path__")
                return
            listed = self.lists(bound.node, bound.scope) if bound.how is How.EACH and not bound.path else []
            yield from (word for words in listed for word in words)
            if not listed:
                yield from (text for node, scope in self.parts(bound) for text in self.texts(node, scope))
        else:
            yield hole(name)

    # ---- lists

    def words(self, node: ast.AST | None, scope: Scope) -> list[Words]:
        """What list of words an expression may be; where nothing is known, one hole."""
        return self.lists(node, scope) or [(hole(label(node)),)]

    def lists(self, node: ast.AST | None, scope: Scope) -> list[Words]:
        """What list of words an expression may be; none where it is no list, or nobody knows."""
        if self._depth > MAX_DEPTH or self.spent():
            return []
        self._depth += 1
        try:
            found = list(islice(self._words(node, scope), MOST))
        finally:
            self._depth -= 1
        return found if sum(map(len, found)) <= _MOST_WORDS else []

    def _words(self, node: ast.AST | None, scope: Scope) -> Iterator[Words]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.lists(node.left, scope), self.lists(node.right, scope)
            pairs = product(left or self.words(node.left, scope), right or self.words(node.right, scope))
            if not left and not right:
                return
            yield from (left + right for left, right in pairs)
            return
        if isinstance(node, ast.Call) and label(node.func) == "map" and len(node.args) == 2:
            yield from self.lists(node.args[1], scope) if label(node.args[0]) in _SAME_TEXT else ()
            return
        if isinstance(node, ast.Call) and label(node.func).endswith("split"):
            yield from self._split(node, scope)
            return
        grown = self._grown(node, scope)
        if isinstance(node, ast.GeneratorExp | ast.ListComp):
            yield self.texts(node.elt, self.survey.inside.get(id(node), scope))
            return
        for value, home in self.values_of(node, scope):
            if isinstance(value, ast.List | ast.Tuple):
                yield from (words + grown for words in self._elements(value.elts, home))
            elif value is not node:
                yield from (words + grown for words in self.lists(value, home))

    def _split(self, node: ast.Call, scope: Scope) -> Iterator[Words]:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_shell = label(node.func) in {"shlex.split", "split"} and node.args
        between = self.texts(node.args[0], scope)[0] if node.args and not of_shell else None
        for text in self.texts(node.args[0] if of_shell else inner, scope):
            try:
                yield tuple(shlex.split(text) if of_shell else text.split(between or None))
            except ValueError:
                yield tuple(text.split())

    def _elements(self, elements: Sequence[ast.expr], scope: Scope) -> Iterator[Words]:
        every: list[list[Words]] = []
        for element in elements:
            if isinstance(element, ast.Starred):
                every.append(self.words(element.value, scope))
            else:
                every.append([(text,) for text in self.texts(element, scope)])
        return (tuple(word for part in chosen for word in part) for chosen in islice(product(*every), MOST))

    def _grown(self, node: ast.AST | None, scope: Scope) -> Words:
        """Words that were added to a list later."""
        home, name, _ = self.bindings(node, scope) if node is not None else (None, "", ())
        key = (id(home), name, "words")
        if home is None or name not in home.grown or key in self._busy:
            return ()
        self._busy.add(key)
        added: list[str] = []
        for more, single in home.grown[name][:MOST]:
            added += self.texts(more, home)[:1] if single else self.words(more, home)[0]
        self._busy.discard(key)
        return tuple(added)


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
