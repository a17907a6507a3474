"""Sprints of the board's tests: the packaged example half way through, and one of hostile and failed stories.

Each is run once by a real daemon with a scripted team, and copied for the tests of a file.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.daemon_server import RealDaemon
from tests.support import Team, breakdown, delivery, make_repo, reviewed, suite_text, task, write_backlog

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


MARK = "executed"
"""A property of `window` that every hostile text tries to set."""
MARKUP = (
    f"<img src=x onerror=\"window.{MARK}='image'\"><script>window.{MARK}='script'</script> {'W' * 300} &lt;b&gt;"
    f"<svg onload=\"window.{MARK}='svg'\"><iframe srcdoc='<script>parent.{MARK}=1</script>'></iframe>"
    f"</pre></textarea></title></template>{{{{ 7 * 7 }}}}{{% raw %}}<a href=\"javascript:window.{MARK}='link'\">go</a>"
    f" \"' onmouseover=window.{MARK}=1 x=\"'"
)
"""Elements and attributes that execute, ends of elements, template syntax, a word without an end."""
HOSTILE = f"\u202etxt.exe\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x9b2J {MARKUP}"
"""With a changed direction and terminal escapes, too."""
LINE = "x" * 1_000_000
"""A line that no window holds."""


def hostile(folder: Path) -> None:
    """Stories whose every text is hostile: H-1 done, H-2 (plan), H-3 (conflict) and H-7 or H-8 (merge) wait for a
    person, H-4 and H-9 failed, H-5 is blocked by the first, H-6 has a red suite."""
    stories = {f"H-{number}": "" for number in range(1, 10)} | {"H-5": "H-4"}
    rows = [
        {
            "Story_ID": story,
            "Title": f"{story} {HOSTILE}",
            "Dependencies": needs,
            "Acceptance_Criteria": f"1. {HOSTILE}",
        }
        for story, needs in stories.items()
    ]
    write_backlog(folder / "backlog.csv", *rows)
    make_repo(folder / "repo", {"shared.py": "ONE = 1\n"})
    team = Team()
    _reviewed(team, "H-1")
    for turn in range(3):
        team.say("mike", "H-2", "breakdown", circular("H-2").replace("Search over", f"{turn} {_json(HOSTILE)}"))
    conflict = {"detected": True} | {name: f"{name}: {HOSTILE} {LINE}" for name in CONFLICT if name != "detected"}
    team.say("mike", "H-3", "breakdown", breakdown("H-3") | {"architectural_conflict": conflict, "tasks": []})
    team.plan("H-4", ["h_4.py"])
    for _ in range(3):
        team.deliver("H-4", 1, {f"<img src=x onerror=window.{MARK}=1>.py": HOSTILE, "../h_4.py": HOSTILE})
    team.plan("H-6", ["h_6.py"])
    team.deliver("H-6", 1, {"h_6.py": "def value():\n    return 1\n"})
    prints = f"    print({HOSTILE!r}, {LINE[:1000]!r} * 1000)\n    assert value() == 2, {HOSTILE!r}\n"
    team.suite("H-6", f"from h_6 import value\n\n\ndef test_h_6():\n{prints}")
    for story, value in (("H-7", 2), ("H-8", 3)):
        team.say("mike", story, "breakdown", breakdown(story, ["shared.py"]), latency_ms=300)
        team.deliver(story, 1, {"shared.py": f"ONE = {value}  # {MARKUP}\n"})
        team.suite(story, f"import shared\n\n\ndef test_{value}():\n    assert shared.ONE == {value}\n")
    team.plan("H-9", ["long.txt"])
    team.deliver("H-9", 1, {"long.txt": f"{LINE}\n{MARKUP}\n"})
    team.write(folder / "team.jsonl")


def _reviewed(team: Team, story: str) -> None:
    """A story that is done after a review whose words are hostile, with an answer that had to be healed."""
    module = "def value():\n    return 1"
    team.plan(story, task(story, 1, ["h_1.py"], description=HOSTILE))
    team.deliver(story, 1, {"h_1.py": f"{module}  # {HOSTILE}\n"})
    team.review(story, 1, reviewed("No", f"[h_1.py:2] {HOSTILE}"))
    text = json.dumps(delivery(story, 1, {"h_1.py": f"{module}  # {MARKUP}\n"}))
    team.say("alex", story, "delivery", f"{HOSTILE}\n\n```json\n{text[:-1]},}}\n```\n{HOSTILE}", task=1)
    team.review(story, 1, reviewed("Yes"))
    team.suite(story, suite_text(story))


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]


@dataclass(frozen=True, kw_only=True)
class Sprint:
    """What is run once."""

    lay_out: Callable[[Path], None]
    """Writes backlog.csv, team.jsonl and repo."""
    settled: tuple[str, ...]
    """Texts of the log by which each story has come to where it stays."""


_ENDS = ("H-1 is done", "H-4 is failed", "H-5 is blocked", "H-6 is needs_attention", "H-9 is failed")
SPRINTS = {
    "library": Sprint(
        lay_out=library,
        settled=("US-003 waits for a person", "alex is asked: delivery T-US-005-01", "US-006 waits for a person"),
    ),
    "hostile": Sprint(
        lay_out=hostile,
        settled=(*_ENDS, "H-2 waits for a person", "H-3 waits for a person", "could not be merged"),
    ),
}


def make_sprint(name: str, folder: Path) -> None:
    """Runs one until nothing more happens, and ends its daemon."""
    folder.mkdir()
    SPRINTS[name].lay_out(folder)
    daemon = serve(folder, folder).start()
    try:
        daemon.until(lambda: all(text in daemon.log.read_text() for text in SPRINTS[name].settled))
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
