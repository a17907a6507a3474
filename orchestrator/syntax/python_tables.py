"""The tables that a Python text's models declare: SQLAlchemy (also SQLModel and Flask's `db.Model`) and Django."""

import ast
import re
from collections.abc import Iterator, Mapping

from orchestrator.domain.surface import Table
from orchestrator.syntax.python_source import dotted, parse

MAX_COLUMN_CHARS = 100
_COLUMN_CALLS = frozenset({"Column", "mapped_column", "MappedColumn"})
_NO_COLUMNS = frozenset({"relationship", "Relationship", "ManyToManyField", "GenericForeignKey"})
_HINT = re.compile(r"\b(?:Column|mapped_column)\s*\(|\bMapped\[|\bmodels\.\w+\(|\bSQLModel\b")
"""A text without any of these declares no table; most texts need no tree for that."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_models(text: str, path: str) -> tuple[Table, ...]:
    """Tables in order of the text; () when it does not parse. Abstract classes and mixins give theirs to heirs only.

    A model without a table name goes by its framework's rule where that needs this text alone: Flask's `UserRole` is
    `user_role`, SQLModel's `userrole`; Django's stays the class's name, because the app's is unknown here.
    """
    if not _HINT.search(text):
        return ()
    tree = parse(text)
    if tree is None:
        return ()
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    core = _core_tables(tree, path) if "Table(" in text else ()
    found = [*(_model(node, classes, path) for node in classes.values()), *core]
    return tuple(table for table in found if table is not None)


def _model(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], path: str) -> Table | None:
    family = _family(node, classes)
    bases = {dotted(base) for member in family for base in member.bases}
    columns: dict[str, str] = {}
    for member in reversed(family):
        columns.update(_columns(member))
    name = _table_name(node, family, bases, columns)
    return Table(name=name, columns=tuple(columns.values()), file=path) if name and columns else None


def _family(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """The class and its ancestors of the same file, nearest first, each once."""
    family, waiting = [], [node]
    while waiting:
        member = waiting.pop(0)
        if member not in family:
            family.append(member)
            waiting += [classes[name] for base in member.bases if (name := dotted(base)) in classes]
    return family


def _table_name(
    node: ast.ClassDef, family: list[ast.ClassDef], bases: set[str], columns: Mapping[str, str]
) -> str | None:
    """None for a class that is no table of its own."""
    own = _constant(node, "__tablename__")
    if own:
        return own
    if any(isinstance(keyword.value, ast.Constant) and keyword.value.value for keyword in _table_keywords(node)):
        return node.name.lower()
    if _constant(node, "__abstract__") or _meta(node, "abstract"):
        return None
    if "models.Model" in bases or any(text.split(" ", 2)[1].startswith("models.") for text in columns.values()):
        return str(_meta(node, "db_table") or node.name) if _is_django(family) else None
    if any(base.endswith(".Model") for base in bases):
        return _CAMEL.sub("_", node.name).lower()
    return None


def _is_django(family: list[ast.ClassDef]) -> bool:
    """Whether something in the family says Model: a mixin of fields alone is no table."""
    return any(dotted(base).rpartition(".")[2].endswith("Model") for member in family for base in member.bases)


def _table_keywords(node: ast.ClassDef) -> list[ast.keyword]:
    return [keyword for keyword in node.keywords if keyword.arg == "table"]


def _constant(node: ast.ClassDef, name: str) -> str:
    """A class attribute that is a literal, as text; "" when it is not there, or false."""
    for part in node.body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(part, "value", None)
            if isinstance(value, ast.Constant) and value.value:
                return str(value.value)
    return ""


def _meta(node: ast.ClassDef, name: str) -> str:
    inner = next((part for part in node.body if isinstance(part, ast.ClassDef) and part.name == "Meta"), None)
    return _constant(inner, name) if inner is not None else ""


def _columns(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(attribute, text shown) of the class's own columns."""
    table = any(isinstance(keyword.value, ast.Constant) and keyword.value.value for keyword in _table_keywords(node))
    for part in node.body:
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            name, note = part.targets[0].id, None
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name, note = part.target.id, part.annotation
        else:
            continue
        text = _column(part.value, note, plain=table)
        if text:
            yield name, f"{name} {text}"[:MAX_COLUMN_CHARS]


def _column(value: ast.expr | None, note: ast.expr | None, *, plain: bool) -> str:
    """Type and constraints of an attribute, "" when it is no column. `plain`: every annotated attribute is one."""
    call = dotted(value.func) if isinstance(value, ast.Call) else ""
    last = call.rpartition(".")[2]
    if last in _NO_COLUMNS:
        return ""
    mapped = _mapped(note)
    if last in _COLUMN_CALLS and isinstance(value, ast.Call):
        return " ".join(filter(None, (mapped, _arguments(value)))) or "column"
    if call.startswith("models.") and last[:1].isupper() and isinstance(value, ast.Call):
        return " ".join(filter(None, (call, _arguments(value))))
    if mapped and value is None:
        return mapped
    if plain and note is not None:
        return " ".join(filter(None, (_text(note), _arguments(value) if isinstance(value, ast.Call) else "")))
    return ""


def _mapped(note: ast.expr | None) -> str:
    """`int` of `Mapped[int]`."""
    inside = isinstance(note, ast.Subscript) and dotted(note.value).rpartition(".")[2] == "Mapped"
    return _text(note.slice) if inside and isinstance(note, ast.Subscript) else ""


def _arguments(call: ast.Call) -> str:
    return ", ".join(_text(node) for node in (*call.args, *call.keywords))


def _text(node: ast.AST) -> str:
    """The source of an expression on one line, short: a hostile one is cut before it is written out."""
    if isinstance(node, ast.keyword):
        return f"{node.arg}={_text(node.value)}"
    if sum(1 for _, _ in zip(ast.walk(node), range(60), strict=False)) >= 60:
        return "…"
    return " ".join(ast.unparse(node).split())


def _core_tables(tree: ast.Module, path: str) -> Iterator[Table]:
    """`Table("users", metadata, Column("id", Integer), …)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] != "Table" or not node.args:
            continue
        name = node.args[0]
        columns = [
            f"{first.value} {_arguments(ast.Call(func=item.func, args=item.args[1:], keywords=item.keywords))}".strip()
            for item in node.args[1:]
            if isinstance(item, ast.Call) and dotted(item.func).rpartition(".")[2] in _COLUMN_CALLS and item.args
            if isinstance(first := item.args[0], ast.Constant) and isinstance(first.value, str)
        ]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and columns:
            yield Table(name=name.value, columns=tuple(text[:MAX_COLUMN_CHARS] for text in columns), file=path)
