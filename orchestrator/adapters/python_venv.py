"""Virtual environments for one worktree each, which have the packages and programs of a layer."""

import json
import os
import re
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.free_disk import raise_if_full
from orchestrator.errors import ConfigError

_MADE = "made.json"
_SCRIPT = re.compile(rb"#!(?:/bin/sh\n'''exec' .*\n' '''|\S*python.*)\n")
"""How a script of a package begins: with its interpreter, or, where that path is too long, with a shell for it."""
_SHELL = b"#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n"


def is_joined(environment: Path, layer: Path, tag: str) -> bool:
    """Whether it is the environment that `mark_joined` was told of. Blocks."""
    with suppress(OSError, ValueError):
        made = json.loads((environment / _MADE).read_text(encoding="utf-8"))
        return bool(made == {"layer": str(layer), "project": tag})
    return False


def mark_joined(environment: Path, layer: Path, tag: str) -> None:
    """The environment has the layer's packages and the project's wheel of this tag. Blocks."""
    (environment / _MADE).write_text(json.dumps({"layer": str(layer), "project": tag}), encoding="utf-8")


def join(environment: Path, layer: Path) -> None:
    """Make the virtual environment that has the layer's packages and programs. Blocks; raises as `make_venv`."""
    (environment / _MADE).unlink(missing_ok=True)  # first: what is half removed is not joined
    remove_tree(environment)
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath(layer / "venv" / "bin" / "python")
    make_venv(environment, "" if python == os.path.realpath(sys.executable) else python)
    # `addsitedir` also heeds the files of paths that packages bring. `!`: it is the first of the files of paths, so
    # that what lies in the project's own folders does not stand in for a package.
    line = f"import site; site.addsitedir({str(packages_of(layer))!r})\n"
    (_site(environment) / "!layer.pth").write_text(line, encoding="utf-8")
    for program in sorted((layer / "venv" / "bin").iterdir()):
        _add_program(program, environment / "bin" / program.name)


def _add_program(program: Path, target: Path) -> None:
    """A script in Python runs with the interpreter of its environment; what is none is linked to."""
    if os.path.lexists(target) or not program.is_file():
        return
    content = program.read_bytes()
    script = _SCRIPT.match(content)
    if script is None:
        target.symlink_to(program)
        return
    python = os.fsencode(target.with_name("python"))
    target.write_bytes(_SHELL % python + content[script.end() :])
    target.chmod(0o755)


def make_venv(environment: Path, python: str = "") -> None:
    """An empty one, with our interpreter or with another one's program. Blocks.

    Raises ConfigError for another one that makes none, OSError where the disk is full.
    """
    if not python:
        venv.EnvBuilder(symlinks=True).create(environment)
        return
    argv = [python, "-I", "-m", "venv", "--without-pip", "--symlinks", str(environment)]
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    except subprocess.SubprocessError as error:
        told = (error.output or "") + (error.stderr or "") if isinstance(error, subprocess.CalledProcessError) else ""
        raise_if_full(told, environment.parent)
        raise ConfigError(f"`{python}` makes no virtual environment: {told or error}") from error


def packages_of(layer: Path) -> Path:
    """Where a layer has its packages. Blocks."""
    return _site(layer / "venv")


def _site(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*/site-packages"))
