"""Chooses the runner of a suite by setting, recorded stack, manifests or name; never by default.

The recorded tech stack is read strictly: rather nothing than a guess.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from orchestrator.core.finding import Finding, Where, major

PYTEST = "pytest"
UNITTEST = "unittest"
DJANGO = "django"
NODE = "node"
CUSTOM = "custom"
"""The command of `test.custom`."""


class Kind(NamedTuple):
    """Marks of one kind of tests."""

    words: str
    """Words of a recorded tech stack that stand for it: a regular expression."""
    manifests: tuple[str, ...]
    """Files in the root of its projects."""
    runs: re.Pattern[str]
    """Paths that its runner can run at all."""
    suites: re.Pattern[str]
    """File names that tell the runner by themselves."""


KINDS: Mapping[str, Kind] = {
    PYTEST: Kind(
        words=r"python[\d.]*|cpython|pytest|django|flask|fastapi",
        manifests=("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "pytest.ini", "tox.ini"),
        runs=re.compile(r"\.py$"),
        suites=re.compile(r"^(test_.*|.*_test)\.py$"),
    ),
    NODE: Kind(
        words=r"node(?:\.?js)?|javascript|typescript|express(?:\.?js)?|jest|vitest|mocha|ava",
        manifests=("package.json",),
        runs=re.compile(r"\.[cm]?[jt]sx?$"),
        suites=re.compile(r"\.(test|spec)\.[cm]?[jt]sx?$"),
    ),
}
"""Runner → its kind. A new one is a row here and in `app.runners`, and a class; see docs/development/extending.md."""
RUNNERS = (PYTEST, UNITTEST, DJANGO, *(name for name in KINDS if name != PYTEST))
"""Values of `test.command`. unittest's and Django's tests count as pytest's when the language decides."""
_OTHERS = r"jasmine|deno|bun|java|kotlin|golang|rust|ruby|rails|php|elixir|swift"
"""Other languages and runners: what names one of them does not tell which of ours is meant."""
_NOT = r"\b(?:no|not|non|never|without|except|than|instead of|replac\w+|from)[ \t]+(?:\w+[ \t]+){0,2}"
"""Words that rule out what comes right behind them."""


def recorded_runner(sources: Iterable[str]) -> str | None:
    """Returns the runner that the first of `sources` names which names exactly one; None when none of them does.

    A source that names both, a foreign one, or one of them only to rule it out, is unclear and says nothing.
    """
    return next((runner for source in sources if (runner := _named(source)) is not None), None)


def _named(text: str) -> str | None:
    found = [name for name, kind in KINDS.items() if re.search(rf"\b(?:{kind.words})\b", text, re.IGNORECASE)]
    every = "|".join((*(kind.words for kind in KINDS.values()), _OTHERS))
    unclear = re.search(rf"\b(?:{_OTHERS})\b|{_NOT}(?:{every})\b", text, re.IGNORECASE)
    return found[0] if len(found) == 1 and unclear is None else None


def choose_runner(
    command: str | None, root_files: Collection[str], suite_files: Collection[str], stack: Sequence[str] = ()
) -> str | Finding:
    """Returns the runner's name for `suite_files` (none: the whole suite), or the finding `test.no_runner`.

    `command` is the setting `test.command`, `stack` what is recorded about the tech stack, the most telling text first,
    `root_files` the names of the files in the project's root. A stack that says nothing clear leaves the choice to the
    manifests; manifests of both kinds leave it to the suite's name; so does whatever names a runner that cannot run the
    suite.
    """
    if command is not None and command.strip():
        name = command.strip()
        return name if name in RUNNERS else _none(f"`test.command` names `{name}`", suite_files)
    able = [name for name, kind in KINDS.items() if all(map(kind.runs.search, suite_files))]
    if not able:
        return _none(f"no known runner runs {', '.join(f'`{file}`' for file in suite_files)}", suite_files)
    recorded = recorded_runner(stack)
    if recorded in able:
        return recorded
    stated = stated_runners(root_files)
    names = [PurePosixPath(file).name for file in suite_files]
    named = [kind for kind in able if names and all(map(KINDS[kind].suites.search, names))]
    fitting = [name for name in able if name in stated] or named
    if len(fitting) == 1:
        return fitting[0]
    return _none("neither the recorded tech stack, nor a manifest, nor the name of the suite tells it", suite_files)


def stated_runners(root_files: Collection[str]) -> list[str]:
    """Returns the runners whose manifests are among these."""
    return [
        name
        for name, kind in KINDS.items()
        if any(fnmatchcase(file, pattern) for file in root_files for pattern in kind.manifests)
    ]


def kind_of(path: str) -> str:
    """Returns the runner for tests in a file; pytest's are also doctests in files of any name."""
    return next((name for name, kind in KINDS.items() if kind.runs.search(path)), PYTEST)


def _none(reason: str, files: Collection[str]) -> Finding:
    return major(
        "test.no_runner",
        f"No test runner could be chosen: {reason}.",
        where=Where(file=next(iter(files), None), field="test.command"),
        fix=f"Name the suite test_*.py, *.test.js or *.test.ts, or set test.command to one of: {', '.join(RUNNERS)}.",
    )
