"""The test functions of a Python file as pytest would collect them, and programs whose functions return nothing.

Of an emptied program signatures, decorators and declarations stay as they are.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from posixpath import basename

from orchestrator.code.python.source import dotted, family, parse_python, top_level

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BARE = frozenset(
    kind
    for family in (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
    for kind in family.__subclasses__()
)
_NAMED_TEST = re.compile(r"test|^\*$", re.IGNORECASE)
_CASE_CLASSES = frozenset({"TestCase", "IsolatedAsyncioTestCase", "SimpleTestCase", "TransactionTestCase"})


@dataclass(frozen=True)
class FoundTest:
    """One test function: its node, and the class it is collected under ("" for none)."""

    node: Function
    owner: str = ""

    @property
    def name(self) -> str:
        """The bare function name, as a report names it without parameters."""
        return self.node.name


def test_functions(text: str) -> tuple[str, ...]:
    """Bare names of the functions pytest collects, each once, in order; () when the text does not parse.

    Top-level `test*` functions, `test*` methods of `Test*` classes without a constructor and of unittest.TestCase
    subclasses, also those inherited from classes of the same file. Fixtures are none.
    """
    tree = parse_python(text)
    return tuple(dict.fromkeys(found.name for found in find_tests(tree))) if tree is not None else ()


test_functions.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def find_tests(tree: ast.Module) -> tuple[FoundTest, ...]:
    """Returns the same with nodes; a method inherited by two classes stands under both."""
    classes = {node.name: node for node in top_level(tree.body) if isinstance(node, ast.ClassDef)}
    found = [FoundTest(node) for node in _last_of_each_name(tree.body) if _is_test(node)]
    for node in classes.values():
        found += _in_class(node, classes)
    return tuple(sorted(found, key=lambda test: test.node.lineno))


def doubled_names(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    """(name, line) of tests and test classes that are hidden by a later one of the same name in the same block."""
    found: list[tuple[str, int]] = []
    bodies = [tree.body, *(node.body for node in nodes_of(tree) if isinstance(node, ast.ClassDef))]
    for body in bodies:
        named = [node for node in body if isinstance(node, Function | ast.ClassDef)]
        seen = {node.name for node in named if _overload(node)}  # a property and its setter share a name
        for node in reversed([node for node in named if node.name not in seen]):
            if node.name in seen and node.name.lower().startswith("test"):
                found.append((node.name, node.lineno))
            seen.add(node.name)
    return tuple(sorted(found, key=lambda item: item[1]))


def may_be_collected(tree: ast.Module) -> bool:
    """Whether a runner could find a test in the file, as far as its text tells: settings and bases may say more.

    A name with "test" in it is enough, wherever it is defined, assigned or imported, and so is a class with a base.
    """
    for node in nodes_of(tree):
        names: list[str] = []
        if isinstance(node, Function | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom):  # `import pytest` has "test" in its name, and a module is no test
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        if (isinstance(node, ast.ClassDef) and node.bases) or any(_NAMED_TEST.search(name) for name in names):
            return True
    return False


def _last_of_each_name(body: Iterable[ast.stmt]) -> Iterator[Function]:
    last = {node.name: node for node in top_level(body) if isinstance(node, Function)}
    yield from last.values()


def _is_test(node: Function) -> bool:
    if not node.name.startswith("test"):
        return False
    names = (dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
    return not any(name.split(".")[-1] in {"fixture", "property", "overload"} for name in names)


def _overload(node: Function | ast.ClassDef) -> bool:
    return any(dotted(decorator).endswith((".setter", ".deleter", "overload")) for decorator in node.decorator_list)


def _in_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[FoundTest]:
    members = family(node, classes)
    is_case = any(dotted(base).split(".")[-1] in _CASE_CLASSES for member in members for base in member.bases)
    methods: dict[str, Function] = {}
    for member in members:
        for method in _last_of_each_name(member.body):
            methods.setdefault(method.name, method)
    plain = node.name.startswith("Test") and not {"__init__", "__new__"} & set(methods)
    if not (is_case or plain) or _switched_off(node):
        return
    yield from (FoundTest(method, node.name) for method in methods.values() if _is_test(method))
    if plain:
        inner = {child.name: child for child in node.body if isinstance(child, ast.ClassDef)}
        for child in inner.values():
            yield from _in_class(child, classes | inner)


def _switched_off(node: ast.ClassDef) -> bool:
    return any(
        isinstance(part, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__test__" for target in part.targets)
        and isinstance(part.value, ast.Constant)
        and not part.value.value
        for part in node.body
    )


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """The node and all below it, a node before those in it; contexts and operators left out. Quicker than ast.walk."""
    found, waiting = list[ast.AST](), [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += direct(node)
    return found


def direct(node: ast.AST) -> list[ast.AST]:
    """What stands right in a node, contexts and operators left out."""
    found = list[ast.AST]()
    for value in node.__dict__.values():
        kind = type(value)
        if kind is int or kind is str or kind in _BARE or value is None:
            continue
        if kind is list:
            found += [item for item in value if isinstance(item, ast.AST) and type(item) not in _BARE]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


_AT_IMPORT = frozenset(
    {"__new__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__getattr__"}
)
"""Methods that Python calls while classes are made, or modules imported."""
_MADE_BY = frozenset({"__init__", "__post_init__"})
"""Methods that run when a class is called."""
_DECLARING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def hollow_python(texts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """Returns the files in which a function became empty, and the names of what a test may speak of besides functions.

    A function that an import calls stays, with all that it calls: without it nothing could be imported.
    """
    trees = {path: tree for path, text in texts.items() if (tree := parse_python(text)) is not None}
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
    tree = parse_python(text)
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
    """Returns the words behind one name of an import."""
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
    """Returns the first and the last name of `a`, `a(…)`, `a.b.c(…)`."""
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
