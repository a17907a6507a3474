"""Programs whose functions return nothing, and what the tests of a file speak of.

Of an emptied program signatures, decorators and declarations stay as they are, and so does a function that an import
calls, with all that it calls: without it nothing could be imported. A test that passes on what is left shows nothing,
unless it speaks of what stays.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from posixpath import basename, splitext

from orchestrator.code.grammar import Node, below, node_text
from orchestrator.code.javascript.tests import bindings, find_tests
from orchestrator.code.javascript.tree import FUNCTIONS, arguments, callee, is_typescript, root
from orchestrator.code.python.source import blocks, children, dotted, is_rewritten, parse_python, statements, walk
from orchestrator.code.python.tests import Function


def _closure(names: Iterable[str], behind: Mapping[str, Collection[str]]) -> set[str]:
    """Returns the names and all that `behind` leads to from them."""
    found = set(names)
    waiting = list(found)
    while waiting:
        more = set(behind.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return found


_AT_IMPORT = frozenset(
    {"__new__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__getattr__"}
)
"""Methods that Python calls while classes are made, or modules imported."""
_MADE_BY = frozenset({"__init__", "__post_init__"})
"""Methods that run when a class is called."""
_DECLARING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def hollow_python(texts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """Returns the files in which a function became empty, and names of what a test may speak of besides functions."""
    trees = {path: tree for path, text in texts.items() if (tree := parse_python(text)) is not None}
    kept = _called_at_import([*trees.values()])
    done: dict[str, str] = {}
    left = {_stem(path) for path in texts if path not in trees}
    for path, tree in trees.items():
        functions = [*_outermost(tree)]
        left |= _declared(tree, _stem(path))
        if is_rewritten(texts[path]):  # its places are not those of the text, so it stays whole
            left |= {_stem(path), *(node.name for node in walk(tree) if isinstance(node, Function | ast.ClassDef))}
            continue
        left |= {node.name for node in functions} & (kept - _AT_IMPORT - _MADE_BY)
        emptied = [node for node in functions if node.name not in kept and not _is_empty(node)]
        if emptied:
            done[path] = _emptied(texts[path], emptied)
    return done, left


def python_mentions(text: str) -> dict[str, frozenset[str]]:
    """Returns, by name of the test, the names and words in it, in its class, and in what of its file these name."""
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
    for body in (tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))):
        tests = [node for node in body if isinstance(node, Function) and node.name.startswith("test")]
        around = [node for node in body if node not in tests] if body is not tree.body else []
        shared = always.union(*map(_words, around))
        for test in tests:
            found[test.name] = found.get(test.name, frozenset()) | _closure(shared | _words(test), definitions)
    return found


def _stem(path: str) -> str:
    return splitext(basename(path))[0]


def _is_automatic(decorator: ast.expr) -> bool:
    """Whether it is `@pytest.fixture(autouse=True)`."""
    return isinstance(decorator, ast.Call) and any(one.arg == "autouse" for one in decorator.keywords)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        yield from (part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def _imported(node: ast.Import | ast.ImportFrom, name: str) -> set[str]:
    """Returns the words behind one name of an import."""
    alias = next(one for one in node.names if name in {one.asname, one.name.partition(".")[0]})
    return {*(getattr(node, "module", None) or "").split("."), *alias.name.split(".")}


def _words(node: ast.AST) -> set[str]:
    """Returns every name in it, and every word of its strings and of the modules that it imports from."""
    found = set[str]()
    for part in walk(node):
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
    """Returns what the file declares besides functions; its own name when it does something when it is imported."""
    found = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            fields = (part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign))
            if any(not name.startswith("__") for part in fields for name in _bound(part)):
                found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            # `app = Flask(__name__)` makes what has functions; `LIMIT`, `Point = namedtuple(…)` is what it says.
            made = isinstance(node.value, ast.Call)
            found.update(name for name in _bound(node) if not name.startswith("__") and (not made or name[0].isupper()))
        elif not isinstance(node, Function | ast.Import | ast.ImportFrom) and not _is_harmless(node):
            found.add(stem)
    return found


def _is_harmless(node: ast.stmt) -> bool:
    """Whether it is a docstring, `app.include_router(…)`, a guarded import, or what runs only as a program."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant | ast.Call)
    if isinstance(node, ast.If) and _is_of_program(node):
        return True
    return isinstance(node, ast.If | ast.Try) and all(isinstance(part, _DECLARING) for part in node.body)


def _called_at_import(trees: Collection[ast.Module]) -> set[str]:
    """Returns names of functions and classes that an import calls or decorates with, and of what these call."""
    behind: dict[str, set[str]] = {}
    makers: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in statements(tree)):
        made: list[Function] = [node] if isinstance(node, Function) else []
        if isinstance(node, ast.ClassDef):
            made = [part for part in node.body if isinstance(part, Function) and part.name in _MADE_BY]
            makers.setdefault(node.name, set()).update(part.name for part in made)
        for function in made:
            calls = {name for part in function.body for name in _calls(part)}
            behind.setdefault(getattr(node, "name", ""), set()).update(calls)
    called = _closure([*_AT_IMPORT, *(name for tree in trees for name in _calls(tree))], behind)
    return called.union(*(names for owner, names in makers.items() if owner in called))


_TOLD_APART = (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.If)
"""What `_calls` does not just look into."""


def _calls(tree: ast.AST) -> Iterator[str]:
    """Yields names that are called or decorate in it, outside of the functions that it only defines."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _TOLD_APART):  # most nodes; one look at their kind is what they cost
            waiting += children(node)
            continue
        made: list[ast.expr] = [node.func] if isinstance(node, ast.Call) else []
        if isinstance(node, Function | ast.ClassDef):
            made += [*node.decorator_list, *(one.value for one in getattr(node, "keywords", ()))]
        yield from (dotted(getattr(one, "func", one)).rpartition(".")[2] for one in made)
        if isinstance(node, Function):
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif not isinstance(node, ast.Lambda) and not _is_of_program(node):
            waiting += children(node)


def _is_of_program(node: ast.AST) -> bool:
    """Whether it is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in _words(node.test)


def _outermost(tree: ast.AST) -> Iterator[Function]:
    """Yields functions and methods in no other function; of one that hands out or registers inner ones, those."""
    waiting = [*blocks(tree)]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function):
            waiting += blocks(node)
            continue
        parts = statements(node)[1:]
        inner = [part for part in parts if isinstance(part, Function)]
        returned = {
            part.value.id for part in parts if isinstance(part, ast.Return) and isinstance(part.value, ast.Name)
        }
        if returned & {part.name for part in inner} or any(part.decorator_list for part in inner):
            yield from (
                part for part in inner if not any(part is not other and part in statements(other) for other in inner)
            )
        else:
            yield node


def _is_empty(function: Function) -> bool:
    """Whether it has nothing but a docstring, `...`, `pass` or "not implemented": a protocol, an abstract method."""
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
    generates = b"yield" in content
    for node in sorted(functions, key=lambda one: one.lineno, reverse=True):
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1 else node.body
        first, last = body[0], body[-1]
        decorators = getattr(first, "decorator_list", [])
        head = decorators[0] if decorators else first
        start = lines[head.lineno - 1] + head.col_offset
        start = content.rindex(b"@", 0, start) if decorators else start
        end = lines[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0)
        nothing = b"return; yield" if generates and _yields(node) else b"return None"
        content = content[:start] + nothing + content[end:]
    return content.decode()


def _yields(function: Function) -> bool:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += children(node)
    return False


_NAMED_FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration", "method_definition"})
_VALUES = FUNCTIONS - _NAMED_FUNCTIONS
"""Functions that stand where a value may stand."""
_HOLDS_VALUE = {
    "variable_declarator": "name", "assignment_expression": "left", "pair": "key", "public_field_definition": "name",
    "field_definition": "property", "export_statement": "",
}  # fmt: skip
"""What a function is the value of → where its name stands."""
_NAMES = frozenset(
    {"identifier", "property_identifier", "private_property_identifier", "type_identifier"}
    | {"shorthand_property_identifier", "shorthand_property_identifier_pattern"}
)
# jest, vitest, mocha and node:test.
_HOOKS = re.compile(r"^(before|setup)(Each|All)?$")
_FIELDS = frozenset({"public_field_definition", "field_definition"})
_SILENT = _NAMED_FUNCTIONS | frozenset(
    {"interface_declaration", "type_alias_declaration", "ambient_declaration", "import_statement", "export_statement"}
    | {"comment", "empty_statement", "hash_bang_line"}
)
"""Statements of a file that do nothing when it is loaded."""


def hollow_javascript(texts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """Returns the same of JavaScript and TypeScript; callbacks without a name stay as well."""
    trees = {path: tree for path, text in texts.items() if not (tree := root(text, path)).has_error}
    functions = {path: [*_outermost_nodes(tree)] for path, tree in trees.items()}
    behind: dict[str, set[str]] = {}
    classes = set[str]()
    for name, function in (pair for pairs in functions.values() for pair in pairs):
        calls = set(_called(function.child_by_field_name("body")))
        behind.setdefault(name, set()).update(calls)
        if name == "constructor" and (held := function.parent) is not None and held.parent is not None:
            owner = node_text(held.parent.child_by_field_name("name"))
            behind.setdefault(owner, set()).update(calls)
            classes.add(owner)
    kept = _closure((name for tree in trees.values() for name in _called(tree)), behind)
    kept |= {"constructor"} if kept & classes else set()
    done: dict[str, str] = {}
    left = {_stem(path) for path in texts if path not in trees}
    for path, tree in trees.items():
        emptied = [function for name, function in functions[path] if name not in kept]
        left |= _declared_nodes(tree, _stem(path)) | {name for name, _ in functions[path] if name in kept}
        if emptied:
            done[path] = _emptied_nodes(texts[path], emptied, typed=is_typescript(path))
    return done, left


def javascript_mentions(path: str, text: str) -> dict[str, frozenset[str]]:
    """Returns, by name of the test, the names and words in it, in the file's hooks, and in what of it these name."""
    tree = root(text, path)
    definitions: dict[str, set[str]] = {}
    always = set[str]()
    imported = bindings(tree)
    for one in imported:
        definitions.setdefault(one.name, set()).update({one.export, *_split(one.module)})
    known = {one.node.id for one in imported}
    for node in below(tree):
        if node.type in {"variable_declarator", *_NAMED_FUNCTIONS, "class_declaration"} and node.id not in known:
            words = _node_words(node)
            for name in _bound_names(node):
                definitions.setdefault(name, set()).update(words)
        elif node.type == "call_expression" and _HOOKS.match(node_text(callee(node))):
            always |= _node_words(node)
    found: dict[str, frozenset[str]] = {}
    for test in find_tests(tree):
        if test.name is not None and test.body is not None:
            words = _closure(always | _node_words(test.body), definitions)
            found[test.name] = found.get(test.name, frozenset()) | words
    return found


def _bound_names(node: Node) -> Iterator[str]:
    name = node.child_by_field_name("name")
    yield from (node_text(part) for part in below(name) if part.type in _NAMES) if name is not None else ()


def _node_words(node: Node) -> set[str]:
    found = set[str]()
    for part in below(node):
        if part.type in _NAMES:
            found.add(node_text(part))
        elif part.type in {"string_fragment", "template_string"}:
            found |= _split(node_text(part))
    return found


def _split(text: str) -> set[str]:
    """Returns the words, and what dots and hyphens join: `../src/price-list.js` speaks of `price-list` as well."""
    joined = re.findall(r"\w+(?:[.-]\w+)*", text)
    return {*joined, *(splitext(one)[0] for one in joined), *re.findall(r"\w+", text)}


def _outermost_nodes(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yields the name and the node of functions and methods that have a name and stand in no other function."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        name = _name(node)
        if name is not None:
            yield name, node
        elif node.type not in FUNCTIONS:
            waiting.extend(reversed(node.children))


def _name(node: Node) -> str | None:
    """Returns how a function is called, "default" for one exported without a name; None for a callback."""
    if node.type in _NAMED_FUNCTIONS:
        return node_text(node.child_by_field_name("name"))
    holder = node.parent
    if node.type not in _VALUES or holder is None or holder.type not in _HOLDS_VALUE:
        return None
    place = _HOLDS_VALUE[holder.type]
    return node_text(holder.child_by_field_name(place)).rpartition(".")[2] if place else "default"


def _declared_nodes(tree: Node, stem: str) -> set[str]:
    """Returns what the file declares besides functions; its own name when it does something when it is loaded."""
    found = set[str]()
    for statement in tree.named_children:
        node = statement
        if node.type == "export_statement":
            node = node.child_by_field_name("declaration") or node.child_by_field_name("value") or node
        if node.type in {"lexical_declaration", "variable_declaration"}:
            for one in node.named_children:
                value = one.child_by_field_name("value")
                if value is not None and _says_something(value, node_text(one.child_by_field_name("name"))):
                    found.update(_bound_names(one))
        elif node.type in {"class_declaration", "abstract_class_declaration", "class"}:
            body = node.child_by_field_name("body")
            fields = [part for part in (body.named_children if body is not None else ()) if part.type in _FIELDS]
            if any((value := one.child_by_field_name("value")) is None or value.type not in _VALUES for one in fields):
                found.add(node_text(node.child_by_field_name("name")) or stem)
        elif node.type == "enum_declaration":
            found.add(node_text(node.child_by_field_name("name")))
        elif node.type == "expression_statement":
            found |= _done_when_loaded(node.named_children[0], stem)
        elif _says_something(node, stem) if node is not statement else node.type not in _SILENT:
            found.add(stem)
    return found


def _says_something(value: Node, name: str) -> bool:
    """Whether a value could be what a test shows: `const app = express()` makes what has functions, `LIMIT` says it."""
    if value.type in _VALUES | _SILENT | {"identifier", "member_expression", "class", "await_expression"}:
        return False
    if value.type in {"call_expression", "new_expression"}:
        callbacks = any(one.type in _VALUES for one in arguments(value))
        return node_text(callee(value)) != "require" and (callbacks or name[:1].isupper())
    if value.type == "object":
        held = [one.child_by_field_name("value") for one in value.named_children if one.type == "pair"]
        return any(one is not None and one.type not in {*_VALUES, "identifier", "member_expression"} for one in held)
    return True


def _done_when_loaded(node: Node, stem: str) -> set[str]:
    if node.type == "string":  # 'use strict'
        return set()
    if node.type == "assignment_expression":
        value, target = node.child_by_field_name("right"), node.child_by_field_name("left")
        name = node_text(target).rpartition(".")[2]
        return {name, stem} if value is not None and _says_something(value, name) else set()
    if node.type == "call_expression":
        # `app.get("/", (request, response) => …)`: what the callback does stays.
        callbacks = any(one.type in _VALUES for one in arguments(node))
        return {node_text(callee(node)).partition(".")[0], stem} if callbacks else set()
    return {stem}


def _called(tree: Node | None) -> Iterator[str]:
    """Yields last names of what is called or made in it, outside of other functions."""
    waiting = [tree] if tree is not None else []
    while waiting:
        node = waiting.pop()
        if node.type in {"call_expression", "new_expression"}:
            called = callee(node)
            if called is not None and called.type in {"identifier", "member_expression"}:
                yield node_text(called).rpartition(".")[2]
        if node.type not in FUNCTIONS:
            waiting.extend(node.children)


def _emptied_nodes(text: str, functions: Iterable[Node], *, typed: bool) -> str:
    content = text.encode()
    bodies = [(body, one) for one in functions if (body := one.child_by_field_name("body")) is not None]
    for body, function in sorted(bodies, key=lambda pair: pair[0].start_byte, reverse=True):
        is_constructor = _name(function) == "constructor"
        # TypeScript allows no value in a constructor or setter.
        valued = typed and not is_constructor and not any(part.type == "set" for part in function.children)
        nothing = " return undefined as any; " if valued else ""
        if is_constructor and any(part.type == "super" for part in below(body)):
            nothing = f" super(...{'(arguments as any)' if typed else 'arguments'}); "
        content = content[: body.start_byte] + f"{{{nothing}}}".encode() + content[body.end_byte :]
    return content.decode()
