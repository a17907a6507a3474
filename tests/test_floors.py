"""Imports go strictly down the floors of the house."""

import ast
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    mine = room_of(path)
    if mine == "__init__":
        return
    for room in imported_rooms(ast.parse(path.read_text(encoding="utf-8"))) - {"__version__"}:
        assert room == mine or FLOORS[room] < FLOORS[mine], f"{mine} (floor {FLOORS[mine]}) imports {room}"
        if mine not in {"wiring", "adapters"}:
            assert room != "adapters", "only wiring imports adapters"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_personas_and_wiring_name_the_personas(path: Path) -> None:
    if room_of(path) not in {"personas", "wiring"}:
        assert not re.search(r"(?i)\b(mike|alex|jordan)\b", path.read_text(encoding="utf-8"))
