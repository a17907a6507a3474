"""Imports go strictly down the floors of the house, and what is pure imports nothing that reads or writes."""

import ast
import re
from pathlib import Path

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
    "testing": 5,
    "engine": 6,
    "test_runners": 6,
    "app": 7,
    "analysis": 8,
    "telemetry": 8,
    "maintenance": 9,
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
WORLD = {"files", "storage", "sandbox", "backlogs", "git", "providers", "environments", "test_runners", "telemetry"}
MODULES = sorted(ROOT.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_packages(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("orchestrator.")}


def climbing(path: Path) -> list[str]:
    """Returns what a module imports that is not further down."""
    mine, shown = package_of(path), path.relative_to(ROOT)
    if mine == "__init__":
        return []
    wanted = imported_packages(ast.parse(path.read_text(encoding="utf-8"))) - {"__version__", mine}
    found = [f"{shown} (floor {FLOORS[mine]}) imports {one}" for one in wanted if FLOORS[one] >= FLOORS[mine]]
    return found + [f"{shown} imports {one}" for one in wanted if mine in INSIDE and one in WORLD]


def test_imports_go_down() -> None:
    assert [one for path in MODULES for one in climbing(path)] == []


def test_no_modules_import_each_other() -> None:
    assert find_cycles(read_imports(read_modules("orchestrator"))) == []


def test_only_personas_and_what_chooses_them_name_the_personas() -> None:
    others = [path for path in MODULES if package_of(path) not in {"personas", "providers", "app"}]
    named = re.compile(r"(?i)\b(mike|alex|jordan)\b")
    assert [str(path) for path in others if named.search(path.read_text(encoding="utf-8"))] == []
