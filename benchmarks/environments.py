"""Environments of real projects: as many tests collected as by hand, and what the first and a further one take.

Source archives are fetched into `.bench/environments`, the generated files in them are removed, and what is left is
committed with the version as its tag. "By hand" is `uv pip install --compile-bytecode` of what the project's people
tell, into a fresh environment. Both fetch everything: no cache is used.
"""

import asyncio
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Figure, Result, folder_mb
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.environments.python import EnvironmentResult, PythonEnvironments
from orchestrator.environments.python_installer import Installer, uv_program
from orchestrator.git.command import IDENTITY
from orchestrator.sandbox.choose import open_sandbox
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.test_runners.pytest_runner import pytest_argv
from orchestrator.test_runners.python import Part

PLACE = Path(".bench/environments")
_GENERATED = re.compile(r"(^|/)(PKG-INFO|_version\.py|findpython/__version__\.py|[^/]*\.egg-info/.*)$")
_COLLECTED = re.compile(r"collected (\d+) items?|(\d+)(?:/\d+)? tests? collected")


@dataclass(frozen=True, kw_only=True)
class Project:
    """A source archive, and what its people install beside it to run its tests."""

    archive: str
    what: str
    by_hand: tuple[str, ...]
    extras: str = ""


PROJECTS = (
    Project(archive="humanize==4.17.0", what="hatch-vcs, src, an extra", by_hand=("babel",), extras="tests"),
    Project(archive="pluggy==1.7.0", what="setuptools-scm, a group", by_hand=("--group", "testing")),
    Project(archive="markupsafe==3.0.4", what="a C extension, a group", by_hand=("--group", "tests")),
    Project(archive="exceptiongroup==1.3.1", what="flit-scm, an extra", by_hand=(), extras="test"),
    Project(
        archive="unearth==0.19.0",
        what="pdm, a test tool without a wheel",
        by_hand=("pytest", "pytest-httpserver", "flask", "requests-wsgi-adapter", "trustme", "pytest-mock"),
        extras="keyring,legacy",
    ),
    Project(archive="findpython==0.9.0", what="pdm with its version from git, a group", by_hand=("--group", "tests")),
    Project(archive="dep-logic==0.7.2", what="pdm, pdm's group for development", by_hand=("pytest",)),
    Project(archive="tomlkit==0.15.2", what="poetry-core, a group for development", by_hand=("--group", "dev")),
    Project(archive="cachetools==8.0.1", what="setuptools-scm, tox only", by_hand=("pytest", "pytest-cov")),
    Project(archive="more-itertools==11.2.1", what="flit, unittest", by_hand=("pytest",)),
    Project(archive="click==8.5.1", what="flit, groups", by_hand=("--group", "tests")),
    Project(archive="boltons==26.2.0", what="flit, flat, a group for development", by_hand=("--group", "dev")),
    Project(archive="attrs==26.1.0", what="hatch-vcs, factors of tox", by_hand=("--group", "tests")),
    Project(archive="packaging==26.3", what="flit, what pytest itself needs", by_hand=("--group", "test")),
    Project(archive="itsdangerous==2.2.0", what="flit, requirements/", by_hand=("-r", "requirements/tests.txt")),
    Project(
        archive="wcwidth==0.9.4",
        what="setuptools with a C extension, flat, pinned requirements",
        by_hand=("-r", "requirements-tests39.txt", "setuptools"),
    ),
    Project(
        archive="python-dateutil==4.0.0",
        what="hatch-vcs, requirements-dev.txt",
        by_hand=("-r", "requirements-dev.txt"),
    ),
    Project(archive="simplejson==4.3.0", what="setup.py with a C extension, unittest", by_hand=("pytest",)),
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured of one project."""

    project: Project
    collected: int
    by_hand: int
    first_s: float
    by_hand_s: float
    further_s: float
    further_mb: float
    note: str

    def __str__(self) -> str:
        name, seconds = self.project.archive.replace("==", " "), f"{self.first_s:.1f} | {self.by_hand_s:.1f}"
        further = f"{self.further_s:.2f} | {self.further_mb:.2f}"
        return f"| {name} | {self.project.what} | {self.collected} | {self.by_hand} | {seconds} | {further} |"


def repository_of(project: Project, folder: Path) -> Path:
    """A repository of one commit with the archive's files, as its people have them. Fetches the archive once."""
    archives = PLACE / "archives"
    name = project.archive.partition("==")[0]
    stem = project.archive.replace("==", "-").replace("-", "_")
    found = [path for path in archives.glob("*.tar.gz") if path.name.removesuffix(".tar.gz").replace("-", "_") == stem]
    if not found:
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name]
        subprocess.run([*argv, "--dest", str(archives), project.archive], check=True, capture_output=True)
        return repository_of(project, folder)
    with tarfile.open(found[0]) as archive:
        archive.extractall(folder, filter="data")
    root = next(folder.iterdir())
    for path in sorted(root.rglob("*")):
        if path.is_file() and _GENERATED.search(str(path.relative_to(root))):
            path.unlink()
    who, version = ["-c", f"user.name={IDENTITY[0]}", "-c", f"user.email={IDENTITY[1]}"], project.archive.split("==")[1]
    for args in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "Start"], ["tag", f"v{version}"]):
        subprocess.run(["git", *args], cwd=root, check=True)
    return root


def collected(printed: str) -> int:
    """How many tests pytest says that it found; 0 when it does not say."""
    found = _COLLECTED.search(printed)
    return int(found[1] or found[2]) if found else 0


def _by_hand(project: Project, root: Path, folder: Path) -> tuple[float, int]:
    uv, variables = uv_program(), Installer(os.environ, {}, None).environment()
    if uv is None:
        raise RuntimeError("uv is needed for what is done by hand")
    env = os.environ | variables
    started = time.perf_counter()
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(folder)], check=True, env=env)
    wanted = f".[{project.extras}]" if project.extras else "."
    argv = [uv, "pip", "install", "-q", "--compile-bytecode", "--index-strategy", "unsafe-best-match"]
    told = subprocess.run(
        [*argv, "-p", str(folder / "bin" / "python"), "-e", wanted, *project.by_hand],
        cwd=root, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    if told.returncode != 0:
        raise RuntimeError(f"{project.archive} by hand: {told.stderr[-2000:]}")
    argv = [str(folder / "bin" / "python"), "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    printed = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout
    return seconds, collected(printed)


async def _collected_by(runner: LimitedCommandRunner, found: EnvironmentResult, root: Path, scratch: Path) -> int:
    """As the runner of suites calls pytest, without running a test."""
    if found.python is None:
        print(f"{root.name}: {found.problem}\n{found.output[-2000:]}")
        return 0
    argv = await asyncio.to_thread(pytest_argv, found.python, root, Part(""), scratch, scratch / "report.xml")
    argv[argv.index("pytest") + 1 : argv.index("pytest") + 1] = ["--collect-only"]
    env = {"PATH": f"{found.python.parent}:/usr/bin:/bin"}
    result = await runner.run(argv, cwd=root, env=env, scratch=scratch, access=found.access)
    if found.note or not result.ok:
        print(f"{root.name}: {found.note}\n{result.output[-2000:]}")
    return collected(result.output)


async def _measured(project: Project, folder: Path, runner: LimitedCommandRunner) -> Row:
    root = await asyncio.to_thread(repository_of, project, folder / "by-hand")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True).stdout
    trees = [folder / name / root.name for name in ("one", "two")]
    for tree in trees:
        subprocess.run(["git", "clone", "-q", "--no-tags", str(root), str(tree)], check=True)
    base = BaseCommit(root / ".git", head.strip(), root)
    place, layers, settings = folder / "kept", folder / "layers", CommandSettings()
    environments = PythonEnvironments(place, layers, runner, settings, os.environ, base=base)
    started = time.perf_counter()
    first = await environments.ensure(trees[0], "one")
    first_s = time.perf_counter() - started
    started = time.perf_counter()
    further = await environments.ensure(trees[1], "two")
    further_s = time.perf_counter() - started
    scratch = folder / "scratch"
    scratch.mkdir()
    counts = {await _collected_by(runner, *which, scratch) for which in ((first, trees[0]), (further, trees[1]))}
    by_hand_s, by_hand = await asyncio.to_thread(_by_hand, project, root, folder / "venv")
    return Row(
        project=project, collected=min(counts), by_hand=by_hand, first_s=first_s, by_hand_s=by_hand_s,
        further_s=further_s, further_mb=folder_mb(place / "two"), note=first.note,
    )  # fmt: skip


async def _all(projects: Sequence[Project]) -> list[Row]:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    runner = LimitedCommandRunner(CommandSettings(), path, sandbox=await open_sandbox(SandboxSettings(), path))
    rows = []
    for project in projects:
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            rows.append(await _measured(project, Path(name).resolve(), runner))
        print(rows[-1], flush=True)
    return rows


def run(only: Sequence[str] = ()) -> Result:
    """Measure every project, or those whose archive begins with one of `only`; the table is in `PLACE`/table.md."""
    (PLACE / "archives").mkdir(parents=True, exist_ok=True)
    chosen = [one for one in PROJECTS if not only or one.archive.startswith(tuple(only))]
    rows = asyncio.run(_all(chosen))
    head = "| archive | what it is | collected | by hand | first, s | by hand, s | further, s | further, MB |"
    (PLACE / "table.md").write_text("\n".join([head, "| --- | --- " + "| ---: " * 6 + "|", *map(str, rows), ""]))
    figures = [
        Figure(name=f"{row.project.archive}: {name}", value=value, unit=unit)
        for row in rows
        for name, value, unit in (
            ("collected", row.collected, ""),
            ("collected by hand", row.by_hand, ""),
            ("first", row.first_s, "s"),
            ("first by hand", row.by_hand_s, "s"),
            ("further", row.further_s, "s"),
            ("further", row.further_mb, "MB"),
        )
    ]
    return Result(
        name="environments", about=f"environments of {len(rows)} source archives, cold", figures=tuple(figures)
    )
