"""The Python that a project's environment is made of: ours, unless people or the project ask for another. Blocks.

Which packages may be asked for at all: the list of names in `sandbox.packages`.
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
from packaging.version import Version

from orchestrator.core.errors import ConfigError

OLDEST = Version("3.11")
"""Older ones cannot be told to keep what lies beside the tests from standing in for the test runner (`-P`)."""
_NAMED = re.compile(r"python3\.\d+")
_MANAGED = ("~/.pyenv/versions/*/bin/python", "~/.local/share/uv/python/*/bin/python3")
_PROBE = """
import json, os, sys, venv
print(json.dumps([sys.implementation.name, os.path.realpath(sys.executable), sys.version, sys.base_prefix]))
"""


class Interpreter(NamedTuple):
    """A Python that is installed."""

    program: str
    version: str
    """`sys.version`."""
    readable: tuple[str, ...] = ()
    """What it must read to run; ours may."""

    @property
    def number(self) -> Version:
        """`3.12.1`; pre-releases count as what they become."""
        return Version(Version(self.version.split()[0].rstrip("+")).base_version)

    @property
    def usable(self) -> bool:
        """Whether tests can be run with it."""
        return self.number >= OLDEST

    def fits(self, requires: str) -> bool:
        """Whether a project's `requires-python` allows it; one that says nonsense does: who installs it says so."""
        with suppress(InvalidSpecifier):
            return SpecifierSet(requires).contains(self.number)
        return True

    @property
    def markers(self) -> dict[str, str]:
        """What the markers of requirements may ask of it."""
        return {"python_version": f"3.{self.number.minor}", "python_full_version": str(self.number)}

    @property
    def ours(self) -> bool:
        """Whether it is the one of this process."""
        return self.program == our_interpreter().program


@functools.cache
def our_interpreter() -> Interpreter:
    """Returns the one of this process."""
    return Interpreter(os.path.realpath(sys.executable), sys.version)


def chosen_interpreter(asked: str, path: str) -> Interpreter:
    """What people ask for: `3.12`, a program's name or its path; ours for "". `path` is where programs are looked up.

    Raises ConfigError when it is not installed, with those that are.
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
        raise ConfigError(
            f"environment.python: {asked} is older than {OLDEST}, with which tests can be run: name another"
        )
    return best


def fitting_interpreter(requires: str, path: str) -> Interpreter | None:
    """One that a project's `requires-python` allows, ours where that does; None where none is installed."""
    if our_interpreter().fits(requires):
        return our_interpreter()
    fitting = [one for one in installed(path) if one.usable and one.fits(requires)]
    return max(fitting, key=lambda one: one.number, default=None)


def installed(path: str) -> tuple[Interpreter, ...]:
    """Ours, those on `path`, and those of pyenv and uv; one by each program."""
    programs = dict.fromkeys(os.path.realpath(one) for one in _on_path(path, _NAMED))
    for pattern in _MANAGED:
        folder, _, rest = os.path.expanduser(pattern).partition("/*/")
        programs |= dict.fromkeys(os.path.realpath(one) for one in sorted(Path(folder).glob(f"*/{rest}")))
    found = [one for one in map(_probed, programs) if one is not None and not one.ours]
    return tuple({one.program: one for one in (our_interpreter(), *found)}.values())


def _on_path(path: str, name: re.Pattern[str]) -> Iterator[str]:
    for folder in filter(os.path.isabs, path.split(":")):  # others are of wherever we run, maybe of a story
        with suppress(OSError):
            yield from (f"{folder}/{entry}" for entry in sorted(os.listdir(folder)) if name.fullmatch(entry))


def _probed(program: str) -> Interpreter | None:
    """None for what is no CPython that runs, such as pyenv's stand-in for a version that is not chosen."""
    with suppress(OSError):
        return _asked(program, os.stat(program).st_mtime_ns)
    return None


@functools.lru_cache(maxsize=128)
def _asked(program: str, _changed: int) -> Interpreter | None:
    try:
        told = subprocess.run([program, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=20, check=True)
        kind, place, version, prefix = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if kind != "cpython":
        return None
    # Not the prefix itself: of a Python in `~/.local` or `/opt` it holds more than Python.
    below = [f"{prefix}/{name}" for name in ("bin", "lib", "include")]
    return Interpreter(place, version, (place, *filter(os.path.isdir, below)))


def refused_packages(names: Iterable[str], allowed: Sequence[str]) -> Iterator[str]:
    """Returns a sentence for each name that is not on the list; an empty list allows all.

    Names are compared as the registries do: without regard to case, `-`, `_` and `.` alike.
    """
    patterns = [canonicalize_name(pattern) for pattern in allowed]
    for name in names:
        if patterns and not any(fnmatchcase(canonicalize_name(name), pattern) for pattern in patterns):
            yield f"`{name[:100]}` is not on the list of packages that may be used (sandbox.packages)"
