"""Countable habits of sources and tests: how a project writes, for the prompts that ask for more of the same."""

import ast
import re
from collections import Counter
from collections.abc import Mapping

from orchestrator.code.python.source import parse_python, statements

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Patterns = Mapping[str, re.Pattern[str]]


def _compiled(forms: Mapping[str, str]) -> _Patterns:
    return {word: re.compile(form, re.MULTILINE) for word, form in forms.items()}


# Counted by what stands at the start of a line, where strings and comments hardly stand: a habit is a majority, and
# one line that is none changes nothing.
_PYTHON = _compiled(
    {
        "dataclasses": r"^[ \t]*@(?:dataclasses\.)?dataclass\b",
        "attrs": r"^[ \t]*@(?:attr\.s|(?:attrs?\.)?define)\b",
        "pydantic models": r"^[ \t]*class \w+\([^)\n]*\bBaseModel\b",
        "TypedDicts": r"^[ \t]*class \w+\([^)\n]*\bTypedDict\b",
        "NamedTuples": r"^[ \t]*class \w+\([^)\n]*\bNamedTuple\b",
        "Protocols": r"^[ \t]*class \w+\([^)\n]*\bProtocol\b",
        "own errors": r"^[ \t]*class \w+\([^)\n]*(?:Error|Exception)\b",
        "print": r"^[ \t]*print\(",
        "logging": r"\blogging\.getLogger\(",
        "structlog": r"\bstructlog\.get_logger\(",
        "relative imports": r"^[ \t]*from \.",
    }
)
_PYTHON_TESTS = _compiled(
    {
        "pytest functions": r"^[ \t]*(?:async )?def test\w*\((?!self)",
        "async tests": r"^[ \t]*async def test",
        "fixtures": r"^[ \t]*@[\w.]*fixture\b",
        "parametrized": r"^[ \t]*@[\w.]*parametrize\b",
        "temporary folders": r"^[ \t]*(?:async )?def \w+\([^)]*\btmp_path\b",
        "TestCase classes": r"^[ \t]*class \w+\([^)\n]*TestCase\b",
        "test classes": r"^[ \t]*class Test\w*(?:\(\))?:",
        "test clients": r"\b(?:TestClient|test_client|APIClient)\(",
        "doubles": r"\b(?:Mock|MagicMock|AsyncMock|patch)\(",
    }
)
_JAVASCRIPT = _compiled(
    {
        "functions": r"\bfunction\b|=>",
        "async": r"\basync\b",
        "classes": r"^(?:export )?(?:default )?(?:abstract )?class \w",
        "semicolons": r"^[ \t]*(?:import|const|let|var|return|await)\b[^\n{(]*;[ \t]*$",
        "no semicolons": r"^[ \t]*(?:import|const|let|var|return|await)\b[^\n{(]*[\w'\"`\])][ \t]*$",
        "single quotes": r"'(?:[^'\"\\\n]|\\.)*'",
        "double quotes": r"\"(?:[^'\"\\\n]|\\.)*\"",
        "es modules": r"\A(?s:.*?)^(?:import|export)\b",
        "commonjs": r"\A(?s:.*?)(?:\brequire\(|\bmodule\.exports\b)",
    }
)
_JAVASCRIPT_TESTS = _compiled(
    {
        "tests": r"\b(?:test|it)\(",
        "suites": r"\bdescribe\(",
        "expect": r"\bexpect\(",
        "assert": r"\bassert\b[.(]",
        "node:test": r"['\"]node:test['\"]",
        "vitest": r"['\"]vitest['\"]",
        "jest": r"['\"]@jest/globals['\"]",
        "mocha": r"['\"]mocha['\"]",
        "supertest": r"['\"]supertest['\"]",
    }
)


def habits(text: str, path: str) -> Counter[str]:
    """Returns habit → how often; of Python nothing when the text does not parse."""
    if not path.lower().endswith(".py"):
        found = _counted(_JAVASCRIPT, text) + Counter({"modules": 1, "tabs": int("\n\t" in text)})
        found["commonjs"] *= not found["es modules"]
        return +found
    tree = parse_python(text)
    if tree is None:
        return Counter()
    found = _counted(_PYTHON, text) + Counter({"modules": 1, "tabs": int("\n\t" in text)})
    for node in statements(tree):
        if isinstance(node, _Function):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            untyped = [one for one in given if one.annotation is None and one.arg not in {"self", "cls"}]
            found["functions"] += 1
            found["typed"] += node.returns is not None and not untyped
            found["documented"] += ast.get_docstring(node, clean=False) is not None
            found["async"] += isinstance(node, ast.AsyncFunctionDef)
    return +found


def test_habits(text: str, path: str) -> Counter[str]:
    """Returns the same for a test file: which runner, how tests are written, and what they use."""
    patterns = _PYTHON_TESTS if path.lower().endswith(".py") else _JAVASCRIPT_TESTS
    return _counted(patterns, text) + Counter({"test files": 1})


test_habits.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def _counted(patterns: _Patterns, text: str) -> Counter[str]:
    return Counter({word: sum(1 for _ in pattern.finditer(text)) for word, pattern in patterns.items()})
