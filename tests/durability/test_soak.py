"""A thousand stories, fifty at once, in one daemon: it holds no more at the end than in its youth (make soak)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.driver import ROOT

STORIES, AT_ONCE, YOUTH = int(os.environ.get("SOAK_STORIES", "1000")), 50, 200


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_a_thousand_stories_leave_nothing_behind(tmp_path: Path) -> None:
    crowd = json.dumps({"stories": STORIES, "at_once": AT_ONCE})
    command = [sys.executable, "-m", "benchmarks.daemon", str(tmp_path), crowd]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    life = json.loads(done.stdout)
    print(json.dumps(life))
    assert life["done"] == STORIES
    assert life["calls"] == 3 * STORIES
    young = next(sample for sample in life["samples"] if sample["stories"] >= YOUTH)
    old = max(sample["rss_mb"] for sample in life["samples"] if sample["stories"] > YOUTH)
    assert old <= young["rss_mb"] * 1.1, (young, old)
    assert life["rested"]["tasks"] == life["idle"]["tasks"]
    assert life["rested"]["descriptors"] <= young["descriptors"], "pools of connections stay, nothing else"
    assert life["rested"]["threads"] <= young["threads"]
