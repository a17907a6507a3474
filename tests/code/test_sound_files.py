"""Nothing that is installed and in use is refused: this interpreter's packages, and Node's modules if there are any."""

import os
import shutil
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from orchestrator.code.check import check_syntax, language_of
from tests.effort import examples

PLENTY = examples(200)
"""Files of one language and place that are read at most."""
LONGEST = 200_000
WRONG_ON_PURPOSE = {
    "lib2to3/tests/data": "Python 2, and errors for the converter",
    "test/": "the standard library's own tests hold broken files",
    "bad": "files that are called bad are",
    "/build/lib": "what a build of this very project left is not installed",
    "templates": "the texts of project generators, filled in later",
    "cookiecutter": "the texts of project generators, filled in later",
    "spyder": "broken on purpose, for an editor",
}
"""Part of a path → why what stands there is not sound."""


def places() -> dict[str, Path]:
    found = {"packages": Path(sysconfig.get_paths()["purelib"]), "standard library": Path(os.__file__).parent}
    node = shutil.which("node")
    modules = Path(node).resolve().parent.parent / "lib" / "node_modules" if node else None
    return {**found, **({"node": modules} if modules is not None and modules.is_dir() else {})}


PLACES = places()


def sound_files(root: Path) -> Iterator[tuple[str, str]]:
    """Path and text, evenly over the whole tree, at most PLENTY of a language."""
    taken: dict[str, list[Path]] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"site-packages", "__pycache__"})
        for path in (Path(folder, file) for file in sorted(files)):
            name = path.relative_to(root).as_posix()
            language = language_of(name)
            if language is None or any(part in f"/{name}" for part in WRONG_ON_PURPOSE):
                continue
            if not path.is_symlink() and path.stat().st_size <= LONGEST:
                taken.setdefault(language, []).append(path)
    for paths in taken.values():
        for path in paths[:: max(1, len(paths) // PLENTY)]:
            try:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_no_installed_file_is_refused() -> None:
    seen: Counter[str] = Counter()
    refused = []
    for place, root in PLACES.items():
        for name, text in sound_files(root):
            seen[language_of(name) or ""] += 1
            refused += [f"{place}: {found}" for found in check_syntax(name, text)]
    assert refused == []
    assert seen.total() >= 2 * PLENTY, seen
