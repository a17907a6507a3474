"""Does a Python suite test the project at all, or itself, or its own mocks? By syntax tree."""

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from posixpath import basename

from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax import python_source
from orchestrator.syntax.python_source import dotted
from orchestrator.syntax.python_tests import FoundTest, Function, PythonSuite, nodes_of

_TESTING = frozenset({"pytest", "hypothesis", "mock", "pytest_mock", "freezegun", "faker", "time_machine"})
_REACHING = re.compile(
    r"^(subprocess|runpy|importlib|pexpect|sh|pty|socket|urllib|http|requests|httpx|ctypes|zipfile)$"
)
_OPENING = frozenset({"open", "exec", "compile", "read_text", "read_bytes", "system", "popen", "__import__"})
_OPENING_NAME = re.compile(r"exec|subprocess|Popen|spawn")
_GIVEN = frozenset(
    {"self", "cls", "request", "tmp_path", "tmp_path_factory", "tmpdir", "monkeypatch", "capsys", "capfd", "caplog"}
    | {
        "recwarn",
        "mocker",
        "pytestconfig",
        "record_property",
        "doctest_namespace",
        "subtests",
        "anyio_backend",
        "faker",
    }
)
"""Fixtures that are there without a project."""
_DOUBLES = frozenset({"Mock", "MagicMock", "AsyncMock", "create_autospec"})


def subject(suite: PythonSuite, project: Project, where: Where) -> Iterator[Finding]:
    """Major: nothing of the project is reached; a copy of it, or what a mock stands in for, is tested instead."""
    if not _reaches(suite, project):
        fix = "Import the modules of the story and call them, or start its program and look at what it does."
        yield major("suite.no_subject", "the suite uses nothing of the project", where=where, fix=fix)
        return
    yield from _copies(suite, project, where)
    modules = _module_names(suite.nodes)
    for test in suite.tests:
        yield from _doubled(test, modules, project, where)


def _reaches(suite: PythonSuite, project: Project) -> bool:
    modules, known = project.modules(), project.files is not None
    for name in _imported(suite.nodes):
        first = name.partition(".")[0]
        own = not {*name.split(".")}.isdisjoint(modules) if known else first not in sys.stdlib_module_names | _TESTING
        if own or not name or _REACHING.match(first):
            return True
    if any(map(_opens, suite.nodes)) or _unknown_fixtures(suite) or _unbound(suite.nodes):
        return True
    return known and _named_in_text(suite.nodes, project)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Modules that are imported by statement; "" for a relative import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield "" if node.level else module
            yield from () if node.level else (f"{module}.{alias.name}" for alias in node.names if module == "src")


def _opens(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
    return name in _OPENING or bool(_OPENING_NAME.search(name))


def _unknown_fixtures(suite: PythonSuite) -> bool:
    """Whether a test takes something that comes from elsewhere: the project's conftest may well bring the project."""
    here = {node.name for node in suite.nodes if isinstance(node, Function)} | _GIVEN
    text = {name for node in suite.nodes if isinstance(node, ast.Constant) for name in _words(node.value)}
    taken = {argument.arg for test in suite.tests for argument in (*test.node.args.args, *test.node.args.kwonlyargs)}
    drawn = any(isinstance(d, ast.Call) for test in suite.tests for d in test.node.decorator_list)
    return not drawn and bool(taken - here - text)


def _unbound(nodes: Iterable[ast.AST]) -> bool:
    """Whether a name is used that nothing in the file binds: where it comes from cannot be told."""
    bound, used = set(dir(builtins)) | {"__file__", "__name__"}, set[str]()
    for node in nodes:
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, Function | ast.ClassDef | ast.ExceptHandler):
            bound.add(node.name or "")
    return bool(used - bound)


def _words(value: object) -> Iterator[str]:
    """Names of parametrised arguments: `"a, b"`."""
    if isinstance(value, str) and len(value) < 200:
        yield from re.findall(r"\w+", value)


def _named_in_text(nodes: Iterable[ast.AST], project: Project) -> bool:
    names = {basename(path) for path in project.files or ()} | {n for n in project.modules() if len(n) > 2}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return any(name in text for text in texts for name in names)


def _copies(suite: PythonSuite, project: Project, where: Where) -> Iterator[Finding]:
    """Functions and classes of the suite that bear the name of one under test and do its work themselves."""
    offered = {name: path for path, text in project.sources.items() for name in _defined(path, text)}
    used = {node.id for test in suite.tests for node in nodes_of(test.node) if isinstance(node, ast.Name)}
    foreign = _bound(suite.nodes)
    for node in suite.tree.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name not in offered or node.name not in used:
            continue
        inside = {part.id for part in nodes_of(node) if isinstance(part, ast.Name)}
        if node.decorator_list or inside & foreign or any(_opens(part) for part in nodes_of(node)):
            continue
        place = where.model_copy(update={"line": node.lineno})
        message = f"`{node.name}` is written anew in the suite, so its tests say nothing about {offered[node.name]}"
        fix = f"Import `{node.name}` from {offered[node.name]} and delete the copy."
        yield major("suite.own_copy", message, where=place, fix=fix)


def _defined(path: str, text: str) -> Iterator[str]:
    tree = python_source.parse(text) if path.endswith(".py") else None
    for node in tree.body if tree else ():
        if isinstance(node, Function | ast.ClassDef) and node.name != "main":
            yield node.name


def _bound(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names that come from modules that are neither the standard library's nor a test tool's."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            for alias in node.names:
                first = (module or alias.name).partition(".")[0]
                if getattr(node, "level", 0) or first not in sys.stdlib_module_names | _TESTING:
                    found.add(alias.asname or alias.name.partition(".")[0])
    return frozenset(found)


def _doubled(test: FoundTest, modules: dict[str, str], project: Project, where: Where) -> Iterator[Finding]:
    """A call of the very thing the test has just replaced."""
    replaced = {name for node in nodes_of(test.node) for name in _replaced(node, modules)}
    replaced = {name for name in replaced if _of_project(name, project)}
    for node in nodes_of(test.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = _full(dotted(node.func), modules)
            if name in replaced:
                place = where.model_copy(update={"line": node.lineno})
                message = f"`{test.name}` replaces `{name}` and then tests the replacement"
                fix = "Call the real function; replace only what it depends on: the clock, the network, other services."
                yield major("suite.mocked", message, where=place, fix=fix)
                return


def _replaced(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(node, ast.Assign) and isinstance(value, ast.Call):
        doubled = dotted(value.func).rpartition(".")[2] in _DOUBLES
        yield from (_full(dotted(t), modules) for t in node.targets if doubled and isinstance(t, ast.Attribute))
    if not isinstance(node, ast.Call) or not node.args:
        return
    name = dotted(node.func)
    texts = [arg.value if isinstance(arg, ast.Constant) and isinstance(arg.value, str) else None for arg in node.args]
    patches = name.rpartition(".")[2] == "patch" or name.endswith("patch.setattr")
    if patches and texts[0]:
        yield texts[0]
    elif name.endswith(("patch.setattr", "patch.object")) and len(texts) > 1 and texts[1]:
        yield f"{_full(dotted(node.args[0]), modules)}.{texts[1]}"


def _module_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Local name → the module (or part of one) it stands for."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _full(name: str, modules: dict[str, str]) -> str:
    head, dot, rest = name.partition(".")
    return f"{modules.get(head, head)}{dot}{rest}"


def _of_project(name: str, project: Project) -> bool:
    first = name.partition(".")[0]
    if project.files is None:
        return first not in sys.stdlib_module_names
    return not {*name.split(".")[:-1]}.isdisjoint(project.modules()) or (
        bool(name) and first not in sys.stdlib_module_names and name.count(".") == 1
    )
