"""A story's path drawn: what is folded, what goes on now, and `show` over a run in which much goes wrong once."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.show import draw_lines
from orchestrator.core.command import Loop, Verdict, decided
from orchestrator.core.event import Event
from orchestrator.core.finding import major
from orchestrator.core.sprint import TaskStatus
from orchestrator.reports.path import as_data, timeline
from tests.support import (
    PLAIN_TESTS,
    Team,
    breakdown,
    plain_environment,
    play,
    run_cli,
    suite_text,
    task,
    write_backlog,
)

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


def event(number: int, name: str, message: str = "", *, after_s: float = 0, **data: Any) -> Event:
    known = {"time": START + timedelta(seconds=after_s), "task": data.pop("task", None)}
    return Event(id=f"S/A:{number}", name=name, message=message, sprint="S", story="A", data=data, **known)


def drawn(events: Sequence[Event], *, ascii_only: bool = False, **how: Any) -> list[str]:
    how = {"running": False, "now": START + timedelta(hours=5), "finished": True, **how}
    return [line.plain for line in draw_lines(timeline(events, **how), ascii_only=ascii_only)]


def done(number: int, **more: Any) -> Event:
    said = decided(Loop.BUILD, TaskStatus.DONE, attempt=1, budget_left=2)
    return event(number, "task_finished", task=f"T-{number:02d}", status="done", **said, **more)


def sent_back(number: int, attempt: int, code: str = "a.b", **more: Any) -> Event:
    found = [major(code, f"no {attempt}")]
    said = decided(Loop.ANSWER, Verdict.SENT_BACK, findings=found, attempt=attempt, budget_left=3 - attempt)
    return event(number, "answer_sent_back", task="T-01", purpose="delivery", **said, **more)


def test_repeated_steps_become_one_line() -> None:
    trouble = [sent_back(1, 1), sent_back(2, 2), sent_back(3, 2, "c.d")]
    assert drawn([*trouble, done(4), sent_back(45, 1), done(46)]) == [
        "  08:00:00             ↻ T-01: delivery 2 of 3 sent back (no 2) [2 times]",
        "  08:00:00             ↻ T-01: delivery 2 of 3 sent back (no 2)",
        "  08:00:00           ✓ T-04 done",
        "  08:00:00             ↻ T-01: delivery 1 of 3 sent back (no 1)",
        "  08:00:00           ✓ T-46 done",
    ]
    assert len(drawn([sent_back(n, 1) for n in range(5000)])) == 1
    assert len(drawn([sent_back(n, 1) for n in range(50)], full=True)) == 50


def judged(number: int, verdict: Verdict, task: str, attempt: int = 1) -> Event:
    found = [major("review.comment", "no")] if verdict is not Verdict.APPROVED else []
    said = decided(Loop.REVIEW, verdict, findings=found, attempt=attempt, budget_left=2 - attempt)
    return event(number, "review_judged", task=task, reviews=[{"by": "reviewer"}], **said)


def test_that_a_task_is_approved_is_told_with_its_end() -> None:
    smooth = [judged(105, Verdict.APPROVED, "T-05"), done(5)]
    back = judged(1, Verdict.SENT_BACK, "T-15")
    stuck = judged(3, Verdict.UNAPPROVED, "T-16", 2)
    again = judged(2, Verdict.APPROVED, "T-15", 2)
    assert drawn([*smooth, back, again, done(15), stuck, judged(4, Verdict.APPROVED, "T-17")]) == [
        "  08:00:00           ✓ T-05 done [approved]",
        "  08:00:00             ↻ T-15 review 1 of 2 by reviewer: sent back (no)",
        "  08:00:00           ✓ T-15 done [approved in review 2]",
        "  08:00:00             ✗ T-16 review 2 of 2 by reviewer: goes on unapproved (no)",
        "  08:00:00             ✓ T-17 review 1 of 2 by reviewer: approved",
    ]


def test_times_gaps_and_days() -> None:
    began = event(1, "story_started")
    late = event(2, "story_finished", "A is done", after_s=3700, status="done")
    assert drawn([began, late]) == ["  08:00:00           ○ begins", "  09:01:40  +1 h 1 m ✓ A is done"]
    days = drawn([began, event(2, "story_finished", "A is cancelled", after_s=200_000, status="cancelled")])
    assert days == ["  01-01 08:00:00           ○ begins", "  01-03 15:33:20  +2 d 7 h ✗ A is cancelled"]


def test_what_goes_on_now() -> None:
    events = [event(1, "story_started"), event(2, "turn_started", "the developer is asked: delivery", after_s=60)]
    now = START + timedelta(seconds=100)

    def last(*more: Event, running: bool = True, finished: bool = False) -> str:
        line = drawn([*events, *more], running=running, now=now, finished=finished)[-1]
        return line.split(maxsplit=1)[1].lstrip()

    assert last() == "+1 m ▸ the developer is asked: delivery, for 40 s now"
    assert last(event(3, "turn_finished", after_s=70)) == "+1 m ▸ at work, for 30 s now"
    suite = event(4, "activity_begun", "running the whole suite", after_s=75)
    assert last(event(3, "turn_finished", after_s=70), suite) == "+1 m ▸ running the whole suite, for 25 s now"
    assert last(running=False) == "+1 m ▸ nobody works on it: the command that began the sprint goes on"
    assert last(finished=True, running=False) == "○ begins"
    asked = decided(Loop.GATE, Verdict.ASKED, attempt=1, budget_left=0)
    opened = event(3, "gate_opened", "A waits", after_s=70, gate={"reason": "too big"}, **asked)
    assert last(opened, running=False) == "+1 m ? waits for a person: too big [for 30 s now]"
    answered = event(4, "gate_answered", "A: approved by anna", after_s=80)
    assert last(opened, answered, running=False).endswith("? A: approved by anna; it counts when the story goes on")
    assert drawn([], finished=False) == ["  has not started"]


def test_foreign_text_gives_no_orders_and_fits_every_encoding() -> None:
    found = [major("a.b", "\x1b[2Jgone \u202eétat → … sk-ant-api03-" + "a1B2" * 20)]
    said = decided(Loop.ANSWER, Verdict.SENT_BACK, findings=found, attempt=1, budget_left=2)
    events = [event(1, "answer_sent_back", purpose="suite", **said)]
    (line,) = drawn(events)
    assert line.isprintable()
    assert "a1B2a1B2" not in line
    (plain,) = drawn(events, ascii_only=True)
    assert plain.isascii()
    assert "~ suite 1 of 3 sent back" in plain
    assert "a1B2a1B2" not in json.dumps(as_data(timeline(events, running=False, now=START, finished=True)))


def walk(team: Team) -> None:
    """A revised plan, retries, a healed answer, answers sent back, a red run with its analysis, a merge."""
    team.say("mike", "WALK", "breakdown", "", error="overloaded")
    team.plan("WALK", task("WALK", 1, ["walk.py"], task_id="one"), ["../x"])
    plan = json.dumps(breakdown("WALK", task("WALK", 1, ["walk.py"], "python -c 'import walk'"), ["more.py"]))
    team.say("mike", "WALK", "breakdown", f"{plan[:-1]},}}")
    for text in ("def value(:\n", "def value(:\n", "def value():\n    return 2\n"):
        team.deliver("WALK", 1, {"walk.py": text})
    team.deliver("WALK", 2, {"more.py": "MORE = 1\n"})
    team.suite("WALK", suite_text("WALK"))
    team.analyse("WALK", ("walk.py", "return 1"))
    team.deliver("WALK", 1, {"walk.py": "def value():\n    return 1\n"})


PATH = (
    "○ begins",
    "↻ plan 1 of 3 with 2 tasks: revise (`../x` is unsafe: it climbs out with `..`) [1 retry]",
    "✓ plan 2 of 3 with 2 tasks: valid [healed: trailing comma]",
    "? waits for a person: each plan is shown to a person",
    "✗ the plan is not answered in time [after SOON]",
    "✓ contract frozen: 2 files and 0 new packages",
    "  ↻ T-WALK-01: delivery 2 of 3 sent back (Python does not parse: invalid syntax) [2 times]",
    "✓ T-WALK-01 done [command passed, accepted at reply 3 of 3, approved]",
    "✓ T-WALK-02 done [approved]",
    "✓ suite tests/test_walk.py with 1 test",
    "↻ tests 1 of 2: 0 passed, 1 failed, to be mended",
    "  ↻ the failure was analysed: walk.py: it is wrong",
    "✓ T-WALK-01 done for attempt 2 of 2 [command passed, approved in review 2]",
    "○ tests without the story's change: 1 not judged",
    "✓ tests 2 of 2: 1 passed, 0 failed",
    "✓ merged as HASH",
    "✓ WALK is done",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    team = Team()
    walk(team)
    gate = ("gate.mode=always", "gate.timeout_s=0.01", "gate.on_timeout=approve")
    backlog = write_backlog(folder / "b.csv", "WALK", "NEVER", "LATER < NEVER")
    played = play(folder, team, backlog, "test.max_attempts=2", PLAIN_TESTS, *gate)
    assert played.status("WALK") == "done"
    return folder


def shown(place: Path, *args: str, **env: str) -> str:
    done = run_cli(["show", *args], place, plain_environment(ORCHESTRATOR_HOME=str(place / "state"), **env))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_show_draws_the_path_of_a_story_and_the_rest_below(place: Path) -> None:
    text = shown(place, "WALK")
    head, _, rest = text.partition("\n\n")
    first, *told = head.splitlines()
    assert re.fullmatch(r"Path of WALK, started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC:", first)
    same = [re.sub("as [0-9a-f]{10}$", "as HASH", re.sub(r"after \d+ s", "after SOON", line)) for line in told]
    plain = [re.sub(r"^  [\d:]{8} {11}", "", line) for line in same]
    assert tuple(plain) == PATH
    assert rest.startswith("WALK in sprint SP-001: done")
    assert shown(place, "WALK", PYTHONIOENCODING="ascii").partition("\n\n")[0].isascii()
    assert "✗ LATER is blocked: blocked by NEVER" in shown(place, "LATER")


def test_show_full_has_a_line_per_event_and_json_the_same_steps(place: Path) -> None:
    told = json.loads(shown(place, "WALK", "--json"))
    assert told["history"][0]["event"] == "story_started"
    assert len(told["timeline"]) == len(PATH)
    judged = told["timeline"][1]
    assert {name: judged[name] for name in ("stage", "verdict", "attempt", "budget_left", "notes")} == {
        "stage": "plan", "verdict": "revise", "attempt": 1, "budget_left": 2, "notes": ["1 retry"],
    }  # fmt: skip
    full = json.loads(shown(place, "WALK", "--json", "--full"))
    assert len(full["timeline"]) == len(full["history"]) > len(PATH)
    assert "turn_started: " in shown(place, "WALK", "--full")
