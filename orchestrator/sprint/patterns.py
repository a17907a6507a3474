"""Counted habits as sentences for a prompt: how the project's code and tests are written (pure)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from orchestrator.domain.file_kinds import is_test_file
from orchestrator.sprint.remembered import Remembered
from orchestrator.syntax import javascript_style, javascript_tree, python_style

PYTHON = frozenset({".py"})
JAVASCRIPT = frozenset(javascript_tree.SUFFIXES)
"""TypeScript included."""
MAX_TEST_FILES = 40
"""Test files whose habits are counted; those nearest to the root stand for the rest."""
MAX_STYLE_FILES = 150
"""Sources whose habits are counted, spread evenly over the project; the rest is written alike."""
_MAX_STYLE_CHARS = 50_000
_FEW = 3
"""A habit of fewer functions than this is none."""
_TOOLS = {
    "ruff.toml": "ruff",
    ".ruff.toml": "ruff",
    "mypy.ini": "mypy",
    ".flake8": "flake8",
    ".pylintrc": "pylint",
    ".pre-commit-config.yaml": "pre-commit",
    "tsconfig.json": "TypeScript",
    "biome.json": "biome",
}
_TOOL_STARTS = {
    ".eslintrc": "eslint",
    "eslint.config.": "eslint",
    ".prettierrc": "prettier",
    "prettier.config.": "prettier",
}
_TOOL_TABLES = ("ruff", "mypy", "black", "isort", "pyright")
_USED = ("dataclasses", "pydantic models", "attrs", "TypedDicts", "NamedTuples", "Protocols", "own errors")


def code_patterns(files: Iterable[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence per habit that the sources (no tests) agree on; what is undecided is left out."""
    python, script = Counter[str](), Counter[str]()
    for path in _sample([path for path in texts if _is_source(path) and len(texts[path]) <= _MAX_STYLE_CHARS]):
        (python if _is_python(path) else script).update(_habits(texts[path], path))
    return (*_layout(files), *_python(python), *_javascript(script), *_tools(files, texts.get("pyproject.toml", "")))


def test_style(files: Iterable[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Where the tests are, what they run with, and how they are written."""
    tests = [path for path in files if is_test_file(path) and PurePosixPath(path).suffix.lower() in PYTHON | JAVASCRIPT]
    python, script = Counter[str](), Counter[str]()
    for path in tests:
        if path in texts:
            (python if _is_python(path) else script).update(_test_habits(texts[path], path))
    return (*_places(tests), *_python_tests(python), *_javascript_tests(script))


test_style.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


@Remembered
def _habits(text: str, path: str) -> Counter[str]:
    return python_style.habits(text) if _is_python(path) else javascript_style.habits(text, path)


@Remembered
def _test_habits(text: str, path: str) -> Counter[str]:
    return python_style.test_habits(text) if _is_python(path) else javascript_style.test_habits(text, path)


def _is_python(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in PYTHON


def _is_source(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in PYTHON | JAVASCRIPT and not is_test_file(path)


def _sample(paths: list[str]) -> list[str]:
    step = max(1, -(-len(paths) // MAX_STYLE_FILES))
    return sorted(paths)[::step]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def _layout(files: Iterable[str]) -> Iterator[str]:
    tops = Counter(path.partition("/")[0] for path in files if "/" in path and not path.startswith("."))
    if tops:
        told = ", ".join(
            f"{name}/ ({count})" for name, count in sorted(tops.items(), key=lambda kv: (-kv[1], kv[0]))[:8]
        )
        yield f"Folders by number of files: {told}"


def _python(found: Counter[str]) -> Iterator[str]:
    functions = found["functions"]
    if functions >= _FEW:
        typed, told = _share(found["typed"], functions), _share(found["documented"], functions)
        yield f"Python: {typed} functions fully annotated, {told} with a docstring" + (
            f", {found['async']} async" if found["async"] else ""
        )
    used = [f"{word} ({found[word]})" for word in _USED if found[word]]
    if used:
        yield f"Python uses {', '.join(used)}"
    speaks = [word for word in ("structlog", "logging", "print") if found[word]]
    if speaks:
        yield f"Python output through {', '.join(speaks)}"
    if found["relative imports"]:
        yield "Python packages import their own modules relatively"
    if found["tabs"] * 2 > found["modules"]:
        yield "Python is indented with tabs"


def _javascript(found: Counter[str]) -> Iterator[str]:
    if not found["modules"]:
        return
    if found["es modules"] or found["commonjs"]:
        kind = "ES modules" if found["es modules"] >= found["commonjs"] else "CommonJS"
        yield f"JavaScript as {kind} ({_share(max(found['es modules'], found['commonjs']), found['modules'])} files)"
    style = [
        _rather(found, "semicolons", "no semicolons"),
        _rather(found, "single quotes", "double quotes"),
        "tabs" if found["tabs"] * 2 > found["modules"] else "",
    ]
    if any(style):
        yield f"JavaScript with {', '.join(word for word in style if word)}"
    if found["functions"] >= _FEW and (found["async"] or found["classes"]):
        yield f"JavaScript: {_share(found['async'], found['functions'])} functions async, {found['classes']} classes"


def _rather(found: Counter[str], one: str, other: str) -> str:
    """The habit that nine of ten places share, or ""."""
    total = found[one] + found[other]
    word = one if found[one] >= found[other] else other
    return word if total >= _FEW and found[word] * 10 >= total * 9 else ""


def _tools(files: Iterable[str], pyproject: str) -> Iterator[str]:
    names = {path for path in files if "/" not in path}
    found = {tool for name, tool in _TOOLS.items() if name in names}
    found |= {tool for start, tool in _TOOL_STARTS.items() if any(name.startswith(start) for name in names)}
    found |= {tool for tool in _TOOL_TABLES if f"[tool.{tool}" in pyproject}
    if found:
        yield f"Checked with {', '.join(sorted(found))}"


def _places(tests: list[str]) -> Iterator[str]:
    if tests:
        folders = Counter(str(PurePosixPath(path).parent) for path in tests)
        told = ", ".join(f"{'the root' if name == '.' else name + '/'} ({n})" for name, n in folders.most_common(5))
        yield f"{len(tests)} test file{'s' * (len(tests) > 1)} in {told}, such as {tests[0]}"


def _python_tests(found: Counter[str]) -> Iterator[str]:
    if found["pytest functions"] or found["test classes"]:
        kind = "classes" if found["test classes"] > found["pytest functions"] else "functions"
        yield f"Python tests are pytest {kind}"
    if found["TestCase classes"]:
        yield f"{found['TestCase classes']} unittest.TestCase classes"
    yield from _with(
        found, "Python", ("fixtures", "parametrized", "async tests", "test clients", "temporary folders", "doubles")
    )


def _javascript_tests(found: Counter[str]) -> Iterator[str]:
    runners = [word for word in ("node:test", "vitest", "jest", "mocha") if found[word]]
    if runners:
        yield f"JavaScript tests run with {', '.join(runners)}"
    yield from _with(found, "JavaScript", ("tests", "suites", "expect", "assert", "supertest"))


def _with(found: Counter[str], language: str, words: Iterable[str]) -> Iterator[str]:
    told = [f"{word} ({found[word]})" for word in words if found[word]]
    if told:
        yield f"{language} tests use {', '.join(told)}"
