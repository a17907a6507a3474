"""Killed at any moment and called again, the workspace gives the same trees and commits nothing twice."""

import random
import time
from pathlib import Path

import pytest

from tests.git.git_samples import git, user_repo
from tests.support import plain_environment
from tests.zygote import ROOT, Forked, zygote


def start(state: Path, repo: Path, base: str, *more: str) -> Forked:
    """One that is at work; `more` are the database and the sprint."""
    words = [str(state), str(repo), base, *more]
    child = zygote().start("tests.git.kill_driver", words, cwd=ROOT, env=plain_environment())
    while child.printed() != "ready\n":
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.002)
    return child


def finish(state: Path, repo: Path, base: str, *more: str) -> float:
    """Seconds that a run to the end takes."""
    child = start(state, repo, base, *more)
    begun = time.monotonic()
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    return time.monotonic() - begun


def facts(state: Path, sprint: str = "s1") -> tuple[str, list[str], int]:
    """Tree of the result, step trailers of all its commits, number of commits."""
    mirror, branch = state / "mirror.git", f"orchestrator/{sprint}/result"
    trailers = git(mirror, "log", "--format=%(trailers:key=Orchestrator-Step,valueonly,separator=)", branch)
    tree = git(mirror, "rev-parse", f"{branch}^{{tree}}")
    return tree, sorted(trailers.split()), int(git(mirror, "rev-list", "--count", branch))


def torture(tmp_path: Path, rounds: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    repo = user_repo(tmp_path / "user", {"a.txt": "1"})
    base = git(repo, "rev-parse", "HEAD")
    for name in ("calm", "killed"):
        (tmp_path / name).mkdir()
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    other = user_repo(tmp_path / "other", {"a.txt": "1"})
    lasts = finish(calm, other, git(other, "rev-parse", "HEAD"))
    for _ in range(rounds):
        child = start(killed, repo, base)
        time.sleep(chance.random() * lasts)
        child.kill()
        child.communicate()
    finish(killed, repo, base)
    assert facts(killed) == facts(calm)
    git(killed / "mirror.git", "fsck", "--strict", "--no-dangling")
    assert [path.name for path in killed.rglob("*.lock")] == ["sprint.lock"]
    assert git(repo, "rev-parse", "result-s1") == git(killed / "mirror.git", "rev-parse", "orchestrator/s1/result")
    stories = {f"US-{number}" for number in range(3)}
    assert {entry.name for entry in (killed / "trees").iterdir()} <= {*stories, ".state", ".trash"}


def test_kills_change_nothing(tmp_path: Path) -> None:
    torture(tmp_path, rounds=2, seed=int(time.time()))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_many_kills_change_nothing(tmp_path: Path) -> None:
    torture(tmp_path, rounds=150, seed=int(time.time()))
