"""Which Python a project's environment is made with: ours, one that people name, or one that the project asks for."""

import configparser
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from orchestrator.adapters.poetry_requirements import specifier
from orchestrator.adapters.python_installer import uv_program
from orchestrator.adapters.sandbox.places import INTERPRETERS
from orchestrator.adapters.tree_reading import read_text
from orchestrator.domain.base import Value

OLDEST = "3.11"
"""That tests can be run with: pytest is started with `-P`."""
_VERSION = re.compile(r"^3(\.\d+){1,2}$")
_PROGRAM = re.compile(r"^python3\.\d+$")
_ASK = "import json, platform, sys, venv; print(json.dumps([sys.executable, platform.python_version()]))"


class Interpreter(Value):
    """One that is installed."""

    path: Path
    version: str

    @property
    def own(self) -> bool:
        """Whether it is the one that we run with."""
        return str(self.path) == sys.executable

    @property
    def usable(self) -> bool:
        """Whether tests can be run with it."""
        return Version(self.version) >= Version(OLDEST)

    @property
    def markers(self) -> dict[str, str]:
        """What requirements may ask of it."""
        return {"python_version": self.version.rpartition(".")[0], "python_full_version": self.version}


class ChosenPython(Value):
    """The interpreter for a project, or why there is none."""

    python: Interpreter
    """Ours where there is a problem."""
    because: str = ""
    """Why it is not ours."""
    problem: str = ""


OWN = Interpreter(path=Path(sys.executable), version=platform.python_version())


def choose_python(asked: str | None, root: Path, path: str) -> ChosenPython:
    """For the project at `root`: the one that people `asked` for by version, name or path; else ours where the project
    takes it, else the newest it takes. `path` is where programs are looked up. Blocks."""
    chosen = _required(root, path) if asked is None else _named(asked, path)
    if chosen.problem or chosen.python.own or uv_program() is not None:
        return chosen
    return ChosenPython(python=OWN, problem=f"{chosen.because}; without uv, nothing can be installed for it")


def _named(asked: str, path: str) -> ChosenPython:
    if _VERSION.match(asked):
        fitting = [one for one in installed(path) if f"{one.version}.".startswith(f"{asked}.")]
        found = max(fitting, key=_order, default=None)
    else:
        program = shutil.which(os.path.expanduser(asked), path=path)
        found = None if program is None else _interpreter(program)
    because = f"environment.python is {asked}"
    if found is None:
        return ChosenPython(python=OWN, problem=f"{because}, which is not installed. {_listed(path)}")
    if not found.usable:
        problem = f"{because}: tests cannot be run with Python {found.version}, only with {OLDEST} or newer"
        return ChosenPython(python=OWN, problem=f"{problem}. {_listed(path)}")
    return ChosenPython(python=found, because="" if found.own else f"Python {found.version}: {because}")


def _required(root: Path, path: str) -> ChosenPython:
    manifest, requires = required_python(root)
    if OWN.version in requires:
        return ChosenPython(python=OWN)
    asks = f"{manifest} asks for Python {requires}"
    fitting = [one for one in installed(path) if one.version in requires and one.usable]
    if not fitting:
        more = "install one that it takes, or try it with one that is there by environment.python"
        return ChosenPython(python=OWN, problem=f"{asks}. {_listed(path)}; {more}")
    newest = max(fitting, key=_order)
    return ChosenPython(python=newest, because=f"Python {newest.version}: {asks}")


def required_python(root: Path) -> tuple[str, SpecifierSet]:
    """Which manifest at `root` says which versions the project takes; any where none says what can be understood."""
    for name, read in (("pyproject.toml", _pyproject), ("setup.cfg", _setup_cfg)):
        try:
            if told := read(read_text(root, name) or ""):
                return name, SpecifierSet(told)
        except (ValueError, TypeError, AttributeError, InvalidSpecifier, configparser.Error):
            continue
    return "", SpecifierSet()


def _pyproject(text: str) -> str:
    data = tomllib.loads(text)
    poetry = data.get("tool", {}).get("poetry", {}).get("dependencies", {}).get("python", "")
    return str(data.get("project", {}).get("requires-python") or specifier(poetry))


def _setup_cfg(text: str) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser.get("options", "python_requires", fallback="")


@functools.cache
def installed(path: str) -> tuple[Interpreter, ...]:
    """Ours, and those on `path` and where pyenv and uv keep theirs, the oldest first. Blocks."""
    programs = {os.path.realpath(program): program for program in _programs(path)}
    found = [one for program in programs.values() if (one := _interpreter(program)) is not None]
    return tuple(sorted({one.path: one for one in (OWN, *found)}.values(), key=_order))


def _programs(path: str) -> Iterator[str]:
    kept = [str(found) for folder in INTERPRETERS for found in Path(folder).expanduser().glob("*/bin")]
    for folder in (*path.split(":"), *kept):
        names = os.listdir(folder) if folder.startswith("/") and os.path.isdir(folder) else []
        yield from (os.path.join(folder, name) for name in names if _PROGRAM.match(name))


def _interpreter(program: str) -> Interpreter | None:
    """What the program says of itself; None for one that cannot make environments, or does not run."""
    try:
        told = subprocess.run(
            [program, "-I", "-c", _ASK], capture_output=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        ).stdout
        path, version = json.loads(told)
        ours = os.path.realpath(path) == os.path.realpath(sys.executable)
        return OWN if ours else Interpreter(path=Path(path), version=str(Version(version)))
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        return None


def _order(one: Interpreter) -> tuple[Version, bool]:
    """The newest last, of the same version ours."""
    return Version(one.version), one.own


def _listed(path: str) -> str:
    return f"Installed here: {', '.join(dict.fromkeys(one.version for one in installed(path)))}"


def create_venv(folder: Path, python: Path | None) -> None:
    """An empty virtual environment of an interpreter, None being ours. Blocks; raises OSError."""
    if python is None or os.path.realpath(python) == os.path.realpath(sys.executable):
        venv.EnvBuilder(symlinks=True).create(folder)
        return
    argv = [str(python), "-I", "-m", "venv", "--symlinks", "--without-pip", str(folder)]
    made = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    if made.returncode:
        raise OSError(f"{python} made no environment: {made.stdout[-500:]}{made.stderr[-500:]}")
