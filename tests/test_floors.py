"""Imports go strictly down the floors of the house, and what is pure imports nothing that reads or writes."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.figures import find_cycles, read_imports, read_modules

ROOT = Path(__file__).parent.parent / "orchestrator"
FLOORS = {
    "core": 1,
    "settings": 2,
    "code": 2,
    "prompts": 2,
    "files": 2,
    "storage": 3,
    "contract": 3,
    "checks": 3,
    "answers": 3,
    "sandbox": 3,
    "backlogs": 4,
    "git": 4,
    "story": 4,
    "personas": 4,
    "sprint": 5,
    "reports": 5,
    "providers": 5,
    "environments": 5,
    "engine": 6,
    "test_runners": 6,
    "records": 6,
    "app": 7,
    "analysis": 8,
    "maintenance": 9,
    "board": 10,
    "client": 10,
    "daemon": 10,
    "server": 11,
    "cli": 12,
    "__main__": 13,
}
INSIDE = {
    *("core", "settings", "code", "prompts", "contract", "checks", "answers"),
    *("story", "personas", "sprint", "reports", "engine"),
}
"""They reach the world through `core.ports` alone."""
WORLD = {"files", "storage", "sandbox", "backlogs", "git", "providers", "environments", "test_runners"}
MODULES = sorted(ROOT.rglob("*.py"))


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """The modules that each module imports."""
    return read_imports(read_modules("orchestrator"))


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def climbing(module: str, imported: set[str]) -> list[str]:
    """Returns what a module imports that is not further down."""
    mine = module.split(".")[1] if "." in module else ""
    wanted = {name.split(".")[1] for name in imported if "." in name} - {mine} if mine else set()
    found = [f"{module} (floor {FLOORS[mine]}) imports {one}" for one in wanted if FLOORS[one] >= FLOORS[mine]]
    return found + [f"{module} imports {one}" for one in wanted if mine in INSIDE and one in WORLD]


def test_imports_go_down(imports: dict[str, set[str]]) -> None:
    assert [one for module, imported in imports.items() for one in climbing(module, imported)] == []


def test_no_modules_import_each_other(imports: dict[str, set[str]]) -> None:
    assert find_cycles(imports) == []


def test_only_personas_and_what_chooses_them_name_the_personas() -> None:
    others = [path for path in MODULES if package_of(path) not in {"personas", "providers", "app"}]
    named = re.compile(r"(?i)\b(mike|alex|jordan)\b")
    assert [str(path) for path in others if named.search(path.read_text(encoding="utf-8"))] == []


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    modules = Counter(path.parent.relative_to(ROOT) for path in MODULES if path.name != "__init__.py")
    assert [f"{folder}: {count}" for folder, count in modules.items() if count > 20] == []
