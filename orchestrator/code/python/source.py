"""A Python text by its syntax tree: whether it compiles for the Python that is promised, what it offers, its encoding.

Python newer than the running one is read as older ones would write it.
"""

import ast
import re
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.code import grammar
from orchestrator.code.grammar import TOO_DEEP, Node, Problem, below, parse
from orchestrator.core.value import Value

# Python 3.12: `def f[T](…)`, `class A[T]`, `type A[T] = …`.
_TYPE_PARAMETERS = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class|type)[ \t]+\w+[ \t]*(\[)", re.MULTILINE)
# `type X = …` without parameters; `type == x` is a comparison.
_ALIAS = re.compile(r"^([ \t]*)type[ \t]+(?=\w+[ \t]*=(?!=))", re.MULTILINE)
# Python 3.14: `except A, B:` without brackets.
_CAUGHT = re.compile(r"^([ \t]*except\*?[ \t]+)([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)(?=[ \t]*:)", re.MULTILINE)
# A call or import in a bound runs, and must not get lost.
_RUNS = re.compile(r"[\w)\]]\s*\(|\bimport\b")
_BRACKET = re.compile(r"[\[\](){}\"'#]")
_LONGEST = 500
"""Characters of a list of type parameters."""
_FORMATTED = re.compile(r"\b[rR]?[fFtT][rR]?[\"']")
_TEMPLATE_STRING = re.compile(rb"[rR]?[tT]")
_DEEPEST = 8
"""Strings within strings."""


def as_older(text: str) -> str:
    """Returns the text with what Python 3.12 to 3.14 brought written as 3.11 reads it, each statement in its line.

    Never raises. What runs when a module is loaded or called stays: a newer string becomes a tuple of the expressions
    in it. What cannot be written so is left as it is: the older parser refuses it then.
    """
    older = _CAUGHT.sub(r"\1(\2)", _ALIAS.sub(r"\1", _without_type_parameters(text)))
    root = parse("python", older) if _FORMATTED.search(older) else None
    if root is None or root.has_error:
        return older
    try:
        return _written(root, older.encode("utf-8", "replace"), 0).decode("utf-8", "replace")
    except RecursionError:
        return older


def _without_type_parameters(text: str) -> str:
    """Their brackets taken out; not where something is called in them, since that may be anything."""
    parts, done = [], 0
    for match in _TYPE_PARAMETERS.finditer(text):
        end = _closed(text, match.start(1))
        held = text[match.start(1) : end]
        if match.start() >= done and end and not _RUNS.search(held):
            parts += [text[done : match.start(1)], "\\\n" * held.count("\n")]
            done = end
    return "".join((*parts, text[done:]))


def _closed(text: str, at: int) -> int:
    """Just behind the bracket that closes the one `at`; 0 when none does, or a string or comment stands between."""
    depth = 0
    for match in _BRACKET.finditer(text, at, at + _LONGEST):
        if match[0] in "\"'#":  # it may hold brackets itself
            return 0
        depth += 1 if match[0] in "[({" else -1
        if depth == 0:
            return match.end()
    return 0


def _written(root: Node, source: bytes, depth: int) -> bytes:
    """The source of a node with what is newer in it replaced."""
    parts, done, waiting = [], root.start_byte, [root]
    while waiting and depth <= _DEEPEST:
        node = waiting.pop()
        written = _older(node, source, depth)
        if written is None:
            waiting.extend(reversed(node.children))
        else:
            parts += [source[done : node.start_byte], written]
            done = node.end_byte
    return b"".join((*parts, source[done : root.end_byte]))


def _older(node: Node, source: bytes, depth: int) -> bytes | None:
    """Returns a tuple of what stands in the braces of a string, on as many lines; None for any other node.

    An older parser stumbles over its own quotes, a backslash or a comment in braces: all strings with braces go.
    """
    if node.type not in {"string", "concatenated_string"}:
        return None
    pieces = [one for one in node.children if one.type == "string"] if node.type == "concatenated_string" else [node]
    values = [value for piece in pieces for inner in piece.children for value in _values(inner)]
    if not values and not any(_TEMPLATE_STRING.match(piece.text or b"") for piece in pieces):
        return None
    held = b"".join(b"(" + _written(value, source, depth + 1) + b")," for value in values)
    return b"(" + held + b"\n" * max((node.text or b"").count(b"\n") - held.count(b"\n"), 0) + b")"


def _values(inner: Node) -> Iterator[Node]:
    """What stands in braces, and in the braces of how it is to be written."""
    waiting = [inner] if inner.type == "interpolation" else []
    while waiting:
        node = waiting.pop()
        value = node.child_by_field_name("expression")
        if value is not None:
            yield value
        waiting.extend(one for one in reversed(node.children) if one.type in {"format_specifier", "format_expression"})


class Import(Value):
    """One imported module."""

    module: str
    """Dotted name; empty for `from . import x`."""
    line: int
    """1-based."""
    relative: bool = False
    level: int = 0
    """Dots before the name of a relative Python import."""
    type_only: bool = False
    """TypeScript's `import type`: nothing of it is there when the program runs."""
    optional: bool = False
    """The program runs without it (`try … except ImportError`), or asks for it in a way of its own."""
    lazy: bool = False
    """It is imported by a function, when that is called."""


# PEP 263.
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_ENCODING = re.compile(
    r"^(utf[-_]?8|(us[-_]?)?ascii|latin[-_]?1?|iso[-_]?8859|(cp|windows[-_]?)125)", re.IGNORECASE
)


def strange_encoding(text: str) -> str:
    """The encoding that a text says it has, where Python would read another program out of it than stands there."""
    for line in text.removeprefix("\ufeff").split("\n", 2)[:2]:
        if found := _COOKIE.match(line):
            return "" if _PLAIN_ENCODING.match(found[1]) else found[1]
        if line.strip() and not line.lstrip().startswith("#"):
            break
    return ""


KEPT_CHARS = 1_000_000
"""Texts whose trees are kept, in characters: a tree takes some hundred times the room of its text."""
_kept: OrderedDict[str, ast.Module | None] = OrderedDict()
_keeping = threading.Lock()


ONE_AT_A_TIME = threading.Lock()
"""Python 3.11 counts the depth of all trees under construction in one place: two threads at it break each other."""


def parse_python(text: str) -> ast.Module | None:
    """Returns the syntax tree, or None for a text that cannot be parsed. Never raises.

    A byte order mark is no part of the program; one in another encoding than UTF-8 or a relative of ASCII has no tree.
    Syntax newer than the running Python's is read as what it stands for: whether it may be used says `check_syntax`.

    The tree is shared by all callers that parse the same text soon after: read it, never change it.
    """
    with _keeping:
        if text in _kept:
            _kept.move_to_end(text)
            return _kept[text]
    tree = _parsed(text)
    with _keeping:
        _kept[text] = tree
        while len(_kept) > 1 and sum(map(len, _kept)) > KEPT_CHARS:
            _kept.popitem(last=False)
    return tree


def is_rewritten(text: str) -> bool:
    """Returns whether the tree of `parse_python` is that of newer syntax as older ones would write it.

    Its nodes have other columns than the text.
    """
    return parse_python(text) is not None and _tree(text.removeprefix("\ufeff")) is None


def _parsed(text: str) -> ast.Module | None:
    if strange_encoding(text):
        return None
    text = text.removeprefix("\ufeff")
    tree = _tree(text)
    if tree is None and (older := as_older(text)) != text:
        return _tree(older)
    return tree


def _tree(text: str) -> ast.Module | None:
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# Fields that never hold a node worth a look: names, numbers, and operators and contexts, which hold nothing themselves.
_BARE = frozenset({"ctx", "op", "ops", "id", "attr", "level", "module", "kind", "simple", "is_async", "conversion"})


class _Held(dict[type[ast.AST], tuple[str, ...]]):
    """Kind of node → those of its fields that may hold others."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        held = () if kind is ast.Constant else tuple(field for field in kind._fields if field not in _BARE)
        self[kind] = held
        return held


_HELD = _Held()


def children(node: ast.AST) -> list[ast.AST]:
    """Returns what `ast.iter_child_nodes` yields, in its order, without operators and contexts."""
    found: list[ast.AST] = []
    for field in _HELD[node.__class__]:
        value = getattr(node, field, None)
        found += [one for one in (value if isinstance(value, list) else (value,)) if isinstance(one, ast.AST)]
    return found


def walk(tree: ast.AST) -> list[ast.AST]:
    """Returns what `ast.walk` yields, in its order and in a third of the time, without operators and contexts."""
    found = [tree]
    for node in found:  # it grows meanwhile
        for field in _HELD[node.__class__]:  # not by `children`: a call for each node would take longer than the rest
            value = getattr(node, field, None)
            if isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def blocks(node: ast.AST) -> Iterator[ast.AST]:
    """Yields what stands in the blocks of a statement."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from getattr(node, block, ())


def statements(tree: ast.AST) -> list[ast.AST]:
    """Returns the node with all that stands in its blocks and in theirs: few of its nodes, and no expression."""
    found = [tree]
    for node in found:  # it grows meanwhile
        found += blocks(node)
    return found


def exported_names(text: str) -> tuple[str, ...]:
    """Names another module may import, in order of appearance; () when the text does not parse.

    `__all__` decides when it is a list of literals; else public functions, classes and assigned names. A module that
    defines nothing of its own (a package's `__init__`) offers what it imports by name.
    """
    tree = parse_python(text)
    if tree is None:
        return ()
    statements = list(top_level(tree.body))
    listed = _dunder_all(statements)
    if listed is not None:
        return _public(listed, underscores=True)
    names = _public(name for statement in statements for name in _defined(statement))
    return names or _public(name for statement in statements for name in _reexported(statement))


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a scope with those inside its `if`, `try`, `with` and loops, but not inside definitions."""
    waiting = list(reversed(list(body)))  # a stack, because a chain of elifs nests as deep as it is long
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner: list[ast.stmt] = list(getattr(statement, "body", ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            inner += part.body
        inner += [*getattr(statement, "orelse", ()), *getattr(statement, "finalbody", ())]
        waiting += reversed(inner)


def family(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """Returns the class and its ancestors among `classes` of the same file, nearest first, each once."""
    found, waiting = [], [node]
    while waiting:
        member = waiting.pop(0)
        if member not in found:
            found.append(member)
            waiting += [classes[name] for base in member.bases if (name := dotted(base)) in classes]
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of names, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _public(names: Iterable[str], *, underscores: bool = False) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if underscores or not name.startswith("_")))


def _dunder_all(statements: Iterable[ast.stmt]) -> list[str] | None:
    result: list[str] | None = None
    for statement in statements:
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        else:
            continue
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            continue
        value = statement.value
        if not isinstance(value, ast.List | ast.Tuple):
            return None
        names = [item.value for item in value.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        result = names if not isinstance(statement, ast.AugAssign) else [*(result or ()), *names]
    return result


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    elif sys.version_info >= (3, 12) and isinstance(statement, ast.TypeAlias):
        yield statement.name.id


def _reexported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.ImportFrom) and (
        statement.level or (statement.module or "").split(".")[0] not in sys.stdlib_module_names
    ):
        yield from (alias.asname or alias.name for alias in statement.names if alias.name != "*")


_OLD = {
    "print_statement": "`print` is a function: its arguments stand in brackets",
    "exec_statement": "`exec` is a function",
}
"""What the grammar still knows of Python 2."""
_STATEMENTS: dict[str, type[ast.stmt]] = {"Pattern matching": ast.Match, "Exception groups": ast.TryStar}
"""What Python says is too new → the statement it means."""
_OLDEST = (3, 7)
"""Python's own parser knows what older ones lacked, from here on."""


def problems(text: str, path: str, python: tuple[int, int] | None) -> list[Problem]:
    """At most three; [] when the text compiles for `python`, or for any known one when that is None. Never raises."""
    said = _compiled(text, path)
    running = sys.version_info[:2]
    if said and (python is None or python > running):
        older = as_older(text)
        if older != text and not _compiled(older, path):
            return []
        return said if python is None else _by_grammar(text)
    if not said and python is not None and python < running:
        return _for_older(text, max(python, _OLDEST))
    return said


def _compiled(text: str, path: str) -> list[Problem]:
    if encoding := strange_encoding(text):
        message = f"Python reads this file as {encoding[:40]}, but files are written as UTF-8"
        return [Problem(line=1, message=message, fix="Leave the line with the encoding out.")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(
                text.removeprefix("\ufeff"),
                path.replace("\0", "").encode("utf-8", "replace"),
                "exec",
                dont_inherit=True,
            )
    except SyntaxError as error:
        return [Problem(line=error.lineno or None, column=error.offset or None, message=error.msg or "unexpected text")]
    except ValueError as error:
        return [Problem(message=str(error), fix="Remove the character.")]
    except (RecursionError, MemoryError):
        return [TOO_DEEP]
    return []


def _by_grammar(text: str) -> list[Problem]:
    """For a Python newer than the running one, whose own parser refuses what is right there."""
    root = parse("python", text)
    said = grammar.problems(root, text)
    return (
        said
        or [
            Problem(line=node.start_point.row + 1, column=node.start_point.column + 1, message=_OLD[node.type])
            for node in below(root)
            if node.type in _OLD
        ][:3]
    )


_HINTS = re.compile(r":=|\bmatch\b|\bexcept\s*\*|/\s*[,)]|\bwith\s*\(|\{[^{}\n]*=\s*[!:}]|\[\s*\*|,\s*\*")
"""What Python's parser tells older ones apart by, from _OLDEST on: a text without any is not parsed a second time."""


def _for_older(text: str, python: tuple[int, int]) -> list[Problem]:
    """Returns what the promised Python would not read although the running one does."""
    if not _HINTS.search(text):
        return []
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text.removeprefix("\ufeff"), feature_version=python)
    except SyntaxError as error:
        line, column = _begins(text, error)
        promised = f"the project promises Python {python[0]}.{python[1]}"
        fix = f"Write it in the syntax of Python {python[0]}.{python[1]}."
        return [Problem(line=line, column=column, message=f"{error.msg}; {promised}", fix=fix)]
    except (RecursionError, MemoryError):  # the running Python compiled it
        return []
    return []


def _begins(text: str, error: SyntaxError) -> tuple[int | None, int | None]:
    """Returns where the statement begins that is too new: the parser tells where it ended."""
    kinds = tuple(kind for word, kind in _STATEMENTS.items() if word in error.msg)
    tree = parse_python(text) if kinds else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, kinds) and node.lineno <= (error.lineno or 0) <= (node.end_lineno or 0) + 1:
            return node.lineno, node.col_offset + 1
    return error.lineno, error.offset
