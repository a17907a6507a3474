"""SQL that stands in the strings of Python and JavaScript code: which strings are SQL, and where they stand."""

import ast
import re
from collections.abc import Iterator
from posixpath import basename, splitext
from typing import NamedTuple

from orchestrator.syntax import javascript_tree, python_source
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.sql_tokens import HOLE
from orchestrator.syntax.sql_words import words

_PLACES = words(
    """db dbs database databases schema schemas model models entity entities migration migrations migrate sql sqlite
    sqlite3 postgres pg mysql query queries repository repositories repo dao store stores storage seed seeds seeder
    seeders persistence tables datastore"""
)
"""Words of a file's or its folders' names that say: here is the database's code."""
_WORD = re.compile(r"[A-Z]?[a-z]+\d?|[A-Z]+(?![a-z])")
_PYTHON = (".py", ".pyi")
_OBJECT = (
    r"(?:TABLE|(?:UNIQUE\s+)?INDEX|(?:MATERIALIZED\s+)?VIEW|TRIGGER|VIRTUAL\s+TABLE|SCHEMA|TYPE|EXTENSION|FUNCTION"
)
_OBJECT += r"|SEQUENCE)"
_FORMS = (
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+|UNLOGGED\s+)?{_OBJECT}\s+[\w\"`\[{HOLE}]",
    rf"DROP\s+{_OBJECT}\s+(?:IF\s+EXISTS\s+)?[\w\"`\[{HOLE}.]+\s*(?:;|$|,|CASCADE|ON\b)",
    r"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+|ONLY\s+)*\S+\s+(?:ADD|DROP|RENAME|ALTER|MODIFY|CHANGE|OWNER|ENABLE|SET)\b",
    rf"(?:INSERT\s+(?:OR\s+\w+\s+|IGNORE\s+)?|REPLACE\s+)INTO\s+[\w\"`\[.{HOLE}]+\"?\s*(?:\(|VALUES\b|SELECT\b|DEFAULT\b|AS\b)",
    rf"UPDATE\s+(?:OR\s+\w+\s+|ONLY\s+)?[\w\"`\[\].{HOLE}]+(?:\s+(?:AS\s+)?\w+)?\s+SET\s+[\w\"`\[\].]+\s*=",
    rf"DELETE\s+FROM\s+[\w\"`\[\].{HOLE}]+\s*(?:;|$|WHERE\b|USING\b|AS\b|RETURNING\b|\w+\s+WHERE\b)",
    r"SELECT\b.+?\bFROM\s+[\w\"`\[({]",
    r"WITH\s+(?:RECURSIVE\s+)?[\w\"]+\s*(?:\([^()]*\)\s*)?AS\s+(?:NOT\s+|MATERIALIZED\s+)*\(",
    r"PRAGMA\s+\w+(?:\.\w+)?\s*(?:;|$|=|\()",
)
_SQL = re.compile(
    rf"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:EXPLAIN\s+)?(?P<form>{'|'.join(_FORMS)})", re.IGNORECASE | re.DOTALL
)
_HINT = re.compile(r"\b(?:CREATE|DROP|ALTER|INSERT|REPLACE|UPDATE|DELETE|SELECT|WITH|PRAGMA)\s", re.IGNORECASE)
_SIGNS = re.compile(r"[=*?();_\"`%$\d" + HOLE + r"]|\bwhere\b|,|::|:\w", re.IGNORECASE)
"""What a sentence that only begins like a statement has none of."""
_LOOK = 400
"""Characters of a string that are looked at to tell whether it is SQL."""
_EXECUTES = words(
    """execute executemany executescript exec_driver_sql exec query prepare raw text fetch fetchrow fetchval run all get
    each"""
)
"""Calls that hand SQL to a database."""
_FORMAT = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%(?:\(\w+\))?[#0 +-]*\d*[sdrif]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Piece(NamedTuple):
    """A string of SQL."""

    text: str
    """With HOLE for what the program puts in."""
    line: int
    """Where it begins, 1-based."""
    last: int
    """Where it ends."""
    executed: bool
    """Whether it is handed to a database as it is: nothing can come behind it, and it is no prose."""

    def line_of(self, offset: int) -> int:
        """The line of a place in it."""
        return min(self.last, self.line + self.text.count("\n", 0, offset))


def holds_sql(path: str) -> bool:
    """Whether the name tells of schema, models, migrations or a database, and the file is Python or JavaScript."""
    if splitext(path)[1].lower() not in (*_PYTHON, *javascript_tree.SUFFIXES):
        return False
    folders = path.split("/")[:-1]
    words = {word.lower() for part in (*folders, basename(path).split(".")[0], *basename(path).split(".")[1:-1])
             for word in _WORD.findall(part)}  # fmt: skip
    return not _PLACES.isdisjoint(words)


def sql_strings(text: str, path: str) -> list[Piece]:
    """The strings of a code file that are SQL statements, in order; [] when it does not parse. Never raises.

    A string is SQL when it has the form of a statement, not of a sentence: "Select a file from the list" is none. What
    is handed to no database is SQL in capitals only.
    """
    if not _HINT.search(text):
        return []
    if path.lower().endswith(_PYTHON):
        tree = python_source.parse(text)
        found = list(_python(tree)) if tree is not None else []
    else:
        found = list(_javascript(javascript_tree.root(text, path)))
    return sorted(
        (piece for piece in found if is_sql(piece.text, executed=piece.executed)), key=lambda piece: piece.line
    )


def is_sql(text: str, *, executed: bool = False) -> bool:
    """Whether a string is a statement by its form and signs."""
    match = _SQL.match(text[:_LOOK])
    if match is None or not (executed or match["form"][:4].isupper()):
        return False
    return bool(_SIGNS.search(text[:_LOOK])) or (match["form"][:4].isupper() and not text[:_LOOK].isupper())


def _python(tree: ast.Module) -> Iterator[Piece]:
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_database(node.func))
    # `SCHEMA`, which nothing is added to; a query in a variable may still grow.
    constants = {arg.id for call in calls for arg in call.args if isinstance(arg, ast.Name) and arg.id.isupper()}
    while waiting:
        node, whole = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        parts = _assembled(node)
        if parts is not None:
            text, inside = parts
            node_line, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 0) or 1
            yield Piece(text, node_line, last, whole)
            waiting += [(child, False) for child in inside]
            continue
        handed = set(map(id, node.args)) if isinstance(node, ast.Call) and _is_database(node.func) else set()
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in constants:
            handed = {id(node.value)}
        waiting += [(child, id(child) in handed) for child in ast.iter_child_nodes(node)]


def _is_database(function: ast.expr) -> bool:
    return (getattr(function, "attr", "") or getattr(function, "id", "")) in _EXECUTES


def _assembled(node: ast.AST) -> tuple[str, list[ast.AST]] | None:
    """The text of a string expression with holes, and the expressions in its holes; None for what is no string."""
    if isinstance(node, ast.Constant):
        return (node.value, []) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values), []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        left = _assembled(node.left)
        return (_PERCENT.sub(HOLE, left[0]), [*left[1], node.right]) if left else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _added(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        inner = _assembled(node.func.value)
        return (_FORMAT.sub(HOLE, inner[0]), [*inner[1], *node.args]) if inner else None
    return None


def _added(node: ast.BinOp) -> tuple[str, list[ast.AST]] | None:
    parts: list[ast.expr] = []
    here: ast.expr = node
    while isinstance(here, ast.BinOp) and isinstance(here.op, ast.Add):  # as deep as the sum is long: no recursion
        parts.append(here.right)
        here = here.left
    read = [(part, None if isinstance(part, ast.BinOp) else _assembled(part)) for part in (here, *reversed(parts))]
    if all(text is None for _, text in read):
        return None
    inside = [part for part, text in read if text is None]
    return "".join(text[0] if text else HOLE for _, text in read), [*inside]


def _javascript(tree: Node) -> Iterator[Piece]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.type in {"string", "template_string"} or (node.type == "binary_expression" and _is_sum(node)):
            text = _text_of(node)
            if text is not None:
                yield Piece(text, node.start_point.row + 1, node.end_point.row + 1, _is_handed(node))
                continue
        waiting.extend(node.children)


def _is_sum(node: Node) -> bool:
    return any(child.type == "+" for child in node.children)


def _text_of(node: Node) -> str | None:
    """The text of a string, a template or a sum with one in it; None for a sum of something else."""
    parts: list[Node] = []
    here = node
    while here.type == "binary_expression" and _is_sum(here):
        left, right = here.child_by_field_name("left"), here.child_by_field_name("right")
        if left is None or right is None:
            return None
        parts.append(right)
        here = left
    parts.append(here)
    read = [_literal(part) for part in reversed(parts)]
    return None if all(part is None for part in read) else "".join(HOLE if part is None else part for part in read)


def _literal(node: Node) -> str | None:
    if node.type not in {"string", "template_string"}:
        return None
    text = ""
    for child in node.named_children:
        if child.type == "template_substitution":
            text += HOLE
        elif child.type == "escape_sequence":
            text += _ESCAPE.sub(_unescaped, javascript_tree.node_text(child))
        else:
            text += javascript_tree.node_text(child)
    return text.replace("\\\n", "\n")


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": " ", "\n": " "}.get(match[1], match[1])


def _is_handed(node: Node) -> bool:
    """Whether it is a call's argument as it stands, or a tagged template."""
    parent = node.parent
    call = parent.parent if parent is not None and parent.type == "arguments" else parent
    if call is None or call.type != "call_expression":
        return False
    name = javascript_tree.node_text(call.child_by_field_name("function")).rpartition(".")[2]
    return name in {*_EXECUTES, "sql"}  # sql`…` is a tag
