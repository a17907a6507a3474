"""Which Python tests pytest cannot serve, and how they are run instead: Django's, and some of unittest's. Blocks.

pytest runs what unittest runs, but for three things: without pytest-django nobody makes the settings and databases of a
Django project; `load_tests` is never called; and files that only unittest finds by their names are not looked at.
"""

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from orchestrator.adapters.pytest_settings import settings_file
from orchestrator.adapters.python_parts import Part
from orchestrator.adapters.runner_choice import DJANGO, PYTEST, SUITES, UNITTEST
from orchestrator.adapters.tests_in_tree import files_of_tests
from orchestrator.adapters.tree_reading import read_text, root_files
from orchestrator.domain.testing import ReportedCase

REPORTER = Path(__file__).with_name("unittest_reporter.py")
_CALLS = re.compile(r"(?:\bdjango(?:-admin)?|(?P<manage>[\w./-]*\bmanage\.py))[ \t]+test\b(?P<rest>[^\n]*)")
"""How a project's people call Django's runner."""
_SETTINGS = re.compile(r"(?:--settings[= ]|\bDJANGO_SETTINGS_MODULE[\"']?[ \t]*[=:][ \t]*)[\"']?([A-Za-z_][\w.]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TOOLS = ("tox.ini", "Makefile", "noxfile.py", "justfile", "pyproject.toml", "setup.cfg")
_WORKFLOWS = ".github/workflows"
_SAMPLES = frozenset({"docs", "example", "examples", "demo", "sample", "node_modules", "venv"})
"""Folders whose `manage.py` is not the project's own."""
_LOAD_TESTS = re.compile(r"^def load_tests\(", re.MULTILINE)
_CASES = re.compile(r"^class \w+\(.*TestCase\b(?:.*\n)+?\s+def test", re.MULTILINE)


class Tool(NamedTuple):
    """What runs some Python tests, and why."""

    name: str
    why: str
    manage: str = ""
    """`manage.py` from the root; "" for Django itself."""
    settings: str = ""
    """The settings' module; "" where `manage.py` names it."""
    labels: tuple[str, ...] = ()
    """What its people name to it for the whole suite; none: all that it finds."""


def tools_of(root: Path, part: Part, packages: Path | None, forced: str) -> list[tuple[Tool, Part]]:
    """What runs which tests of a part, at least one; `packages` is where the project's lie, `forced` a setting."""
    django = _django(root, part.folder, packages, forced)
    if django is not None:
        return [(django, part)]
    if forced == UNITTEST:
        every = [*_chosen(part)] if part.chosen or part.only else [*_below(root, part)]
        return [(Tool(UNITTEST, "test.command names it"), part._replace(chosen=tuple(every)))]
    pytest = Tool(PYTEST, "test.command names it" if forced else "the tests are in Python")
    whole = part.whole
    candidates = _below(root, part) if whole else _chosen(part)
    rest = (
        ()
        if forced or _has_pytest(root / part.folder)
        else tuple(file for file in candidates if _is_for_unittest(root, file))
    )
    if not rest:
        return [(pytest, part)]
    unittest = Tool(UNITTEST, f"pytest would not run what {rest[0]} defines")
    others = [] if whole else [file for file in _chosen(part) if file not in rest]
    if not whole and not others:
        return [(unittest, part._replace(chosen=rest))]
    only = [[case for case in part.only if (case.file in rest) is there] for there in (False, True)]
    mine = part._replace(only=tuple(only[0]), chosen=part.chosen if whole else tuple(others))
    return [
        (pytest, mine._replace(ignored=(*part.ignored, *rest)) if whole else mine),
        (unittest, Part(part.folder, rest, tuple(only[1]))),
    ]


def unittest_argv(
    tool: Tool, python: Path, root: Path, part: Part, report: Path, *, collect: bool = False
) -> list[str]:
    """The command line, run at `root`."""
    home = root / part.folder
    order = {
        "report": str(report),
        "root": str(root),
        "django": tool.name == DJANGO,
        "manage": tool.manage,
        "settings": tool.settings,
        "labels": tool.labels,
        "paths": [*dict.fromkeys(map(str, (home, home / "src", root, root / "src")))],
        "files": [] if tool.name == DJANGO and part.whole else [*_chosen(part)],
        "only": [_named(case) for case in part.only],
        "collect": collect,
    }
    place = (root / tool.manage).parent if tool.manage else home
    argv = [str(python), "-P", str(REPORTER), json.dumps(order)]
    return argv if place == root else ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(place), *argv]


def _chosen(part: Part) -> Sequence[str]:
    return tuple(dict.fromkeys(case.file for case in part.only)) if part.only else part.chosen


def _named(case: ReportedCase) -> list[str]:
    return [*case.id.split("::", 1)]


def _below(root: Path, part: Part) -> Iterator[str]:
    """Python files of a part that are named like tests, by pytest's customs or unittest's."""
    for file in sorted(files_of_tests(root)):
        inside = not part.folder or file.startswith(f"{part.folder}/")
        if file.endswith(".py") and inside and not any(file.startswith(f"{one}/") for one in part.ignored):
            yield file


def _is_for_unittest(root: Path, file: str) -> bool:
    """Whether pytest would leave something of it out: `load_tests`, or all of it for its name."""
    if not file.endswith(".py"):
        return False
    text = read_text(root, file) or ""
    if _LOAD_TESTS.search(text):
        return True
    return not SUITES[PYTEST].search(PurePosixPath(file).name) and bool(_CASES.search(text))


def _django(root: Path, folder: str, packages: Path | None, forced: str) -> Tool | None:
    """Django's runner, where it is named, or where its project has nothing that makes pytest serve it."""
    home = root / folder
    if not forced:
        there = {path.name.partition("-")[0].lower() for path in packages.glob("*.dist-info")} if packages else set()
        if "django" not in there or "pytest_django" in there or _has_pytest(home):
            return None
    elif forced != DJANGO:
        return None
    why = "test.command names it" if forced else "Django is among the packages, pytest-django is not"
    for name in _tool_files(home):
        text = read_text(home, name) or ""
        if (call := _CALLS.search(text)) is not None:
            settings = _SETTINGS.search(call["rest"]) or _SETTINGS.search(text)
            manage = call["manage"] or ""
            manage = manage if manage and (home / manage).is_file() else ""
            if manage or settings:
                inside = str(PurePosixPath(folder) / manage) if manage else ""
                labels = tuple(word for word in _WORD.findall(call["rest"]) if (home / word).is_dir())
                return Tool(DJANGO, f"{why}; {name} calls it", inside, settings[1] if settings else "", labels)
    manage = _manage(root, folder)
    if manage or forced:
        return Tool(DJANGO, f"{why}; {manage} is there" if manage else why, manage)
    return None


def _has_pytest(home: Path) -> bool:
    """Whether its people run pytest: what that leaves out, they leave out."""
    names = root_files(home)
    return settings_file(names, partial(read_text, home)) is not None or "conftest.py" in names


def _tool_files(home: Path) -> Iterator[str]:
    there = root_files(home)
    yield from (name for name in _TOOLS if name in there)
    yield from (f"{_WORKFLOWS}/{name}" for name in root_files(home / _WORKFLOWS) if fnmatchcase(name, "*.y*ml"))


def _manage(root: Path, folder: str) -> str:
    """The nearest `manage.py`, in the part's folder or one below it; "" for none."""
    home = root / folder
    below = sorted(path.name for path in home.iterdir() if path.is_dir() and not path.is_symlink())
    for place in ["", *(name for name in below if name not in _SAMPLES and not name.startswith("."))]:
        path = "/".join(filter(None, (folder, place, "manage.py")))
        if "DJANGO_SETTINGS_MODULE" in (read_text(root, path) or ""):
            return path
    return ""
