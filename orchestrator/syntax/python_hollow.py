"""Python programs whose functions return nothing: signatures, decorators and declarations stay as they are."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from posixpath import basename

from orchestrator.syntax.python_source import dotted, parse
from orchestrator.syntax.python_tests import Function, nodes_of

_AT_IMPORT = frozenset(
    {"__new__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__getattr__"}
)
"""Methods that Python calls while classes are made, or modules imported."""
_MADE_BY = frozenset({"__init__", "__post_init__"})
"""Methods that run when a class is called."""
_DECLARING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def hollow_python(texts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The files in which a function became empty, and the names of what a test may speak of besides functions.

    A function that an import calls stays, with all that it calls: without it nothing could be imported.
    """
    trees = {path: tree for path, text in texts.items() if (tree := parse(text)) is not None}
    kept = _called_at_import([*trees.values()])
    done: dict[str, str] = {}
    left = {basename(path).removesuffix(".py") for path in texts if path not in trees}
    for path, tree in trees.items():
        left |= _declared(tree, basename(path).removesuffix(".py"))
        emptied = [node for node in _outermost(tree) if node.name not in kept and not _is_empty(node)]
        left |= {node.name for node in _outermost(tree) if node.name in kept - _AT_IMPORT - _MADE_BY}
        if emptied:
            done[path] = _emptied(texts[path], emptied)
    return done, left


def python_mentions(text: str) -> dict[str, frozenset[str]]:
    """By name of the test: the names and words in it, in its class, and in what of its file these name."""
    tree = parse(text)
    if tree is None:
        return {}
    definitions: dict[str, set[str]] = {}
    always = set[str]()
    for node in tree.body:
        words = _words(node)
        for name in _bound(node):
            own = words if not isinstance(node, ast.Import | ast.ImportFrom) else _imported(node, name)
            definitions.setdefault(name, set()).update(own)
        if isinstance(node, Function) and any(map(_is_automatic, node.decorator_list)):
            always |= words
    found: dict[str, frozenset[str]] = {}
    for test, around in _tests(tree):
        words = {*always, *_words(test), *(word for part in around for word in _words(part))}
        waiting = list(words)
        while waiting:
            more = definitions.get(waiting.pop(), set()) - words
            words |= more
            waiting += more
        found[test.name] = found.get(test.name, frozenset()) | words
    return found


def _is_automatic(decorator: ast.expr) -> bool:
    """`@pytest.fixture(autouse=True)`"""
    return isinstance(decorator, ast.Call) and any(one.arg == "autouse" for one in decorator.keywords)


def _tests(tree: ast.Module) -> Iterator[tuple[Function, list[ast.stmt]]]:
    """Whatever may be a test, with what stands around it in its class."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for body in bodies:
        tests = [node for node in body if isinstance(node, Function) and node.name.startswith("test")]
        around = [node for node in body if node not in tests] if body is not tree.body else []
        yield from ((test, around) for test in tests)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        yield from (
            part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        )


def _imported(node: ast.Import | ast.ImportFrom, name: str) -> set[str]:
    """The words behind one name of an import."""
    alias = next(one for one in node.names if name in {one.asname, one.name.partition(".")[0]})
    return {*(getattr(node, "module", None) or "").split("."), *alias.name.split(".")}


def _words(node: ast.AST) -> set[str]:
    """Every name in it, and every word of its strings and of the modules that it imports from."""
    found = set[str]()
    for part in nodes_of(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.arg):
            found.add(part.arg)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.update(re.findall(r"\w+", part.value))
        elif isinstance(part, ast.Import | ast.ImportFrom):
            names = [getattr(part, "module", None) or "", *(alias.name for alias in part.names)]
            found.update(word for name in names for word in name.split("."))
    return found


def _declared(tree: ast.Module, stem: str) -> set[str]:
    """What the file declares besides functions; its own name when it does something when it is imported."""
    found = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            if any(isinstance(part, ast.Assign | ast.AnnAssign) and not _is_dunder(part) for part in node.body):
                found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            # `app = Flask(__name__)` makes what has functions; `LIMIT`, `Point = namedtuple(…)` is what it says.
            made = isinstance(node.value, ast.Call)
            found.update(name for name in _bound(node) if not name.startswith("__") and (not made or name[0].isupper()))
        elif not isinstance(node, Function | ast.Import | ast.ImportFrom) and not _is_harmless(node):
            found.add(stem)
    return found


def _is_dunder(node: ast.Assign | ast.AnnAssign) -> bool:
    return all(name.startswith("__") for name in _bound(node))


def _is_harmless(node: ast.stmt) -> bool:
    """A docstring, a call like `app.include_router(…)`, a guarded import, what runs only as a program."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant | ast.Call)
    if isinstance(node, ast.If):
        return _is_of_program(node) or all(isinstance(part, _DECLARING) for part in node.body)
    return isinstance(node, ast.Try) and all(isinstance(part, _DECLARING) for part in node.body)


def _called_at_import(trees: Collection[ast.Module]) -> set[str]:
    """Names of functions and classes that are called, or decorate, while the files are imported; what they call too."""
    bodies: dict[str, list[Function]] = {}
    for node in (node for tree in trees for node in nodes_of(tree)):
        if isinstance(node, Function):
            bodies.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            made = [part for part in node.body if isinstance(part, Function) and part.name in _MADE_BY]
            bodies.setdefault(node.name, []).extend(made)
    foreign = {name for tree in trees for node in tree.body for name in _foreign(node, bodies)}
    waiting = [*_AT_IMPORT, *(name for tree in trees for name in _calls(tree, foreign))]
    found = set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or name not in bodies:
            continue
        found.add(name)
        for body in bodies[name]:
            found.add(body.name)
            waiting += [called for statement in body.body for called in _calls(statement, foreign)]
    return found


def _foreign(node: ast.stmt, bodies: Collection[str]) -> Iterator[str]:
    """Names for objects of others, such as `app = FastAPI()`: the methods that are called on them are not ours."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value)[1] not in bodies:
        yield from _bound(node)


def _calls(tree: ast.AST, foreign: Collection[str]) -> Iterator[str]:
    """Names that are called or decorate in it, outside of the functions that it only defines."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        made: list[ast.expr] = [node] if isinstance(node, ast.Call) else []
        if isinstance(node, Function | ast.ClassDef):
            made += [*node.decorator_list, *(one.value for one in getattr(node, "keywords", ()))]
        yield from (last for root, last in map(_called, made) if root not in foreign)
        if isinstance(node, Function):
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif not isinstance(node, ast.Lambda) and not _is_of_program(node):
            waiting += ast.iter_child_nodes(node)


def _is_of_program(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and "__name__" in _words(node.test)


def _called(node: ast.expr) -> tuple[str, str]:
    """The first and the last name of `a`, `a(…)`, `a.b.c(…)`."""
    root, _, last = dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")
    return root.partition(".")[0], last


def _outermost(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods in no other function; of one that hands out or registers inner ones, those."""
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function):
            waiting += ast.iter_child_nodes(node)
            continue
        inner = [part for part in nodes_of(node)[1:] if isinstance(part, Function)]
        names = {part.name for part in inner}
        returned = {
            part.value.id
            for part in nodes_of(node)
            if isinstance(part, ast.Return) and isinstance(part.value, ast.Name)
        }
        if names & returned or any(part.decorator_list for part in inner):
            yield from (part for part in inner if not any(part in nodes_of(other)[1:] for other in inner))
        else:
            yield node


def _is_empty(function: Function) -> bool:
    """Nothing but a docstring, `...`, `pass` or "not implemented": a protocol, an abstract method, an overload."""
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        or (isinstance(one, ast.Raise) and bool({"NotImplementedError", "NotImplemented"} & _words(one)))
        for one in function.body
    )


def _emptied(text: str, functions: Iterable[Function]) -> str:
    content = text.removeprefix("\ufeff").encode()
    # bytes.splitlines ends lines where Python's parser does; str.splitlines knows more line ends.
    lines = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
    for node in sorted(functions, key=lambda one: one.lineno, reverse=True):
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1 else node.body
        first, last = body[0], body[-1]
        decorators = getattr(first, "decorator_list", [])
        head = decorators[0] if decorators else first
        start = lines[head.lineno - 1] + head.col_offset
        start = content.rindex(b"@", 0, start) if decorators else start
        end = lines[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0)
        content = content[:start] + (b"return; yield" if _yields(node) else b"return None") + content[end:]
    return content.decode()


def _yields(function: Function) -> bool:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False
