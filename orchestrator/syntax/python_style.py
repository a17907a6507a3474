"""Countable habits of a Python text: what it does how often. Counts add up over files."""

import ast
from collections import Counter

from orchestrator.syntax.python_source import dotted, parse

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CALLS = {"print": "print", "logging.getLogger": "logging", "structlog.get_logger": "structlog"}
_DECORATORS = {"dataclass": "dataclasses", "dataclasses.dataclass": "dataclasses", "attr.s": "attrs", "define": "attrs"}
_BASES = {
    "BaseModel": "pydantic models",
    "TypedDict": "TypedDicts",
    "NamedTuple": "NamedTuples",
    "Protocol": "Protocols",
}


def habits(text: str) -> Counter[str]:
    """Habit → how often; empty when the text does not parse.

    `functions`, `typed`, `documented`, `async`, `modules`, `documented modules`, `tabs`, `relative imports`, `own
    errors`, and words for what is used (`dataclasses`, `pydantic models`, `logging` …).
    """
    tree = parse(text)
    if tree is None:
        return Counter()
    found = Counter({"modules": 1, "documented modules": int(ast.get_docstring(tree) is not None)})
    found["tabs"] = int("\n\t" in text)
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            found.update(_function(node))
        elif isinstance(node, ast.ClassDef):
            found.update(_class(node))
        elif isinstance(node, ast.Call) and (word := _CALLS.get(dotted(node.func))):
            found[word] += 1
        elif isinstance(node, ast.ImportFrom) and node.level:
            found["relative imports"] += 1
    return +found


def test_habits(text: str) -> Counter[str]:
    """The same for a test file: `pytest functions`, `TestCase classes`, `test classes`, `fixtures`, `parametrized`,
    `async tests`, `doubles`, `test clients`, `temporary folders`."""
    tree = parse(text)
    if tree is None:
        return Counter()
    found = Counter({"test files": 1})
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            found.update(_test_function(node))
        elif isinstance(node, ast.ClassDef):
            found["TestCase classes"] += any(dotted(base).endswith("TestCase") for base in node.bases)
            found["test classes"] += node.name.startswith("Test") and not node.bases
        elif isinstance(node, ast.Call):
            found["test clients"] += dotted(node.func).rpartition(".")[2] in {"TestClient", "test_client", "APIClient"}
            found["doubles"] += dotted(node.func).rpartition(".")[2] in {"Mock", "MagicMock", "AsyncMock", "patch"}
    return +found


test_habits.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def _function(node: _Function) -> Counter[str]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    plain = [argument for argument in arguments if argument.arg not in {"self", "cls"}]
    typed = node.returns is not None and all(argument.annotation is not None for argument in plain)
    return Counter(
        {
            "functions": 1,
            "typed": int(typed),
            "documented": int(ast.get_docstring(node) is not None),
            "async": int(isinstance(node, ast.AsyncFunctionDef)),
        }
    )


def _class(node: ast.ClassDef) -> Counter[str]:
    found: Counter[str] = Counter()
    bases = {dotted(base).rpartition(".")[2] for base in node.bases}
    for name, word in _BASES.items():
        found[word] += name in bases
    for decorator in node.decorator_list:
        used = _DECORATORS.get(dotted(decorator.func if isinstance(decorator, ast.Call) else decorator))
        if used is not None:
            found[used] += 1
    found["own errors"] += any(base.endswith(("Error", "Exception")) for base in bases)
    return found


def _test_function(node: _Function) -> Counter[str]:
    decorators = {dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    is_test = node.name.startswith("test")
    method = bool(node.args.args) and node.args.args[0].arg == "self"
    return Counter(
        {
            "pytest functions": int(is_test and not method),
            "async tests": int(is_test and isinstance(node, ast.AsyncFunctionDef)),
            "fixtures": int(any(name.endswith("fixture") for name in decorators)),
            "parametrized": int(any(name.endswith("parametrize") for name in decorators)),
            "temporary folders": int(any(argument.arg == "tmp_path" for argument in node.args.args)),
        }
    )
