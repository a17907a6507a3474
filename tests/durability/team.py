"""The small sprint that the durability tests kill: three stories, two of them side by side, and the team's answers."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import Team, suite_text, task, task_id

HEADER = [
    "Story_ID", "Title", "User_Story", "Functional_Requirements", "Non_Functional_Requirements", "Integrations",
    "Dependencies", "Constraints", "Acceptance_Criteria", "Priority", "Status", "Vision_Ref", "Wireframe_Ref", "Notes",
    "Sprint_ID", "Execution_Status", "Execution_Started_At", "Execution_Completed_At", "Last_Event", "Last_Updated",
]  # fmt: skip
OURS = HEADER[-6:]
"""The columns that a run writes."""

STORIES = {"NFR-001": "None", "US-001": "NFR-001", "US-002": "NFR-001"}
COMMAND_RUNS, TESTS_RUN = "command-runs.txt", "tests-run.txt"
"""Files that appear in a worktree while the slow command of US-001, the slow test of US-002 is alive."""
SLOW = """import pathlib
import time


def value():
    pathlib.Path("{mark}").write_text("now")
    time.sleep(0.6)
    return 1
"""


class UnhurriedTeam(Team):
    """A team that takes its time for each answer."""

    def __init__(self, latency_ms: int) -> None:
        super().__init__()
        self._latency_ms = latency_ms

    def say(self, persona: str, story: str, purpose: str, answer: Any, *, task: int | None = None, **more: Any) -> None:
        """See Team.say."""
        usual = {"latency_ms": self._latency_ms, "input_tokens": 100, "output_tokens": 10}
        super().say(persona, story, purpose, answer, task=task, **{**usual, **more})


def team(latency_ms: int = 120) -> Team:
    """A command that takes its time, a red suite that is mended, transport errors of all kinds, a slow test run."""
    script = UnhurriedTeam(latency_ms)
    script.good("NFR-001")

    command = "python3 -c 'from us_001_probe import value; value()'"
    second = task("US-001", 2, ["us_001_probe.py"], command, dependencies=[task_id("US-001", 1)])
    script.plan("US-001", ["us_001.py"], {**second, "dependency_reason": "it comes after it"})
    script.deliver("US-001", 1, {"us_001.py": "def value():\n    return 2\n"})
    script.deliver("US-001", 2, {"us_001_probe.py": SLOW.format(mark=COMMAND_RUNS)})
    script.suite("US-001", suite_text("US-001"))
    script.analyse("US-001", ("us_001.py", "return 1"))
    script.deliver("US-001", 1, {"us_001.py": "def value():\n    return 1\n"})

    script.say("mike", "US-002", "breakdown", "", error="overloaded")
    script.say("mike", "US-002", "breakdown", "", error="rate_limit", retry_after_s=0.4)
    script.plan("US-002", ["us_002.py"])
    script.say("alex", "US-002", "delivery", "", task=1, error="connection")
    script.deliver("US-002", 1, {"us_002.py": "import nfr_001\n" + SLOW.format(mark=TESTS_RUN)})
    script.suite("US-002", suite_text("US-002"))
    return script


def write_backlog(path: Path, stories: Mapping[str, str], sprint: str = "") -> None:
    """The backlog: quoted cells, commas and line breaks inside some, so that a careless rewrite shows.

    Each row says that it belongs to `sprint`.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(HEADER)
        for story, needs in stories.items():
            cells = {
                "Story_ID": story, "Title": f"Story, {story}", "User_Story": "As a user,\nI want it",
                "Dependencies": needs, "Acceptance_Criteria": "1. it works", "Priority": "High", "Status": "Backlog",
                "Sprint_ID": sprint,
            }  # fmt: skip
            writer.writerow([cells.get(column, "") for column in HEADER])
