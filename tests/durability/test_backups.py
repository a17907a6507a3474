"""A backup in the middle of a sprint, restored elsewhere: it ends as the sprint that nobody disturbed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.durability.driver import SPRINT, Aftermath, Bench, Ended
from tests.zygote import zygote

pytestmark = pytest.mark.timeout(300)


def command(bench: Bench, home: Path, *words: str) -> Ended:
    """A command beside the run, of another state folder."""
    env = {"PATH": os.environ["PATH"], "HOME": str(bench.folder), "TMPDIR": str(bench.folder / "tmp")}
    return bench.ended(
        zygote().start("orchestrator", words, cwd=bench.folder, env={**env, "ORCHESTRATOR_HOME": str(home)})
    )


def ends_alike(bench: Bench, file: Path, undisturbed: Aftermath) -> int:
    """Restore and go on; how many calls were made for that."""
    home, log = file.with_suffix(".home"), file.with_suffix(".jsonl")
    given = ["--repo", "repo", "--backlog", "backlog.csv"]
    assert command(bench, home, "restore", str(file), *given).code == 0
    kept = [json.loads(path.read_bytes()) for path in (home / "replies").rglob("*-*.json")]
    asked = {told(entry["key"], entry["turn"]) for entry in kept if entry["ended"] == "reply"}
    words = ["run", "backlog.csv", "--repo", "repo", "--provider", "scripted", "--script", "team.jsonl"]
    words += ["--sprint", SPRINT, "--call-log", str(log), "--set", "provider.wait_initial_s=0.2"]
    words += [word for setting in bench.runner for word in ("--set", setting)]
    ended = command(bench, home, *words)
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    again = [told(call, call["turn"]) for call in calls]
    assert len(again) == len(set(again)), "no call is made twice"
    assert not asked & set(again), "what was paid for before the backup is not asked again"

    other = Bench.__new__(Bench)
    other.folder, other.state, other.mirror_folder, other.database = bench.folder, home, home / "mirrors", None
    tree = other.git("rev-parse", f"refs/heads/orchestrator/{SPRINT}/result^{{tree}}")
    assert (ended.code, tree) == (undisturbed.code, undisturbed.tree)
    assert other._report() == undisturbed.report
    assert other._events() == undisturbed.events
    return len(calls)


def told(key: dict[str, Any], turn: int) -> str:
    return f"{key['persona']} {key['story']} {key['task']} {key['purpose']} {turn}"


@pytest.mark.soak
def test_a_sprint_goes_on_from_a_backup(tmp_path: Path, undisturbed: Aftermath) -> None:
    bench = Bench(tmp_path / "bench")
    process = bench.start()
    bench.wait_for(lambda: bench.journalled("US-001") >= 2 and bench.journalled("US-002") >= 1, process)
    file = tmp_path / "middle"
    assert command(bench, bench.state, "backup", str(file)).code == 0
    process.kill()
    bench.ended(process)
    assert 0 < ends_alike(bench, file, undisturbed) < len(undisturbed.calls)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_sprint_goes_on_from_every_backup(tmp_path: Path, undisturbed: Aftermath) -> None:
    """One backup after the other while it runs."""
    bench = Bench(tmp_path / "bench")
    process, files = bench.start(), []
    bench.wait_for(lambda: (bench.state / "sprints" / SPRINT / "sprint.json").exists(), process)
    while process.poll() is None:
        files.append(tmp_path / f"backup-{len(files)}")
        assert command(bench, bench.state, "backup", str(files[-1])).code == 0
    ended = bench.ended(process)
    assert bench.aftermath(ended.code) == undisturbed, "a backup disturbs nobody"
    for file in files:
        ends_alike(bench, file, undisturbed)
