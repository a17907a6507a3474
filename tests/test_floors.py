"""Imports go strictly down the floors of the house."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent / "orchestrator"
FLOORS = {
    "errors": 0,
    "domain": 1,
    "settings": 2,
    "ports": 3,
    "syntax": 4,
    "answers": 5,
    "checks": 5,
    "contract": 5,
    "prompts": 5,
    "adapters": 5,
    "personas": 6,
    "sprint": 7,
    "analysis": 7,
    "engine": 8,
    "wiring": 9,
    "client": 10,
    "server": 10,
    "cli": 11,
    "__main__": 12,
}
MODULES = sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("orchestrator.")}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def climbing(path: Path) -> list[str]:
    """Returns what a module imports that is not further down."""
    mine, shown = room_of(path), path.relative_to(ROOT)
    if mine == "__init__":
        return []
    wanted = imported_rooms(parsed(path)) - {"__version__", mine}
    found = [f"{shown} (floor {FLOORS[mine]}) imports {room}" for room in wanted if FLOORS[room] >= FLOORS[mine]]
    if "adapters" in wanted and mine != "wiring":
        found.append(f"{shown} imports adapters, which only wiring does")
    return found


def test_imports_go_down() -> None:
    assert [one for path in MODULES for one in climbing(path)] == []


def test_only_personas_and_wiring_name_the_personas() -> None:
    others = [path for path in MODULES if room_of(path) not in {"personas", "wiring"}]
    named = re.compile(r"(?i)\b(mike|alex|jordan)\b")
    assert [str(path) for path in others if named.search(path.read_text(encoding="utf-8"))] == []
