"""Modules that a JavaScript or TypeScript text names, by whatever door, and what it loads that cannot be known."""

import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_parts import arguments, callee
from orchestrator.syntax.javascript_require import REQUIRERS, hands_on, leaves, requirers
from orchestrator.syntax.javascript_scope import Path, Scope, Text
from orchestrator.syntax.javascript_tree import below, name_text, node_text, root, short_text, string_value
from orchestrator.syntax.python_source import Import

_SURE, _KNOWN, _FILE, _CODE = "sure", "known", "file", "code"
"""What a call does with its argument: load it as a module; load it where it can be known; load it by its address; run
it as a program."""
_MOCKS = frozenset(
    {"mock", "doMock", "unmock", "dontMock", "setMock", "requireActual", "requireMock", "importActual", "importMock"}
    | {"createMockFromModule", "genMockFromModule", "unstable_mockModule", "module"}
)
_MOCKERS = frozenset({"jest", "vi", "vitest", "mock"})
_RUN_CODE = frozenset(
    {"runInThisContext", "runInNewContext", "runInContext", "compileFunction", "Script", "SourceTextModule"}
)
_DECODED = re.compile(r"\b(require|import|atob|Buffer|fromCharCode|decodeURI\w*|unescape|inflate\w*|gunzip\w*)\b")
"""Words of an expression that make a program out of what does not look like one, or one that loads modules."""
_LOCAL = re.compile(r"^(\.{1,2}(/|$)|/|[@~]/|#)")
_PACKAGE = re.compile(r"^(?:@[^/@\s]+/)?[^/@\s.][^/@\s]*(?=/)|^\w+:.*")
_PRAGMA = re.compile(
    r"""///\s*<reference\s+(?:types|path)\s*=\s*["'](?P<types>[^"']+)|@jsxImportSource\s+(?P<jsx>[^\s*]+)"""
)
_SHIFTED = {"call": 1, "apply": 1, "bind": 1}
_MAX_NESTING = 3
_CAP, _MOST = 120, 20_000


class Loaded(Import):
    """One module that a text loads, as written; a file is told by its path from the text's folder."""

    unknown: bool = False
    """What is loaded cannot be known: `module` then holds the expression."""
    partly: bool = False
    """Beside what is not known there are things that it can be, each of which is told by itself."""
    file: bool = False
    """An address that a worker is started from, which names a file where it names no scheme."""


def loaded(text: str, path: str = "", nesting: int = 0) -> Iterator[Loaded]:
    """Every module that `text` loads, in order of the text; one may come several times. Never raises."""
    yield from _Reader(text, path, nesting).read()


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, path: str, nesting: int) -> None:
        self._nesting = nesting
        self._data = text.encode("utf-8", "replace")
        self._nodes = list(below(root(text, path)))
        self._scope = Scope(self._nodes)
        self._requires = requirers(self._scope)

    def read(self) -> Iterator[Loaded]:
        for node in self._nodes:
            kind = node.type
            if kind in {"import_statement", "export_statement", "import_require_clause"}:
                yield from self._stated(node)
            elif kind in {"call_expression", "new_expression"}:
                yield from self._called(node)
            elif kind == "comment":
                yield from self._commented(node)
            if hands_on(node, self._scope, self._requires):
                shown = node.parent or node
                yield self._not_known(node, shown.parent if shown.type == "arguments" else shown)

    def _stated(self, node: Node) -> Iterator[Loaded]:
        module = string_value(node.child_by_field_name("source"))
        if module:
            types = any(child.type == "type" for child in node.children) or _only_types(node)
            yield self._found(module, node, types=types)

    def _commented(self, node: Node) -> Iterator[Loaded]:
        for match in _PRAGMA.finditer(node_text(node)):
            yield self._found(match["types"] or match["jsx"], node, types=bool(match["types"]))

    def _called(self, node: Node) -> Iterator[Loaded]:
        called, given = callee(node), arguments(node)
        if short_text(called) == "Reflect.apply" and len(given) == 3:
            called, given = given[0], given[2].named_children if given[2].type == "array" else []
        for path in self._callable(called):
            path, left = _behind_shift(self._spelled(path), given)
            does = _what(path, new=node.type == "new_expression")
            if does and left is None:
                yield self._not_known(node)
            elif does == _CODE and left:
                yield from self._run(left, node, path)
            elif does and left:
                several = left if path[-1] == "importScripts" else left[:1]
                yield from (one for argument in several for one in self._named(argument, node, does))
        if called is not None and called.type in {"identifier", "member_expression"} and len(given) >= 2:
            yield from self._asynchronous(short_text(called), given, node)

    def _callable(self, called: Node | None) -> Iterator[Path]:
        """What is called; `require` is among it however many brackets and choices are around it."""
        paths = self._scope.paths(called)
        yield from paths
        if ("require",) not in paths and any(name_text(leaf) in self._requires for leaf in leaves(called)):
            yield ("require",)

    def _spelled(self, path: Path) -> Path:
        """`require` for a name that is it in a way that paths are too short for."""
        path = path[1:] if path[0] == "?" and path[1:2] and path[1] in self._requires else path
        return ("require", *path[1:]) if path[0] in self._requires else path

    def _asynchronous(self, called: str, given: Sequence[Node], node: Node) -> Iterator[Loaded]:
        """`define(["a"], …)` of AMD."""
        for listed in given[:2] if called == "define" else ():
            for item in listed.named_children if listed.type == "array" else ():
                if string_value(item) not in {"require", "exports", "module"}:
                    yield from self._named(item, node, _KNOWN)

    def _named(self, argument: Node, call: Node, does: str) -> Iterator[Loaded]:
        if argument.type == "array":  # require(["a", "b"], callback)
            yield from (one for item in argument.named_children for one in self._named(item, call, does))
            return
        texts = self._scope.texts(argument)
        for text in texts:
            module = _certain(text)
            if module:
                yield self._found(module, call, types=_in_type(call), file=does == _FILE)
            elif does == _SURE and not text.whole:
                partly = any(_certain(other) for other in texts)
                yield self._not_known(call).model_copy(update={"partly": partly})

    def _run(self, given: Sequence[Node], call: Node, path: Path) -> Iterator[Loaded]:
        """The program in the argument: read where it stands there, not known where it does not."""
        code = given[-1] if path[-1] == "Function" else given[0]
        for text in self._scope.texts(code):
            if text.whole and self._nesting < _MAX_NESTING:
                line = call.start_point.row + 1
                inside = loaded(text.value, "", self._nesting + 1)
                yield from (one.model_copy(update={"line": line}) for one in inside)
            else:
                yield from self._unread(text, code, call, path[-1])

    def _unread(self, text: Text, code: Node, call: Node, by: str) -> Iterator[Loaded]:
        """A program that is not in the text: told, less loudly where it is made by `Function`, which has no require."""
        if code.type in {"arrow_function", "function_expression"}:
            return
        decoded = _DECODED.search(self._shown(code, _MOST)) is not None or code.end_byte - code.start_byte > _MOST
        if decoded or text.whole or (by not in {"constructor", "setTimeout", "setInterval"} and not text.value):
            yield self._not_known(call).model_copy(update={"partly": by == "Function" and not decoded})

    def _found(self, module: str, node: Node, *, types: bool = False, file: bool = False) -> Loaded:
        line = node.start_point.row + 1
        return Loaded(module=module, line=line, relative=module.startswith("."), type_only=types, file=file)

    def _shown(self, node: Node, most: int) -> str:
        """The beginning of a node's text."""
        return self._data[node.start_byte : min(node.end_byte, node.start_byte + most)].decode("utf-8", "ignore")

    def _not_known(self, node: Node, shown: Node | None = None) -> Loaded:
        text = " ".join(self._shown(shown or node, 4 * _CAP).split())[:_CAP]
        return Loaded(module=text, line=node.start_point.row + 1, unknown=True)


def _only_types(node: Node) -> bool:
    """`import { type A, type B }`: nothing but types."""
    clause = next((child for child in node.named_children if child.type in {"import_clause", "export_clause"}), None)
    if clause is None:
        return False
    names = clause if clause.type == "export_clause" else next(iter(clause.named_children), clause)
    if len(clause.named_children) > 1 and clause.type == "import_clause":
        return False
    items = [one for one in names.named_children if one.type in {"import_specifier", "export_specifier"}]
    return bool(items) and all(any(part.type == "type" for part in one.children) for one in items)


def _in_type(call: Node) -> bool:
    """Whether `import("x")` stands in a type, as in `typeof import("x")`."""
    node = call.parent
    while node is not None and node.type in {"member_expression", "nested_identifier", "nested_type_identifier"}:
        node = node.parent
    kind = node.type if node is not None else ""
    return (kind != "type_assertion" and kind.startswith(("type_", "literal_type"))) or kind.endswith("_type")


def _behind_shift(path: Path, given: Sequence[Node]) -> tuple[Path, Sequence[Node] | None]:
    """`f.call(null, x)` is `f(x)`, so is `Reflect.apply(f, null, [x])`; None for arguments that are not there."""
    if len(path) > 1 and path[-1] in _SHIFTED and path[-2:] != ("fn", "call"):
        if path[-1] == "bind":
            return path[:-1], []
        rest = list(given[1:])
        if path[-1] == "apply":
            listed = rest[0] if rest else None
            return path[:-1], listed.named_children if listed is not None and listed.type == "array" else None
        return path[:-1], rest
    return path, given


def _what(path: Path, *, new: bool) -> str:
    """What a call of this does with its first argument; "" when it loads nothing."""
    last, before = path[-1], path[-2] if len(path) > 1 else ""
    sure = last in {"import", "_load", "__non_webpack_require__", "requirejs"} and before in {"", "System", "Module"}
    if sure or last == "_load" or (last == "require" and path[0] in REQUIRERS):
        return _SURE
    if path == ("import",) or (path[0] == "#module" and last == "register"):
        return _SURE
    if last in {"require", "importModule"} or (before == "require" and last in {"resolve", "context", "ensure"}):
        return _KNOWN
    if path[0] == "import.meta" and last in {"resolve", "glob", "globEager"}:
        return _KNOWN
    if before and last in _MOCKS and (before in _MOCKERS or before.lstrip("#") in {"vitest", "@jest/globals"}):
        return _KNOWN
    if last in {"Worker", "SharedWorker"} and new and (not before or before == "#worker_threads"):
        return _FILE
    if path == ("importScripts",):
        return _FILE
    return _CODE if _runs_code(path) else ""


def _runs_code(path: Path) -> bool:
    last = path[-1]
    if last in {"eval", "Function", "setTimeout", "setInterval", "execScript"} and len(path) == 1:
        return True
    if last in {"AsyncFunction", "GeneratorFunction"} or (last == "constructor" and len(path) > 1):
        return True
    return (last in _RUN_CODE and path[0] in {"#vm", "vm"}) or (last == "_compile" and len(path) > 1)


def _certain(text: Text) -> str:
    """The module that a text names for certain: whole, or with so much of its beginning that it is decided."""
    if text.whole or _LOCAL.match(text.value):
        return "" if text.value.replace(".", "").isdigit() else text.value
    match = _PACKAGE.match(text.value)
    return match[0] if match else ""


def unique(found: Iterable[Loaded]) -> tuple[Loaded, ...]:
    """Each module of each line once; one that is used as more than types there is not only types."""
    kept: dict[tuple[str, int], Loaded] = {}
    for one in found:
        key = (one.module, one.line)
        if key not in kept or (kept[key].type_only and not one.type_only):
            kept[key] = one
    return tuple(kept.values())
