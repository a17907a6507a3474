"""The project as prompt text: surface, files, exports, endpoints, tables, packages."""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from orchestrator.domain.surface import Endpoint, FileExports, Surface, Table
from orchestrator.prompts.budget import BUDGET_TOKENS, ContextBlock, fence, fit

_NAMES_PER_FILE = 40
_LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "jsx",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".json": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".sql": "sql",
    ".html": "html",
    ".css": "css",
    ".sh": "sh",
}


def _shown(path: str) -> str:
    """A path on one line, whatever is in it."""
    return path if path.isprintable() else repr(path)


def _exports_line(entry: FileExports) -> str:
    names = ", ".join(entry.names[:_NAMES_PER_FILE])
    more = len(entry.names) - _NAMES_PER_FILE
    return f"{_shown(entry.path)}: {names}" + (f" and {more} more" if more > 0 else "")


def render_surface(surface: Surface, budget_tokens: int = BUDGET_TOKENS) -> str:
    """What the scan found; when the room is short, packages and habits are served first, then tables, endpoints and
    the file list, then exported names."""
    if not surface.files:
        return "The repository is empty."
    facts = [f"Runtime: {surface.runtime}"] if surface.runtime else []
    facts.append(f"Packages in the manifests: {render_names(surface.dependencies)}")
    files = "\n".join(_shown(path) for path in surface.files)
    exports = _exports_text(surface)
    tables = [table_line(table) for table in surface.tables]
    endpoints = [endpoint_line(entry) for entry in surface.endpoints]
    blocks = [
        ContextBlock(name="packages", text="\n".join(facts), weight=3),
        ContextBlock(name="code patterns", text=_listed("How the code is written", surface.patterns), weight=3),
        ContextBlock(name="test style", text=_listed("How the tests are written", surface.test_style), weight=3),
        ContextBlock(
            name="database tables",
            text=_listed("Database tables", tables),
            weight=2,
        ),
        ContextBlock(name="endpoints", text=_listed("Endpoints", endpoints), weight=2),
        ContextBlock(name="file list", text=f"Files ({len(surface.files)}):\n{files}", weight=2),
        ContextBlock(name="exported names", text=f"Exported names:\n{exports}" if exports else "", weight=1),
    ]
    return fit(blocks, budget_tokens)


def _listed(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((f"{heading}:", *(f"- {line}" for line in lines))) if lines else ""


def table_line(table: Table) -> str:
    """`name (columns) in file`, on one line."""
    return f"{_shown(table.name)} ({', '.join(_shown(text) for text in table.columns)}) in {_shown(table.file)}"


def endpoint_line(entry: Endpoint) -> str:
    """`METHOD path → target in file`, on one line."""
    target = f" → {_shown(entry.target)}" if entry.target else ""
    return f"{entry.method} {_shown(entry.path)}{target} in {_shown(entry.file)}"


def _exports_text(surface: Surface, exclude: Container[str] = ()) -> str:
    return "\n".join(_exports_line(entry) for entry in surface.exports if entry.names and entry.path not in exclude)


def render_summaries(surface: Surface, exclude: Container[str] = (), budget_tokens: int = BUDGET_TOKENS) -> str:
    """`path: names`, one file per line, without the paths in `exclude` and files that export nothing."""
    return fit([ContextBlock(name="exported names", text=_exports_text(surface, exclude))], budget_tokens)


def render_files(texts: Mapping[str, str], budget_tokens: int = BUDGET_TOKENS) -> str:
    """Every file's path and full text in a fence that holds; what does not fit is cut or named as left out."""
    blocks = [
        ContextBlock(name=_shown(path), text=f"### {_shown(path)}\n\n{fence(text, _language(path))}")
        for path, text in texts.items()
    ]
    return fit(blocks, budget_tokens)


def _language(path: str) -> str:
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def render_paths(paths: Iterable[str]) -> str:
    """One path per line."""
    return "\n".join(f"- {_shown(path)}" for path in paths)


def render_names(names: Iterable[str]) -> str:
    """Package names in one line, sorted; says so when there are none."""
    return ", ".join(sorted(names)) or "none beyond the standard library"
