"""Proposes, for `init` in an existing repository, its foundation row and configuration. Pure."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from orchestrator.code.parsers import parse_json, parse_toml
from orchestrator.core.contract import Surface
from orchestrator.core.paths import is_test_file
from orchestrator.core.value import Value

VISIONS = (
    *("vision.md", "docs/vision.md", "doc/vision.md", "product.md", "docs/product.md"),
    *("readme.md", "readme.rst", "readme.txt", "readme", "docs/readme.md", "docs/index.md"),
)
"""Files that describe a product, best first, in lower case."""
_CELL = 1500  # characters
_LISTED = 20  # names in a cell


class Found(Value):
    """Facts about a repository that the configuration has settings for."""

    name: str
    vision: str | None = None
    wireframes: str | None = None
    runner: str | None = None
    """Our test runner for the project's tests; None when none or several fit."""
    script: str = ""
    """package.json's own test script."""
    tests: int = 0
    """Number of test files."""


def look(folder: str, surface: Surface, texts: Mapping[str, str], runners: Collection[str]) -> Found:
    """Reads the facts; `texts` has the manifests at the root, `runners` the names `test.command` may have."""
    by_name = {path.lower(): path for path in reversed(surface.files)}
    package, project = _json(texts.get("package.json", "")), _toml(texts.get("pyproject.toml", ""))
    script = _text(_table(package, "scripts").get("test"))
    tests = [path for path in surface.files if is_test_file(path)]
    name = _text(_table(project, "project").get("name")) or _text(package.get("name")) or folder
    return Found(
        name=name[:80],
        vision=next((by_name[path] for path in VISIONS if path in by_name), None),
        wireframes=_wireframes(surface.files),
        runner=_runner(tests, script, runners),
        script=script[:120],
        tests=len(tests),
    )


def _runner(tests: Sequence[str], script: str, runners: Collection[str]) -> str | None:
    kinds = {"pytest" for path in tests if path.endswith(".py")}
    if "node --test" in script:
        kinds.add("node")
    elif any(re.search(r"\.[cm]?[jt]sx?$", path) for path in tests):
        kinds.add("another")
    only = next(iter(kinds)) if len(kinds) == 1 else None
    return only if only in runners else None


def _wireframes(files: Sequence[str]) -> str | None:
    parents = {str(PurePosixPath(path).parent) for path in files}
    fitting = [parent for parent in parents if PurePosixPath(parent).name.lower() in {"wireframe", "wireframes"}]
    return min(fitting, key=lambda path: (path.count("/"), path), default=None)


def configuration(template: str, found: Found) -> str:
    """Returns the template with the facts filled in."""
    text = template
    if found.vision:
        text = _set(text, "vision", found.vision, "found in the repository")
    if found.wireframes:
        text = _set(text, "wireframes", found.wireframes, "found in the repository")
    if found.runner:
        text = _set(text, "command", found.runner, f"what the {found.tests} test files here are for")
    elif found.script:
        said = " ".join(found.script.split())
        text = _set(text, "command", None, f"package.json says: {said}")
    return text


def _set(text: str, name: str, value: str | None, why: str) -> str:
    line = f"  {name}: {json.dumps(value, ensure_ascii=False)}  # {why}"
    return re.sub(rf"^  {name}: .*$", lambda _: line, text, count=1, flags=re.MULTILINE)


def foundation_backlog(header: Sequence[str], found: Found, surface: Surface) -> str:
    """Returns a CSV backlog with one row, NFR-001, that describes the project's foundation."""
    row = foundation_row(found, surface)
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    return out.getvalue()


def foundation_row(found: Found, surface: Surface) -> dict[str, str]:
    """Returns cells by column; unknown ones stay empty."""
    green = "The tests that are there pass unchanged" if found.tests else "A first test of what is there passes"
    structure = [f"{count} files in {folder}" for folder, count in _folders(surface.files)]
    return {
        "Story_ID": "NFR-001",
        "Title": f"What {found.name} stands on",
        "User_Story": f"As a developer, I want new work to keep to what {found.name} is built on so that it fits in.",
        "Functional_Requirements": _cell(structure),
        "Integrations": _cell(_some(surface.dependencies, "packages")),
        "Dependencies": "None (foundational)",
        "Constraints": _cell([part for part in (surface.runtime, "What is there keeps working") if part]),
        "Acceptance_Criteria": f"1. {green}; 2. docs/conventions.md says where code and tests go, "
        "how they are named and how the tests are run",
        "Priority": "Critical",
        "Status": "Backlog",
        "Notes": f"Proposed by `orchestrator init` from {len(surface.files)} files: correct it and add your stories. "
        "Nothing to do here? Write completed into Execution_Status",
    }


def _folders(files: Sequence[str]) -> list[tuple[str, int]]:
    counted = Counter(f"{path.split('/', 1)[0]}/" if "/" in path else "the top folder" for path in files)
    return counted.most_common(8)


def _some(names: Sequence[str], what: str) -> list[str]:
    more = [f"{len(names) - _LISTED} more {what}"] if len(names) > _LISTED else []
    return [*names[:_LISTED], *more]


def _cell(parts: Sequence[str]) -> str:
    text = "; ".join(" ".join(part.split()) for part in parts)
    printable = "".join(char if char.isprintable() else "?" for char in text)
    return printable if len(printable) <= _CELL else f"{printable[: _CELL - 1]}…"


def _json(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):  # an invalid manifest proposes nothing
        return {}
    return value if isinstance(value, dict) else {}


def _toml(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError:  # an invalid manifest proposes nothing
        return {}


def _table(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
