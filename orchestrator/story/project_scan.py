"""Which files are worth reading, the Surface and the habits that they show; a story's neighbours."""

import asyncio
import json
import threading
import tomllib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from posixpath import basename, dirname, join
from typing import Generic, NamedTuple, TypeVar

from orchestrator.code.habits import habits, test_habits
from orchestrator.code.javascript import source as javascript_source
from orchestrator.code.javascript import tree
from orchestrator.code.python import source as python_source
from orchestrator.code.python import surface
from orchestrator.code.python.surface import read_models
from orchestrator.code.sql.tables import read_tables
from orchestrator.contract.manifests import dependencies_of
from orchestrator.core.contract import Endpoint, FileExports, Surface, Table, exports_of, sharing
from orchestrator.core.paths import is_manifest, is_test_file
from orchestrator.story.context import Stage

T = TypeVar("T")

TEXTS = 4096
"""How many results a reading keeps: those of some sprints' projects at once."""


class Remembered(Generic[T]):
    """`read(text, path)`, its result kept by the hash of path and text; neither is held itself.

    Results are shared by all who ask, from any thread: read them, never change them.
    """

    def __init__(self, read: Callable[[str, str], T], size: int = TEXTS) -> None:
        self._read, self._size = read, size
        self._known: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str, path: str) -> T:
        """As `read`; raises what it raises, and forgets nothing for that."""
        key = blake2b(f"{path}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        result = self._read(text, path)
        with self._lock:
            self._known[key] = result
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return result


PYTHON = frozenset({".py"})
JAVASCRIPT = frozenset(tree.SUFFIXES)
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


_habits, _test_habits = Remembered(habits), Remembered(test_habits)


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


SCAN_LIMIT = 600
"""Files read at most; manifests first, then SQL and sources nearest to the root, some tests on top."""
MAX_DATABASES = 3
MAX_ENDPOINTS, MAX_TABLES, MAX_COLUMNS = 300, 120, 60
"""What a Surface holds at most, so that a story's record does not grow with the project."""
MAX_SOURCE_CHARS = 400_000
"""A longer source is generated or data: it stays in the file list, its exports are not read."""

_DATABASES = frozenset({".db", ".sqlite", ".sqlite3"})
_VENDORED = frozenset(
    {
        "node_modules",
        "bower_components",
        "vendor",
        "vendored",
        "_vendor",
        "third_party",
        "site-packages",
        "dist",
        "__pycache__",
        "venv",
    }
)
_GENERATED = (".min.js", ".min.mjs", ".min.cjs", ".bundle.js", "_pb2.py", "_pb2_grpc.py")


def _vendored(path: PurePosixPath) -> bool:
    return any(part in _VENDORED or part.startswith(".") for part in path.parts[:-1])


def _worth_reading(path: str) -> bool:
    pure = PurePosixPath(path)
    if _vendored(pure) or path.lower().endswith(_GENERATED):
        return False
    suffix = pure.suffix.lower()
    return is_manifest(path) or suffix in PYTHON | JAVASCRIPT or suffix == ".sql"


def _is_test_source(path: str) -> bool:
    return is_test_file(path) and not is_manifest(path)


def scan_paths(files: Iterable[str]) -> tuple[str, ...]:
    """Those of `files` whose text `build_surface` wants: manifests, SQL and sources, sorted, at most SCAN_LIMIT; and
    at most MAX_TEST_FILES test files, for their style.

    Vendored, built, minified and lock files are not among them.
    """
    worth = [path for path in set(files) if _worth_reading(path)]
    sources = sorted(
        (path for path in worth if not _is_test_source(path)),
        key=lambda path: (not is_manifest(path), not path.lower().endswith(".sql"), path.count("/"), path),
    )
    tests = sorted(
        (path for path in worth if _is_test_source(path) and not path.lower().endswith(".sql")),
        key=lambda path: (path.count("/"), path),
    )
    return tuple(sorted(sources[:SCAN_LIMIT] + tests[:MAX_TEST_FILES]))


def database_paths(files: Iterable[str]) -> tuple[str, ...]:
    """SQLite files whose schema is worth a look, nearest to the root first, at most MAX_DATABASES."""
    found = [path for path in set(files) if PurePosixPath(path).suffix.lower() in _DATABASES]
    kept = [path for path in found if not _vendored(PurePosixPath(path)) and not is_test_file(path)]
    return tuple(sorted(kept, key=lambda path: (path.count("/"), path))[:MAX_DATABASES])


def build_surface(
    commit: str,
    files: Sequence[str],
    texts: Mapping[str, str],
    dependencies: Iterable[str] | None = None,
    schemas: Mapping[str, str] | None = None,
) -> Surface:
    """The Surface of one commit from its paths and the texts of `scan_paths(files)`. Never raises for their content.

    `dependencies` are normalised names from manifests; None takes them from the manifests in `texts`. `schemas` is the
    SQL of the `database_paths`. What cannot be read is left out: unknown stays unknown.
    """
    listed = tuple(sorted(set(files)))
    wanted = sorted(path for path in texts if _worth_reading(path) and len(texts[path]) <= MAX_SOURCE_CHARS)
    read = [path for path in wanted if not _is_test_source(path)]
    exports: list[FileExports] = []
    endpoints: list[Endpoint] = []
    models: list[Table] = []
    for path in read:
        told = _told(texts[path], path)
        exports.append(told.exports)
        endpoints += told.endpoints
        models += told.models
    if dependencies is None:
        manifests = (path for path in texts if is_manifest(path) and _worth_reading(path))
        dependencies = (name for path in manifests for name in dependencies_of(path, texts[path]))
    return Surface(
        commit=commit,
        files=listed,
        exports=tuple(entry for entry in exports if entry.names),
        dependencies=tuple(sorted(set(dependencies))),
        runtime=runtime_of(texts),
        runtimes=runtimes_of(texts),
        endpoints=tuple(endpoints[:MAX_ENDPOINTS]),
        tables=tuple(_tables(read, texts, schemas or {}, models))[:MAX_TABLES],
        patterns=code_patterns(listed, {path: texts[path] for path in read}),
        test_style=test_style(listed, {path: texts[path] for path in wanted}),
    )


Files = Callable[[], Awaitable[tuple[str, ...]]]
Texts = Callable[[Sequence[str]], Awaitable[dict[str, str]]]


async def scan_tree(stage: Stage, files: Files, read: Texts) -> Surface:
    """The project as a tree holds it, as a durable step."""

    async def work() -> Surface:
        async with stage.scans:
            paths = await files()
            texts = await read(scan_paths(paths))
            schemas = await stage.workspace.schemas(stage.story_id, database_paths(paths))
            return await asyncio.to_thread(build_surface, "", paths, texts, schemas=schemas)

    return sharing(await stage.do("scan", Surface, work))


class _Told(NamedTuple):
    """What one file's text tells."""

    exports: FileExports
    endpoints: tuple[Endpoint, ...]
    models: tuple[Table, ...]


@Remembered
def _told(text: str, path: str) -> _Told:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in PYTHON:
        names = python_source.exported_names(text)
        return _Told(exports_of(path, names), surface.endpoints(text, path), read_models(text, path))
    if suffix in JAVASCRIPT:
        names = javascript_source.exported_names(text, path)
        return _Told(exports_of(path, names), javascript_source.endpoints(text, path), ())
    return _Told(exports_of(path, ()), (), ())


def _tables(
    read: Sequence[str], texts: Mapping[str, str], schemas: Mapping[str, str], models: Sequence[Table]
) -> Iterator[Table]:
    """Database files, then SQL, then models; a table told twice in the same words is told once."""
    told: set[tuple[str, tuple[str, ...]]] = set()
    sql = [(path, texts[path]) for path in read if path.lower().endswith(".sql")]
    databases = [table for path in sorted(schemas) for table in read_tables([(path, schemas[path])])]
    for table in (*databases, *read_tables(sql), *models):
        more = len(table.columns) - MAX_COLUMNS
        columns = (*table.columns[:MAX_COLUMNS], f"… and {more} more") if more > 0 else table.columns
        if (table.name.lower(), columns) not in told:
            told.add((table.name.lower(), columns))
            yield table.model_copy(update={"columns": columns})


def runtime_of(texts: Mapping[str, str], folder: str = "") -> str:
    """Facts on the runtime from the manifests of one folder, e.g. `requires-python >=3.11; node >=20`."""
    python, node = (texts.get(join(folder, name), "") for name in ("pyproject.toml", "package.json"))
    return "; ".join(_python_runtime(python) + _node_runtime(node))


def runtimes_of(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns folder → facts on the runtime, of the folders below the root whose manifests say something."""
    folders = sorted({dirname(path) for path in texts if basename(path) in {"pyproject.toml", "package.json"}})
    return {folder: told for folder in folders if folder and (told := runtime_of(texts, folder))}


def _python_runtime(text: str) -> list[str]:
    try:
        project = tomllib.loads(text).get("project")
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    wanted = project.get("requires-python") if isinstance(project, dict) else None
    return [f"requires-python {_short(wanted)}"] if isinstance(wanted, str) and wanted.strip() else []


def _node_runtime(text: str) -> list[str]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(package, dict):
        return []
    engines = package.get("engines")
    facts = []
    if isinstance(engines, dict) and isinstance(node := engines.get("node"), str) and node.strip():
        facts.append(f"node {_short(node)}")
    if isinstance(kind := package.get("type"), str) and kind in {"module", "commonjs"}:
        facts.append(f"package type {kind}")
    return facts


def _short(text: str) -> str:
    return " ".join(text.split())[:80]


MAX_STORIES = 40
"""More would make every story's input grow with the sprint."""


class Neighbours:
    """The stories nearest to each story of a sprint. Built once; an answer costs the same however long the sprint is,
    but for the stories that depend on the one asked for."""

    def __init__(self, order: Sequence[str], needs: Mapping[str, Sequence[str]]) -> None:
        """`order` is the backlog's, `needs` names for each story those it waits for."""
        self._order, self._needs = tuple(order), needs
        self._place = {story: number for number, story in enumerate(self._order)}
        self._heirs: defaultdict[str, list[str]] = defaultdict(list)
        for story in self._order:
            for need in needs.get(story, ()):
                self._heirs[need].append(story)

    def of(self, story: str, limit: int = MAX_STORIES) -> tuple[str, ...]:
        """At most `limit` others: what `story` depends on, what depends on it (nearest first), then its neighbours in
        the backlog, nearest first."""
        chosen: dict[str, None] = {}
        for other in self._ranked(story):
            if len(chosen) >= limit:
                break
            if other != story and other in self._place:
                chosen[other] = None
        return tuple(chosen)

    def _ranked(self, story: str) -> Iterator[str]:
        here = self._place[story]
        yield from self._needs.get(story, ())
        yield from sorted(self._heirs[story], key=lambda heir: (abs(self._place[heir] - here), self._place[heir]))
        for distance in range(1, len(self._order)):
            for place in (here - distance, here + distance):
                if 0 <= place < len(self._order):
                    yield self._order[place]
