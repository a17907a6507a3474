"""Every import of a Python text: statements, and calls that import what they are called with."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from orchestrator.syntax.python_holes import filled, is_whole, known_start, label, starts_with_own
from orchestrator.syntax.python_meaning import Meanings, handed_on, last, plain
from orchestrator.syntax.python_scopes import Scope
from orchestrator.syntax.python_source import Import, parse
from orchestrator.syntax.python_values import Values


class _Way(NamedTuple):
    """Which argument of a call names a module."""

    keyword: str
    place: int = 0


_IMPORTERS: Mapping[str, _Way] = {
    "__import__": _Way("name"),
    "importlib.__import__": _Way("name"),
    "importlib.import_module": _Way("name"),
    "importlib._bootstrap._gcd_import": _Way("name"),
    "importlib.resources.files": _Way("anchor"),
    "importlib.resources.read_text": _Way("anchor"),
    "importlib.resources.open_text": _Way("anchor"),
    "pkgutil.resolve_name": _Way("name"),
    "pkgutil.get_data": _Way("package"),
    "pydoc.locate": _Way("path"),
    "pydoc.safeimport": _Way("path"),
    "runpy.run_module": _Way("mod_name"),
    "pytest.importorskip": _Way("modname"),
    "django.utils.module_loading.import_string": _Way("dotted_path"),
    "werkzeug.utils.import_string": _Way("import_name"),
}
_BY_LAST = frozenset({"__import__", "import_module", "importorskip", "_gcd_import"})
"""Names that import wherever they come from."""
_FINDERS: Mapping[str, _Way] = {
    "importlib.util.find_spec": _Way("name"),
    "importlib.find_loader": _Way("name"),
    "pkgutil.get_loader": _Way("module_or_name"),
    "pkgutil.find_loader": _Way("fullname"),
    "imp.find_module": _Way("name"),
}
"""They look for a module, and import the packages above it only, unless what they find is loaded."""
_LOADING = re.compile(r"\b(module_from_spec|exec_module|load_module|LazyLoader)\b")
_RUNNERS: Mapping[str, Sequence[_Way]] = {
    "exec": (_Way("source"),),
    "eval": (_Way("source"),),
    "compile": (_Way("source"),),
    "timeit.timeit": (_Way("stmt"), _Way("setup", 1)),
    "timeit.repeat": (_Way("stmt"), _Way("setup", 1)),
    "timeit.Timer": (_Way("stmt"), _Way("setup", 1)),
    "cProfile.run": (_Way("statement"),),
    "cProfile.runctx": (_Way("statement"),),
    "profile.run": (_Way("statement"),),
    "profile.runctx": (_Way("statement"),),
    "pdb.run": (_Way("statement"),),
}
"""What runs a text as a program."""
_ASKED = frozenset({"exec", "eval"})
"""Of these a text that nobody knows is told."""
_MODULE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")


_SHARED = frozenset({"google", "google.cloud", "azure"})
"""Packages that hold nothing themselves: what is imported from them are packages of many distributions."""


def _imported_from(node: ast.ImportFrom) -> Iterator[Import]:
    if node.level == 0 and node.module in _SHARED:
        yield from (Import(module=f"{node.module}.{alias.name}", line=node.lineno) for alias in node.names)
    else:
        yield Import(module=node.module or "", line=node.lineno, relative=node.level > 0)


@lru_cache(maxsize=32)
def imports(text: str) -> tuple[Import, ...] | None:
    """Every import anywhere, also by a call (`import_module("x")`, `exec("import x")`); None when it does not parse.

    Where a call's module cannot be known, `unchecked` of the import says how it stands there. The start of a name that
    goes on with something unknown counts where it is a whole package (`f"plugins.{name}"`); a name that starts with the
    module's own, or comes from a package that is searched, is no import from elsewhere.
    """
    tree = parse(text)
    if tree is None:
        return None
    return tuple(_Reader(tree, text).found())


class _Reader:
    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree = tree
        self._values = Values(tree)
        self._meanings = Meanings(self._values)
        self._loads = _LOADING.search(text) is not None

    def found(self) -> Iterator[Import]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                yield from (Import(module=alias.name, line=node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from _imported_from(node)
        for call, scope in self._values.survey.calls:
            yield from _once(self._call(call, scope))
            for made in handed_on(call):
                yield from _once(self._call(made, scope))

    def _call(self, call: ast.Call, scope: Scope) -> Iterator[Import]:
        args, words = call.args, call.keywords
        names = {plain(name) for name in self._meanings.of(call.func, scope)}
        for name in sorted(names):
            way = _IMPORTERS.get(name) or (_IMPORTERS.get(_last_importer(name)))
            if way is not None:
                yield from self._named(way, call, args, words, scope)
            elif name in _FINDERS:
                yield from self._sought(_FINDERS[name], call, args, words, scope)
            else:
                yield from self._run(name, call, args, words, scope)

    def _given(self, way: _Way, args: Sequence[ast.expr], words: Sequence[ast.keyword], scope: Scope) -> list[str]:
        """The texts that an argument may be; none when it is not there."""
        for word in words:
            if word.arg == way.keyword:
                return list(self._values.texts(word.value, scope))
        for word in words:
            if word.arg is None:
                return self._unpacked(word.value, way, scope)
        found: list[str] = []
        for before, arg in enumerate(args):
            if isinstance(arg, ast.Starred):
                for held in self._values.words(arg.value, scope):
                    found += held[way.place - before :] if len(args) == 1 else held[way.place - before :][:1]
                return found
            if before == way.place:
                return list(self._values.texts(arg, scope))
        return found

    def _unpacked(self, node: ast.expr, way: _Way, scope: Scope) -> list[str]:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == way.keyword:
                    return list(self._values.texts(value, scope))
        return []

    def _named(
        self, way: _Way, call: ast.Call, args: Sequence[ast.expr], words: Sequence[ast.keyword], scope: Scope
    ) -> Iterator[Import]:
        if any(word.arg == "level" and not _is_zero(word.value) for word in words):
            return
        for text in dict.fromkeys(self._given(way, args, words, scope)):
            if text.startswith("."):
                yield from self._relative(text, call, args, words, scope)
            else:
                yield from _module(text.partition(":")[0], call)

    def _relative(
        self, text: str, call: ast.Call, args: Sequence[ast.expr], words: Sequence[ast.keyword], scope: Scope
    ) -> Iterator[Import]:
        """A name with dots before it counts from the package that is handed over with it."""
        packages = self._given(_Way("package", 1), args, words, scope)
        for package in packages:
            yield from _module(f"{package}.", call)
        if not packages:
            yield Import(module=filled(text).lstrip("."), line=call.lineno, relative=True)

    def _sought(
        self, way: _Way, call: ast.Call, args: Sequence[ast.expr], words: Sequence[ast.keyword], scope: Scope
    ) -> Iterator[Import]:
        for text in self._given(way, args, words, scope):
            if self._loads or ("." in known_start(text).strip(".") and not text.startswith(".")):
                yield from (found for found in _module(text, call) if found.module)

    def _run(
        self, name: str, call: ast.Call, args: Sequence[ast.expr], words: Sequence[ast.keyword], scope: Scope
    ) -> Iterator[Import]:
        short = name if name in _RUNNERS else last(name) if last(name) in _ASKED else ""
        for way in _RUNNERS.get(short, ()):
            if args and isinstance(args[0], ast.Call) and "compile" in self._meanings.of(args[0].func, scope):
                return  # looked at as a call of its own
            for text in self._given(way, args, words, scope):
                yield from _of_program(text, call, asked=name in _ASKED)


def _once(found: Iterator[Import]) -> Iterator[Import]:
    """One call is told as unchecked once, however many things it may import."""
    told = False
    for item in found:
        if not (item.unchecked and told):
            yield item
        told = told or bool(item.unchecked)


def _last_importer(name: str) -> str:
    short = last(name)
    known = {"__import__": "__import__", "importorskip": "pytest.importorskip"}
    return known.get(short, "importlib.import_module") if short in _BY_LAST else ""


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _module(text: str, call: ast.Call) -> Iterator[Import]:
    """The import of a dotted name, as far as it is known."""
    start = known_start(text)
    if is_whole(text) or "." in start:
        name = start.rstrip(".") if is_whole(text) else start.rpartition(".")[0]
        if _MODULE.match(name):
            yield Import(module=name, line=call.lineno)
    elif not starts_with_own(text):
        yield Import(module="", line=call.lineno, unchecked=f"{label(call.func)}({filled(text)})"[:160])


_STAND_IN = "unknown_"


def _of_program(text: str, call: ast.Call, *, asked: bool) -> Iterator[Import]:
    """What a text would import when it is run."""
    known = filled(text, _STAND_IN)
    unchecked = Import(module="", line=call.lineno, unchecked=f"{label(call.func)}({filled(text)})"[:160])
    if not is_whole(text) and not known.replace(_STAND_IN, "").strip():
        if asked:
            yield unchecked
        return
    for found in imports(known) or ():
        if _STAND_IN in found.module:
            yield unchecked
        else:
            yield found.model_copy(update={"line": call.lineno})
