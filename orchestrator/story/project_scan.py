"""Selects files to read, and extracts the project's Surface from them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from posixpath import basename, dirname, join
from typing import Any

from orchestrator.checks.lost_exports import Lost, users_of
from orchestrator.checks.paths import Around
from orchestrator.code.javascript import source as javascript_source
from orchestrator.code.javascript import tree
from orchestrator.code.outline import is_page
from orchestrator.code.packages import dependencies_of
from orchestrator.code.parsers import parse_json, parse_toml
from orchestrator.code.python import source as python_source
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureContract, FileExports, Surface
from orchestrator.core.paths import is_manifest, is_test_file, suffix_of
from orchestrator.core.value import remembered, shortened
from orchestrator.prompts.context import render_story
from orchestrator.story.context import Progress, Stage, recorded_stack
from orchestrator.story.project_map import imports_of, path_words, project_map, words_of

_remembered = remembered(2048)
"""Stories of a sprint read the same files again and again: the sources of a few projects. Results are shared."""

PYTHON = frozenset({".py"})
JAVASCRIPT = frozenset(tree.SUFFIXES)
"""TypeScript included."""
SOURCES = PYTHON | JAVASCRIPT
MAX_TEST_FILES = 40
"""Limit on the test files that are read: those nearest to the story, then to the root."""
MAX_ODD = 10
"""Files that are no texts and are named to a story."""
SCAN_LIMIT = 600
"""Limit on files read: manifests first, then SQL and sources nearest to the root; some tests are extra."""
MAX_PAGES = 60
MAX_SOURCE_CHARS = 400_000
"""A longer source is generated or data: it stays in the file list, but its exports are not read."""

_VENDORED = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "vendored", "_vendor", "third_party", "site-packages"),
        *("dist", "__pycache__", "venv"),
    }
)
_TEST_DATA = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?)/(?:.*/)?(?:fixtures?|__fixtures__|examples?|(?:test)?data|samples?)/"
)
"""Folders of what tests read: their manifests are no manifests of the project."""
_GENERATED = (".min.js", ".min.mjs", ".min.cjs", ".bundle.js", "_pb2.py", "_pb2_grpc.py")


def _vendored(path: str) -> bool:
    return any(part in _VENDORED or part.startswith(".") for part in path.split("/")[:-1])


@lru_cache(maxsize=8192)
def _worth_reading(path: str) -> bool:
    if _vendored(path) or path.lower().endswith(_GENERATED):
        return False
    if is_manifest(path):
        return _TEST_DATA.search(path.lower()) is None
    return suffix_of(path) in SOURCES or suffix_of(path) == ".sql"


def _is_test_source(path: str) -> bool:
    return is_test_file(path) and not is_manifest(path)


def scan_paths(files: Iterable[str], about: str = "") -> tuple[str, ...]:
    """Returns the files that `build_surface` reads: manifests, SQL and sources, sorted, at most SCAN_LIMIT; and at
    most MAX_TEST_FILES test files; for a story also at most MAX_PAGES pages and style sheets.

    Those whose paths share words with `about`, a story's text, come before the rest. Leaves out vendored, built,
    minified and lock files.
    """
    wanted = words_of(about)
    listed = set(files)
    worth = [path for path in listed if _worth_reading(path)]

    def meant(path: str) -> int:
        return len(wanted & path_words(path)) if wanted else 0

    sources = sorted(
        (path for path in worth if not _is_test_source(path)),
        key=lambda path: (
            *(not is_manifest(path), not path.lower().endswith(".sql")),
            *(-meant(path), path.count("/"), path),
        ),
    )
    tests = sorted(
        (path for path in worth if _is_test_source(path) and not path.lower().endswith(".sql")),
        key=lambda path: (-meant(path), path.count("/"), path),
    )
    seen = [path for path in listed if about and is_page(path) and not _vendored(path)]
    pages = sorted(seen, key=lambda path: (-meant(path), path.count("/"), path))
    return tuple(sorted(sources[:SCAN_LIMIT] + tests[:MAX_TEST_FILES] + pages[:MAX_PAGES]))


def scan_tests(files: Iterable[str]) -> tuple[str, ...]:
    """Returns the test files among which those nearest to a story are looked for, at most SCAN_LIMIT."""
    found = [path for path in set(files) if _is_near_source(path)]
    return tuple(sorted(sorted(found, key=lambda path: (path.count("/"), path))[:SCAN_LIMIT]))


def _is_near_source(path: str) -> bool:
    known = suffix_of(path) in SOURCES and not _vendored(path)
    return known and (is_test_file(path) or ("/" not in path and path.startswith("test.")))


def build_surface(
    commit: str,
    files: Sequence[str],
    texts: Mapping[str, str],
    about: str = "",
    shown: bool = True,
) -> Surface:
    """Returns the Surface of a commit from its paths and the texts of `scan_paths(files)`. Never raises for content.

    `about` is the text of the story that the map is for. Leaves out what
    cannot be read, and what only prompts show where the Surface is not `shown`: versions, imports, the map.
    """
    listed = tuple(sorted(set(files)))
    wanted = sorted(path for path in texts if _worth_reading(path) and len(texts[path]) <= MAX_SOURCE_CHARS)
    read = [path for path in wanted if not _is_test_source(path)]
    exports = [FileExports(path=path, names=_exports(texts[path], path)) for path in read]
    manifests = (path for path in texts if is_manifest(path) and _worth_reading(path))
    dependencies = sorted({name for path in manifests for name in dependencies_of(path, texts[path])})
    surface = Surface(
        commit=commit,
        files=listed,
        exports=tuple(entry for entry in exports if entry.names),
        dependencies=tuple(dependencies),
        runtime=runtime_of(texts),
        runtimes=runtimes_of(texts),
    )
    if not shown:
        return surface
    imports = imports_of({path: texts[path] for path in wanted}, listed) if about else {}
    readable = {path: text for path, text in texts.items() if len(text) <= MAX_SOURCE_CHARS}
    more = {
        "versions": versions_of(dependencies, [texts[path] for path in sorted(texts) if is_manifest(path)]),
        "imports": imports,
        "map": project_map(about, listed, readable, imports) if about and listed else "",
    }
    return surface.model_copy(update=more)


Files = Callable[[], Awaitable[tuple[str, ...]]]
Texts = Callable[[Sequence[str]], Awaitable[dict[str, str]]]


_VERSION = r"(?:[\^~<>=!\s]*v?\d|\*|latest|next|workspace:|catalog:|npm:|file:|link:|git|https?:)"
"""How what asks for a version begins: scripts and tasks are often named like the package that they call."""


def versions_of(names: Iterable[str], manifests: Sequence[str]) -> dict[str, str]:
    """Returns package → the version that a manifest's text asks for; without those that ask for none."""
    found: dict[str, str] = {}
    for name in names:
        # `name>=1.2,<2`, `name[extra] ~= 1.2`, `name = "^1.2"`, `"name": "^1.2"`; `-`, `_` and `.` are one in Python.
        spelt = re.sub(r"[-_.]+", "[-_.]+", re.escape(name).replace("\\-", "-").replace("\\.", "."))
        required, quoted = r"\s*((?:[<>=!~]=?=?)\s*[\dv][^\s\"';#]*)", rf"\"?\s*[:=]\s*\"({_VERSION}[^\"\n]*)\""
        pattern = re.compile(rf"(?<![\w@/.-]){spelt}(?:\[[^\]]*\])?(?:{required}|{quoted})", re.IGNORECASE)
        for text in manifests:
            if match := pattern.search(text):
                found[name] = "".join((match[1] or match[2]).split()).rstrip(",")[:40]
                break
    return found


async def scan_tree(stage: Stage, files: Files, read: Texts, *, shown: bool = True) -> Surface:
    """Returns the Surface of a tree, as a durable step; what only prompts show is left out where it is not `shown`."""
    about = render_story(stage.brief.story)

    async def work() -> Surface:
        async with stage.scans:
            paths = await files()
            wanted = await asyncio.to_thread(scan_paths, paths, about)
            texts = await read(wanted)
            found = await asyncio.to_thread(build_surface, "", paths, texts, about=about, shown=shown)
            named = [path for path in paths if basename(path) in about]
            unread = [path for path in dict.fromkeys((*wanted, *named)) if path not in texts]
            odd = await stage.workspace.obstacles(stage.story_id, unread) if shown and unread else {}
            return found.model_copy(update={"map": _odd_line(odd) + found.map}) if odd else found

    return await stage.do("scan", Surface, work)


def _odd_line(odd: Mapping[str, str]) -> str:
    """Returns the line on files that are there and are no texts, so that nobody takes them for absent."""
    told = [f"{path if path.isprintable() else repr(path)} ({why})" for path, why in odd.items()][:MAX_ODD]
    more = f" and {len(odd) - MAX_ODD} more" if len(odd) > MAX_ODD else ""
    return f"There, but they can neither be shown nor edited: {', '.join(told)}{more}\n\n"


async def read_users(stage: Stage, lost: Sequence[Lost], files: Sequence[str] | None, read: Texts) -> dict[str, str]:
    """Returns the texts of files that use a lost name, as a durable step; `files` None means the branch's files."""

    async def work() -> dict[str, str]:
        paths = files if files is not None else await stage.workspace.files(stage.story_id)
        texts = await read(scan_paths(paths))
        users = await asyncio.to_thread(users_of, lost, texts)
        using = {path for paths in users.values() for path in paths}
        return {path: text for path, text in texts.items() if path in using}

    return await stage.do("users", dict[str, str], work)


def around_of(stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract, about: str) -> Around:
    """Returns the context for checks of a delivery's contents; `about` describes the request."""
    return Around(
        packages=frozenset(contract.allowed_dependencies),
        stack=recorded_stack(stage.brief.tech_stack, plan),
        task=about,
        runtime=progress.surface.runtime,
        runtimes=progress.surface.runtimes,
    )


@_remembered
def _exports(text: str, path: str) -> tuple[str, ...]:
    suffix = suffix_of(path)
    if suffix in PYTHON:
        return python_source.exported_names(text)
    return javascript_source.exported_names(text, path) if suffix in JAVASCRIPT else ()


def runtime_of(texts: Mapping[str, str], folder: str = "") -> str:
    """Returns facts on the runtime from the manifests of a folder, e.g. `requires-python >=3.11; node >=20`."""
    python, node = (texts.get(join(folder, name), "") for name in ("pyproject.toml", "package.json"))
    return "; ".join(_python_runtime(python) + _node_runtime(node))


def runtimes_of(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns folder → facts on the runtime, for folders below the root whose manifests have any."""
    folders = sorted({dirname(path) for path in texts if basename(path) in {"pyproject.toml", "package.json"}})
    return {folder: told for folder in folders if folder and (told := runtime_of(texts, folder))}


def _python_runtime(text: str) -> list[str]:
    try:
        found: Any = parse_toml(text)
    except ValueError:  # an invalid manifest states no runtime
        return []
    wanted = _at(found, "project", "requires-python") or _at(found, "tool", "poetry", "dependencies", "python")
    return [f"requires-python {shortened(wanted)}"] if isinstance(wanted, str) and wanted.strip() else []


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _node_runtime(text: str) -> list[str]:
    try:
        package = parse_json(text)
    except (ValueError, RecursionError):  # an invalid manifest states no runtime
        return []
    if not isinstance(package, dict):
        return []
    engines = package.get("engines")
    facts = []
    if isinstance(engines, dict) and isinstance(node := engines.get("node"), str) and node.strip():
        facts.append(f"node {shortened(node)}")
    if isinstance(kind := package.get("type"), str) and kind in {"module", "commonjs"}:
        facts.append(f"package type {kind}")
    return facts


async def tell_new_folders(stage: Stage, paths: Sequence[str], files: Sequence[str]) -> None:
    """Logs one line on new files in folders that the project does not have; nothing is refused for it."""
    there = {str(folder) for path in files for folder in PurePosixPath(path).parents}
    new = [path for path in paths if there and str(PurePosixPath(path).parent) not in there]
    if new:
        await stage.step.emit(
            "places_unusual", f"in folders that the project does not have: {', '.join(new)}", paths=new
        )
