"""Readings that are done once per text, and Surfaces that share their parts."""

from concurrent.futures import ThreadPoolExecutor

from orchestrator.contract.freeze import freeze
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureContract, FileExports, Surface, sharing
from orchestrator.story.project_scan import Remembered, build_surface
from tests.support import breakdown


def test_a_text_is_read_once_under_each_path_and_the_least_asked_for_goes_first() -> None:
    read: list[tuple[str, str]] = []

    def reading(text: str, path: str) -> str:
        read.append((text, path))
        return f"{path}: {text}"

    remembered = Remembered(reading, size=2)
    assert remembered("a", "x") == remembered("a", "x") == "x: a"
    assert remembered("a", "y") == "y: a"  # what is read of a text may depend on its file's kind
    assert read == [("a", "x"), ("a", "y")]
    remembered("a", "x")
    remembered("\udc80", "z")  # "y" has not been asked for since
    assert remembered("a", "x") == "x: a"
    assert read[2:] == [("\udc80", "z")]
    remembered("a", "y")
    assert read[3:] == [("a", "y")]


def test_a_reading_from_many_threads_gives_each_its_own() -> None:
    remembered = Remembered(lambda text, path: (path, text), size=8)
    asked = [(f"text {number % 24}", f"path {number % 5}") for number in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda one: remembered(*one), asked)) == [(path, text) for text, path in asked]


def test_a_changed_file_is_read_again() -> None:
    before, after = "def old(): pass", "def fresh(): pass"
    for text, name in ((before, "old"), (after, "fresh"), (before, "old")):
        surface = build_surface("", ("a.py", "a.js"), {"a.py": text, "a.js": f"export function {name}() {{}}"})
        assert [entry.names for entry in surface.exports] == [(name,), (name,)]


def test_surfaces_read_from_records_share_what_is_equal() -> None:
    surface = build_surface("", ("pkg/a.py", "pkg/b.py"), {"pkg/a.py": "A = 1", "pkg/b.py": "B = 1"})
    recorded = surface.model_dump_json()
    first, second = (sharing(Surface.model_validate_json(recorded)) for _ in range(2))
    assert first == second == surface
    assert all(one is other for one, other in zip(first.files, second.files, strict=True))
    assert all(one is other for one, other in zip(first.exports, second.exports, strict=True))
    assert first.exports == (FileExports(path="pkg/a.py", names=("A",)), FileExports(path="pkg/b.py", names=("B",)))
    plan = Breakdown.model_validate(breakdown("US-1", ["pkg/c.py"]))
    frozen = freeze(breakdown=plan, base_commit="c0ffee", files=surface.files, manifests={"pkg/a.py": "import pkg"})
    contract = ArchitectureContract.model_validate_json(frozen.model_dump_json()).sharing()
    assert contract == frozen
    assert contract.baseline_files is first.files is second.files
