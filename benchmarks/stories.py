"""What git and the test runner take per story, apart from everything else."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks import samples
from benchmarks.measure import Figure, Meter, Result, median_ms, metered
from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.environments.python import PythonEnvironments
from orchestrator.git.command import IDENTITY, require_git
from orchestrator.git.repository import open_repository
from orchestrator.git.workspace import GitWorkspace
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.plain import PlainSandbox
from orchestrator.settings import Settings
from orchestrator.story.project_scan import scan_paths
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.report import Selection

T = TypeVar("T")
SPRINT = "BENCH"
OLD_PACKAGES = 10
"""Packages with a suite of their own that the repository has before the sprint."""
PARTS = 3
TESTS = ("test the story", "test the merged tree")
"""What is the test runner's and not git's."""


@dataclass
class Stopwatch:
    """Seconds per named operation, in the order they were first seen."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def time(self, name: str, work: Awaitable[T]) -> T:
        """Await `work` and note what it took."""
        before = time.perf_counter()
        try:
            return await work
        finally:
            self.taken[name].append(time.perf_counter() - before)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A workspace and a runner as `run` makes them."""

    workspace: GitWorkspace
    runner: PytestRunner

    async def story(self, story: str, watch: Stopwatch) -> None:
        """Everything a story does with git and tests, in its order. Raises RuntimeError when it is not merged."""
        workspace = self.workspace
        await watch.time("open the branch", workspace.open(story))
        await watch.time("scan the project", self._scan(story))
        for part in range(1, PARTS + 1):
            files = {samples.module_path(story, part): samples.module_text(story, part)}
            await watch.time("read a task's files", workspace.read(story, list(files)))
            await watch.time("commit a task", self._commit(story, files, f"part {part}"))
        suite = samples.test_path(story)
        await watch.time("commit the suite", self._commit(story, {suite: samples.test_text(story)}, "tests"))
        await watch.time("reset the worktree", workspace.reset(story))
        report = await watch.time(
            "test the story", self.runner.run(workspace.root(story), Selection(f"{SPRINT}-{story}", [suite]))
        )
        await watch.time("check the diff", self._diff(story))
        tested: list[float] = []

        async def check(folder: Path) -> str:
            before = time.perf_counter()
            whole = await self.runner.run(folder, Selection(f"{SPRINT}-merge"))
            tested.append(time.perf_counter() - before)
            return "" if whole.green else whole.output

        before = time.perf_counter()
        merged = await workspace.merge(story, _note(story, "merge"), check)
        watch.taken["merge, its tests apart"].append(time.perf_counter() - before - sum(tested))
        watch.taken["test the merged tree"].append(sum(tested))
        if not (report.green and merged.merged):
            raise RuntimeError(f"{story} is not merged: {report.output} {merged}")

    async def _scan(self, story: str) -> None:
        files = await self.workspace.files(story)
        await self.workspace.read(story, scan_paths(files))

    async def _commit(self, story: str, files: dict[str, str], what: str) -> None:
        changes = [FileChange(path=path, content=text) for path, text in files.items()]
        await self.workspace.commit(story, changes, _note(story, what))

    async def _diff(self, story: str) -> None:
        paths = [entry.path for entry in await self.workspace.diff(story)]
        await self.workspace.read(story, paths)
        await self.workspace.read_base(story, paths)


def _note(story: str, what: str) -> CommitNote:
    return CommitNote(subject=f"{story}: {what}", sprint=SPRINT, story=story, step=f"{SPRINT}/{story}/{what}")


def make_repository(folder: Path) -> None:
    """A repository of one commit with `OLD_PACKAGES` packages and their suites."""
    for number in range(OLD_PACKAGES):
        story = f"OLD-{number}"
        files = {samples.module_path(story, part): samples.module_text(story, part) for part in range(1, PARTS + 1)}
        for path, text in (files | {samples.test_path(story): samples.test_text(story)}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    name, email = IDENTITY
    who = ["-c", f"user.name={name}", "-c", f"user.email={email}"]
    for args in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "Start"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


@contextmanager
def counted_git(folder: Path) -> Iterator[Callable[[], int]]:
    """Put a `git` first on PATH that counts its calls; gives a function that tells how many there were."""
    real = subprocess.run(["sh", "-c", "command -v git"], check=True, capture_output=True, text=True).stdout.strip()
    tally, shim, path = folder / "tally", folder / "git", os.environ["PATH"]
    folder.mkdir()
    tally.touch()
    shim.write_text(f'#!/bin/sh\necho >> {tally}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{path}"
    try:
        yield lambda: tally.stat().st_size
    finally:
        os.environ["PATH"] = path


async def _measured(folder: Path, stories: int) -> tuple[Stopwatch, Stopwatch, Meter, int]:
    """(once-only operations, operations per story, their processor time, git processes of one story)."""
    settings, path = Settings(), os.environ["PATH"]
    commands = LimitedCommandRunner(settings.commands, path, sandbox=PlainSandbox())
    environments = PythonEnvironments(folder / "environments", folder / "layers", commands, settings.commands, {})
    once, each = Stopwatch(), Stopwatch()
    await require_git()
    make_repository(folder / "repo")
    repository = await once.time("look at the repository", open_repository(folder / "repo"))
    workspace = GitWorkspace(
        mirror=folder / "mirror.git", folder=folder / "worktrees", sprint=SPRINT, base=repository.base
    )
    bench = Bench(workspace=workspace, runner=PytestRunner(commands, environments, settings.test, path))
    try:
        await once.time("prepare the mirror", workspace.prepare(repository.path))
        with metered() as meter:
            for number in range(1, stories + 1):
                await bench.story(samples.story_id(number), each)
        with counted_git(folder / "bin") as processes:
            await bench.story(samples.story_id(stories + 1), Stopwatch())
            count = processes()
    finally:
        workspace.close()
    return once, each, meter, count


def run(stories: int = 8) -> Result:
    """Take `stories` stories one after the other through a real repository and real test runs."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name).resolve()
        (folder / "repo").mkdir()
        once, each, meter, processes = asyncio.run(_measured(folder, stories))
    per_story = {name: sum(seconds) / stories for name, seconds in each.taken.items()}
    tests = sum(per_story[name] for name in TESTS)
    cpu = (meter.cpu_s + meter.children_cpu_s) / stories * 1000
    figures = (
        *(Figure(name=name, value=median_ms(seconds), unit="ms") for name, seconds in once.taken.items()),
        *(Figure(name=name, value=median_ms(seconds), unit="ms") for name, seconds in each.taken.items()),
        Figure(name="git per story", value=(sum(per_story.values()) - tests) * 1000, unit="ms"),
        Figure(name="tests per story", value=tests * 1000, unit="ms"),
        Figure(name="processor time per story", value=cpu, unit="ms"),
        Figure(name="git processes per story", value=processes),
    )
    return Result(
        name="git",
        about=f"medians of {stories} stories of {PARTS} tasks, one after the other; "
        f"{OLD_PACKAGES * (PARTS + 1)} files there before",
        figures=figures,
    )
