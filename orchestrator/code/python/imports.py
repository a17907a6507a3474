"""Every import of a Python text: modules, notebooks and path configuration files.

Statements count, and calls that name the module they import. Cython is the compiler's to judge.
"""

import ast
import re
from collections.abc import Iterator
from posixpath import splitext

from orchestrator.code.parsers import parse_json
from orchestrator.code.python.source import Import, blocks, children, dotted, parse_python, walk
from orchestrator.core.value import remembered

_IMPORTERS = frozenset({"__import__", "import_module", "importorskip"})
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_SHARED = frozenset({"google", "google.cloud", "azure"})
"""Packages that hold nothing themselves: what is imported from them are packages of many distributions."""


@remembered(512)  # a delivery's files are judged again with the whole story, many stories later
def imports(text: str) -> tuple[Import, ...] | None:
    """Returns every import anywhere in the text; None when it does not parse.

    A call counts where it names its module by a literal (`import_module("x")`). What is computed is not known from the
    text, and nothing is said of it.
    """
    tree = parse_python(text)
    # Expressions are most of a tree, and hold an import only where one of these is called.
    calls = not text.isascii() or any(name in text for name in _IMPORTERS)  # Python reads `ｅval` as `eval`
    return tuple(_found(tree, calls=calls)) if tree is not None else None


def _found(tree: ast.Module, *, calls: bool) -> Iterator[Import]:
    waiting: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while waiting:
        node, optional, lazy = waiting.pop()
        for item in _imported(node):
            yield item.model_copy(update={"optional": optional or item.optional, "lazy": lazy})
        guarded = _guarded(node)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inner = children(node) if calls else blocks(node)
        waiting += reversed([(child, optional or guarded, lazy) for child in inner])


def _imported(node: ast.AST) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(module=alias.name, line=node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        if node.level == 0 and node.module in _SHARED:
            yield from (Import(module=f"{node.module}.{name}", line=node.lineno) for name in names)
        else:
            yield Import(module=node.module or "", line=node.lineno, relative=node.level > 0, level=node.level)
    elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _IMPORTERS and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _is_module(name.value):
            yield Import(module=name.value, line=node.lineno, optional=True)


def _is_module(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _guarded(node: ast.AST) -> bool:
    """Whether the program runs without what is imported inside: it may be missing, or is there for types only."""
    if isinstance(node, ast.Try | ast.TryStar):
        return any(not _CAUGHT.isdisjoint(_names(handler.type)) for handler in node.handlers)
    if isinstance(node, ast.With | ast.AsyncWith):
        suppressed = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any(not _CAUGHT.isdisjoint(_names(arg)) for call in suppressed for arg in call.args)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in _names(node.test)


def _names(node: ast.AST | None) -> set[str]:
    """Returns the names in an expression; a bare `except` catches everything."""
    if node is None:
        return {"Exception"}
    inner = (part for part in walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return {part.id if isinstance(part, ast.Name) else part.attr for part in inner}


MODULES = (".py", ".pyi", ".pyw", ".pyx", ".pxd", ".pxi")
"""Suffixes of files that can be imported, once compiled where need be."""
_JUDGED = (".py", ".pyi", ".pyw", ".ipynb", ".pth")
_MAGIC = re.compile(r"^(?P<blanks>[ \t]*)(?:(?:[\w, \t]+=[ \t]*)?(?:%%?|!!?).*|.*\?[ \t]*)$", re.MULTILINE)
"""A line for the notebook, not for Python: `!pip install x`, `%pip install x`, `%%time`, `name?`."""


def is_python(path: str) -> bool:
    """Returns whether the imports of this file are judged as Python's."""
    return path.lower().endswith(_JUDGED)


def imports_of(path: str, text: str) -> tuple[Import, ...] | None:
    """Every import of a file that `is_python`; None when it cannot be read. Never raises."""
    suffix = splitext(path.lower())[1]
    if suffix == ".ipynb":
        program = _notebook(text)
        return (imports(program) or ()) if program is not None else None  # a magic may be no Python at all
    if suffix == ".pth":
        lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.startswith(("import ", "import\t"))]
        return imports("\n".join(lines))
    return imports(text)


def _notebook(text: str) -> str | None:
    """Returns a notebook's program; None when it is no notebook."""
    try:
        data = parse_json(text.removeprefix("\ufeff"))
        language = str(data.get("metadata", {}).get("kernelspec", {}).get("language") or "python")
        cells = ["".join(cell["source"]) for cell in data["cells"] if cell["cell_type"] == "code"]
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError):  # not a notebook
        return None
    program: list[str] = []
    for cell in cells:
        if re.match(r"\s*%%(?:bash|sh|script|system|sx|!)", cell):
            continue
        if parse_python(cell) is None:
            cell = _MAGIC.sub(r"\g<blanks>pass", cell.replace("\\\n", " "))
        # What is no Python without its magics (another language, a line that asks for help) must not hide the others.
        if language.lower().startswith(("python", "ipython")) and parse_python(cell) is not None:
            program.append(cell)
    return "\n".join(program)
