"""Selects the Python of a project's environment: ours, unless the settings or the project ask for another. Blocks.

Also applies the allowlist of packages in `sandbox.packages`.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from orchestrator.core.errors import ConfigError

OLDEST = Version("3.11")
"""Older versions lack `-P`, which keeps a file beside the tests from shadowing the test runner."""
_NAMED = re.compile(r"python3\.\d+")
_MANAGED = ("~/.pyenv/versions/*/bin/python", "~/.local/share/uv/python/*/bin/python3")
_PROBE = """
import json, os, sys, venv
print(json.dumps([sys.implementation.name, os.path.realpath(sys.executable), sys.version, sys.base_prefix]))
"""


class Interpreter(NamedTuple):
    """An installed Python."""

    program: str
    version: str
    """`sys.version`."""
    readable: tuple[str, ...] = ()
    """Paths that it must be able to read to run; empty for ours, which may already."""

    @property
    def number(self) -> Version:
        """The version such as `3.12.1`; a pre-release counts as its final release."""
        return Version(Version(self.version.split()[0].rstrip("+")).base_version)

    @property
    def usable(self) -> bool:
        """True when tests can be run with it."""
        return self.number >= OLDEST

    def fits(self, requires: str) -> bool:
        """Returns whether `requires-python` allows it. An invalid value allows it: the installer reports that."""
        with suppress(InvalidSpecifier):
            return SpecifierSet(requires).contains(self.number)
        return True

    @property
    def markers(self) -> dict[str, str]:
        """Values for environment markers in requirements."""
        return {"python_version": f"3.{self.number.minor}", "python_full_version": str(self.number)}

    @property
    def ours(self) -> bool:
        """True for the interpreter of this process."""
        return self.program == our_interpreter().program


@functools.cache
def our_interpreter() -> Interpreter:
    """Returns the interpreter of this process."""
    return Interpreter(os.path.realpath(sys.executable), sys.version)


def chosen_interpreter(asked: str, path: str) -> Interpreter:
    """Returns the interpreter for `3.12`, a program's name or its path; ours for "". `path` is the search path.

    Raises ConfigError when it is not installed; the message lists the installed ones.
    """
    if not asked:
        return our_interpreter()
    number = re.fullmatch(r"(?:python)?(3\.\d+(?:\.\d+)?)", asked)
    if number is None:
        found = _probed(asked if "/" in asked else next(_on_path(path, re.compile(re.escape(asked))), asked))
        fitting = [found] if found is not None else []
    else:
        fitting = [one for one in installed(path) if f"{one.number}.".startswith(f"{number[1]}.")]
    if not fitting:
        there = ", ".join(sorted({str(one.number) for one in installed(path)}, key=Version))
        raise ConfigError(f"environment.python: `{asked}` is not installed; there are {there}: install it, or name one")
    best = max(fitting, key=lambda one: (one.ours, one.number))
    if not best.usable:
        raise ConfigError(f"environment.python: {asked} is too old, tests need Python {OLDEST} or newer: name another")
    return best


def fitting_interpreter(requires: str, path: str) -> Interpreter | None:
    """Returns an interpreter that `requires-python` allows, ours if possible; None when none is installed.

    Raises ConfigError when all that are installed are too old: what is for newer ones cannot run. Where they are too
    new it may: many manifests exclude what nobody had tried.
    """
    if our_interpreter().fits(requires):
        return our_interpreter()
    fitting = [one for one in installed(path) if one.usable and one.fits(requires)]
    if not fitting and _asks_for_newer(requires, max(one.number for one in installed(path))):
        there = ", ".join(sorted({str(one.number) for one in installed(path)}, key=Version))
        raise ConfigError(
            f"the project is for Python {requires} (requires-python), and there are {there}: install one that fits "
            "(`uv python install`), or name one in environment.python"
        )
    return max(fitting, key=lambda one: one.number, default=None)


def _asks_for_newer(requires: str, number: Version) -> bool:
    with suppress(InvalidSpecifier, InvalidVersion):  # the installer reports it
        lowest = (one for one in SpecifierSet(requires) if one.operator in {">=", ">", "~=", "==", "==="})
        return any(
            not one.contains(number) and Version(one.version.removesuffix(".*")) >= Version(number.base_version)
            for one in lowest
        )
    return False


def installed(path: str) -> tuple[Interpreter, ...]:
    """Returns our interpreter, those on `path`, and those of pyenv and uv, without duplicates."""
    programs = dict.fromkeys(os.path.realpath(one) for one in _on_path(path, _NAMED))
    for pattern in _MANAGED:
        folder, _, rest = os.path.expanduser(pattern).partition("/*/")
        programs |= dict.fromkeys(os.path.realpath(one) for one in sorted(Path(folder).glob(f"*/{rest}")))
    found = [one for one in map(_probed, programs) if one is not None and not one.ours]
    return tuple({one.program: one for one in (our_interpreter(), *found)}.values())


def _on_path(path: str, name: re.Pattern[str]) -> Iterator[str]:
    # Relative entries depend on the working directory, which may be a story's tree.
    for folder in filter(os.path.isabs, path.split(":")):
        with suppress(OSError):  # a folder on PATH may not exist
            yield from (f"{folder}/{entry}" for entry in sorted(os.listdir(folder)) if name.fullmatch(entry))


def _probed(program: str) -> Interpreter | None:
    """Returns None unless it is a CPython that runs; pyenv's shim for an unselected version is not."""
    with suppress(OSError):  # a dangling link
        return _asked(program, os.stat(program).st_mtime_ns)
    return None


@functools.lru_cache(maxsize=128)
def _asked(program: str, _changed: int) -> Interpreter | None:
    try:
        told = subprocess.run([program, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=20, check=True)
        kind, place, version, prefix = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):  # it does not run, or prints something else
        return None
    if kind != "cpython":
        return None
    # Not the prefix itself: of a Python in `~/.local` or `/opt` it holds more than Python.
    below = [f"{prefix}/{name}" for name in ("bin", "lib", "include")]
    return Interpreter(place, version, (place, *filter(os.path.isdir, below)))


def refused_packages(names: Iterable[str], allowed: Sequence[str]) -> Iterator[str]:
    """Yields a sentence for each name that is not on the list; an empty list allows all.

    Names are compared as registries compare them: ignoring case, and with `-`, `_` and `.` equal.
    """
    patterns = [canonicalize_name(pattern) for pattern in allowed]
    for name in names:
        if patterns and not any(fnmatchcase(canonicalize_name(name), pattern) for pattern in patterns):
            yield f"`{name[:100]}` is not on the list of packages that may be used (sandbox.packages)"
