"""What the names of groups, extras, files and packages tell about tests (pure)."""

import re
from collections.abc import Iterable
from enum import Enum

_TESTS = frozenset({"test", "tests", "testing", "pytest", "unittest"})
_DEVELOPMENT = frozenset({"dev", "devel", "develop", "development"})
_OTHER = frozenset(
    {"doc", "docs", "documentation", "lint", "linter", "linters", "linting", "style", "format", "formatting", "fmt"}
    | {"type", "types", "typing", "typecheck", "typechecks", "typechecking", "mypy", "pyright", "stubs", "precommit"}
    | {"release", "publish", "packaging", "build", "wheels", "update", "bench", "benchmark", "benchmarks"}
    | {"conda"}
)
_TOOLS = frozenset(
    {"ruff", "black", "isort", "flake8", "pylint", "mypy", "pyright", "basedpyright", "ty", "pyrefly", "pytype"}
    | {"bandit", "codespell", "autopep8", "autoflake", "yapf", "pyupgrade", "pydocstyle", "docformatter", "pycodestyle"}
    | {"pyflakes", "pre-commit", "prek", "tox", "nox", "twine", "check-manifest", "towncrier", "commitizen"}
    | {"bump2version", "bumpversion", "bump-my-version", "furo", "myst-parser", "pdoc", "codecov", "coveralls"}
)
_TOOL_FAMILIES = re.compile(r"^(sphinx|mkdocs|types-|flake8-|pylint-|tox-)|-stubs$")
_RUNNER = re.compile(r"^(pytest|nose|testtools|unittest2)")


class Purpose(Enum):
    """What a group, an extra or a file of requirements is for, as far as its name tells."""

    TESTS = "tests"
    DEVELOPMENT = "development"
    OTHER = "other"
    """Linters, stubs, documents, releases: no test needs it."""
    UNKNOWN = "unknown"


def purpose(name: str) -> Purpose:
    """`tests-py39` → TESTS, `requirements/dev` → DEVELOPMENT, `test-docs` → OTHER."""
    words = set(_words(name))
    held = ((Purpose.OTHER, _OTHER), (Purpose.TESTS, _TESTS), (Purpose.DEVELOPMENT, _DEVELOPMENT))
    return next((found for found, known in held if words & known), Purpose.UNKNOWN)


def for_tests(names: Iterable[str]) -> list[str]:
    """Those that hold what tests need: the plain ones (`test`, `tests`, `testing`), else those like `test-xyz`.

    Beside a plain one, another is for a special run: `tests-random` would put a project's tests in another order.
    """
    return _plain_ones(name for name in names if purpose(name) is Purpose.TESTS)


def for_development(names: Iterable[str]) -> list[str]:
    """Those like `dev`; beside a plain one, urllib3's `dev-min-pyopenssl` is for a special run as well."""
    return _plain_ones(name for name in names if purpose(name) is Purpose.DEVELOPMENT)


def _plain_ones(names: Iterable[str]) -> list[str]:
    found = [*names]
    return [name for name in found if len(_words(name)) == 1] or found


def package_of(line: str) -> str:
    """The normalised name that a requirement begins with, "" for an option or a path."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def is_tool(line: str) -> bool:
    """Whether a requirement is a linter or formatter, stubs, or a tool for documents and releases."""
    name = package_of(line)
    return name in _TOOLS or bool(_TOOL_FAMILIES.search(name))


def is_runner(line: str) -> bool:
    """Whether a requirement is what runs tests."""
    return bool(_RUNNER.match(package_of(line)))


def _words(name: str) -> list[str]:
    """Without a version at its end (`tests39`) and what a file is called by anyway."""
    words = (re.sub(r"\d+$", "", word) for word in re.split(r"[^a-z0-9]+", name.lower()))
    return [word for word in words if word not in {"", "requirements", "reqs", "txt"}]
