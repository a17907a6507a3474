"""The sprint of the board's tests: the packaged example half way through.

It is run once by a real daemon with a scripted team, and copied for the tests of a file.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.daemon_server import RealDaemon
from tests.support import make_repo

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library"
LONG_MS = 3_600_000
"""What a call takes whose story is to stay at work."""
CONFLICT = {
    "detected": True,
    "current_architecture": "Loans live in one file of one desk, which no other desk can read.",
    "story_requirement": "Every desk sees the same line of waiting members at once.",
    "conflict_reason": "A line that two desks keep apart gives one book to two members.",
    "recommended_action": "Decide first whether the desks share a database.",
}


def library(folder: Path) -> None:
    """The example: US-003 and US-006 wait for a person, US-005 is at work, US-007 is to come, the others are done."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    make_repo(folder / "repo")
    entries = [json.loads(line) for line in (EXAMPLE / "team.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = [line for entry in entries for line in _changed(entry)]
    (folder / "team.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _changed(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    story, purpose = entry["story"], entry["purpose"]
    line = {**entry, "latency_ms": 0}
    if story == "US-003" and purpose == "breakdown":  # cut off in the example; here it contradicts itself three times
        return [{**line, "turn": turn, "stop_reason": "end_turn", "text": circular(story)} for turn in (1, 2, 3)]
    if story == "US-005" and purpose == "delivery":
        return [{**line, "latency_ms": LONG_MS}]
    if story == "US-006" and purpose == "breakdown":
        plan = json.loads(entry["text"]) | {"architectural_conflict": CONFLICT, "tasks": [], "task_count": 0}
        return [{**line, "text": json.dumps(plan)}]
    return [line]


def circular(story: str) -> str:
    """A plan of two tasks each of which needs the other, and one that writes no file."""
    tasks = [
        {"description": "Words without capitals and accents.", "files_to_create": ["shelf/words.py"], "needs": ["02"]},
        {"description": "Search over a list of books.", "files_to_create": ["shelf/search.py"], "needs": ["01"]},
        {"description": "The command find.", "files_to_create": [], "needs": []},
    ]
    plan = [
        {
            "task_id": f"T-{story}-{number:02d}", "description": task["description"],
            "files_to_create": task["files_to_create"],
            "dependencies": [f"T-{story}-{need}" for need in task["needs"]], "dependency_reason": "They fit together.",
        }
        for number, task in enumerate(tasks, start=1)
    ]  # fmt: skip
    return json.dumps(
        {
            "story_id": story, "architectural_conflict": {"detected": False}, "task_count": len(plan), "tasks": plan,
            "dependencies": {"dependencies": {}, "devDependencies": {}},
        }
    )  # fmt: skip


SETTLED = ("US-003 waits for a person", "alex is asked: delivery T-US-005-01", "US-006 waits for a person")
"""Texts of the log by which each story has come to where it stays."""


def make_sprint(folder: Path) -> None:
    """Runs it until nothing more happens, and ends its daemon."""
    folder.mkdir()
    library(folder)
    daemon = serve(folder, folder).start()
    try:
        daemon.until(lambda: all(text in daemon.log.read_text() for text in SETTLED))
    finally:
        daemon.end()


def serve(folder: Path, origin: Path, *words: str) -> RealDaemon:
    """A `serve` in a folder, over the backlog, team and repository of another; not started."""
    settings = ("gate.mode=escalations", "serve.poll_s=0.2", "provider.wait_initial_s=0", "shutdown.grace_s=0")
    more = ("sprint.stop_after_failures=0", "test.max_attempts=1")
    given = [word for one in (*settings, *more) for word in ("--set", one)]
    files = {"--backlog": "backlog.csv", "--repo": "repo", "--script": "team.jsonl"}
    named = [word for option, file in files.items() for word in (option, str(origin / file))]
    return RealDaemon(folder, *named, "--provider", "scripted", *given, *words)
