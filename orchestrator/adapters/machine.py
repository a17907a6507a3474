"""What this machine has: versions of programs, room on its disks. Everything here is for telling; nothing is changed
but a file that is made and removed again. Blocks: call it from a thread."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from orchestrator.adapters.git import OLDEST
from orchestrator.domain.doctor import DoctorRow

LEAST_FREE_MB = 1024
"""A worktree, an environment and a package cache per story need room."""
_NODE, _NODE_TYPESCRIPT = (20, 0), (22, 18)
_ASKING_S = 20.0


def program_rows(path: str) -> list[DoctorRow]:
    """git, Python and what it brings, node and npm, as they are found on `path`."""
    return [_git(path), _python(), *_node(path)]


def _git(path: str) -> DoctorRow:
    said, wanted = _version("git", path), f"git {_dotted(OLDEST)} or newer"
    ok = said is not None and said[0] >= OLDEST
    todo = "" if ok else "install a newer git and put it first on PATH"
    return _row("git", wanted, said[1] if said else "not there", ok=ok, todo=todo)


def _python() -> DoctorRow:
    lacking = [name for name in ("venv", "ensurepip", "pytest") if find_spec(name) is None]
    happened = f"Python {sys.version.split()[0]}" + (f" without {', '.join(lacking)}" if lacking else "")
    todo = f"install {', '.join(lacking)} for {sys.executable} (Debian: python3-venv)" if lacking else ""
    return _row("python", "3.11 or newer with venv, ensurepip and pytest", happened, ok=not lacking, todo=todo)


def _node(path: str) -> list[DoctorRow]:
    """Only some projects need them, so that none of it stops a run by itself."""
    node, npm = _version("node", path), _version("npm", path)
    if node is None or node[0] < _NODE:
        todo = "nothing for Python projects; for JavaScript install Node 20 or newer with npm"
    else:
        todo = (
            "" if node[0] >= _NODE_TYPESCRIPT else "nothing for JavaScript; for TypeScript install Node 22.18 or newer"
        )
    missing = "" if npm or node is None else "nothing for projects without packages; for others install npm"
    return [
        _row("node", "Node 20 or newer, where projects need it", node[1] if node else "not there", ok=True, todo=todo),
        _row("npm", "npm, where projects need it", npm[1] if npm else "not there", ok=True, todo=missing),
    ]


def _version(name: str, path: str) -> tuple[tuple[int, int], str] | None:
    """The version of a program and what it says of itself; None when it is not there or says nothing."""
    program = shutil.which(name, path=path)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"], env={"PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_ASKING_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return ((int(found[1]), int(found[2])), done.stdout.strip()[:80]) if found else None


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _row(name: str, expected: str, happened: str, *, ok: bool, todo: str) -> DoctorRow:
    return DoctorRow(name=name, group="programs", expected=expected, happened=happened, ok=ok, todo=todo)


def folder_row(name: str, folder: Path, todo: str) -> DoctorRow:
    """Whether `folder`, or the nearest folder above it that is there, can be written and has room."""
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    free = shutil.disk_usage(there).free // 2**20
    problem = _unwritable(there) or (f"only {free} MiB free" if free < LEAST_FREE_MB else "")
    return DoctorRow(
        name=name,
        group="disk",
        expected=f"{folder} can be written and has {LEAST_FREE_MB} MiB free",
        happened=problem or f"{free} MiB free" + ("" if there == folder else ", not made yet"),
        ok=not problem,
        todo=todo if problem else "",
    )


def _unwritable(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"cannot be written: {error.strerror or error}"
    return ""
