"""The project scan: which files are worth reading, and the Surface they make (pure)."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from orchestrator.contract.manifests import dependencies_of, is_manifest
from orchestrator.contract.rules import is_test_file
from orchestrator.domain.surface import FileExports, Surface
from orchestrator.syntax import javascript_source, python_source

SCAN_LIMIT = 600
"""Files read at most; manifests first, then those nearest to the root."""
MAX_SOURCE_CHARS = 400_000
"""A longer source is generated or data: it stays in the file list, its exports are not read."""

_EXPORTS: Mapping[str, Callable[[str], tuple[str, ...]]] = {
    ".py": python_source.exported_names,
    ".js": javascript_source.exported_names,
    ".mjs": javascript_source.exported_names,
    ".cjs": javascript_source.exported_names,
    ".jsx": javascript_source.exported_names,
}
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
    return is_manifest(path) or (pure.suffix.lower() in _EXPORTS and not is_test_file(path))


def scan_paths(files: Iterable[str]) -> tuple[str, ...]:
    """Those of `files` whose text `build_surface` wants: manifests and sources, sorted, at most SCAN_LIMIT.

    Vendored, built, minified, lock and test files are not among them.
    """
    worth = sorted(
        (path for path in set(files) if _worth_reading(path)),
        key=lambda path: (not is_manifest(path), path.count("/"), path),
    )
    return tuple(sorted(worth[:SCAN_LIMIT]))


def build_surface(
    commit: str, files: Sequence[str], texts: Mapping[str, str], dependencies: Iterable[str] | None = None
) -> Surface:
    """The Surface of one commit from its paths and the texts of `scan_paths(files)`. Never raises for their content.

    `dependencies` are normalised names from manifests; None takes them from the manifests in `texts`. What cannot be
    read is left out: unknown stays unknown.
    """
    read = sorted(path for path in texts if _worth_reading(path))
    entries = (FileExports(path=path, names=_exported(path, texts[path])) for path in read)
    if dependencies is None:
        dependencies = (name for path in read if is_manifest(path) for name in dependencies_of(path, texts[path]))
    return Surface(
        commit=commit,
        files=tuple(sorted(set(files))),
        exports=tuple(entry for entry in entries if entry.names),
        dependencies=tuple(sorted(set(dependencies))),
        runtime=_runtime(texts),
    )


def _exported(path: str, text: str) -> tuple[str, ...]:
    reader = _EXPORTS.get(PurePosixPath(path).suffix.lower())
    return reader(text) if reader is not None and len(text) <= MAX_SOURCE_CHARS else ()


def _runtime(texts: Mapping[str, str]) -> str:
    """Facts on the runtime from the manifests at the root, e.g. `requires-python >=3.11; node >=20`."""
    facts = _python_runtime(texts.get("pyproject.toml", "")) + _node_runtime(texts.get("package.json", ""))
    return "; ".join(facts)


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
