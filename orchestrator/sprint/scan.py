"""The project scan: which files are worth reading, and the Surface they make (pure)."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import basename, dirname, join
from typing import NamedTuple

from orchestrator.contract.manifests import dependencies_of, is_manifest
from orchestrator.contract.rules import is_test_file
from orchestrator.domain.surface import Endpoint, FileExports, Surface, Table, exports_of
from orchestrator.sprint.patterns import JAVASCRIPT, MAX_TEST_FILES, PYTHON, code_patterns, test_style
from orchestrator.sprint.remembered import Remembered
from orchestrator.syntax import javascript_endpoints, javascript_source, python_endpoints, python_source
from orchestrator.syntax.python_tables import read_models
from orchestrator.syntax.sql_tables import read_tables

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
        return _Told(exports_of(path, names), python_endpoints.endpoints(text, path), read_models(text, path))
    if suffix in JAVASCRIPT:
        names = javascript_source.exported_names(text, path)
        return _Told(exports_of(path, names), javascript_endpoints.endpoints(text, path), ())
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
