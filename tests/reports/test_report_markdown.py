"""report.md, word for word for a small sprint."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.event import Event
from orchestrator.core.finding import Where, critical, major
from orchestrator.core.history import fold
from orchestrator.core.sprint import (
    CaseOutcome,
    JudgedCase,
    SprintRecord,
    StoryOutcome,
    StoryStatus,
    TaskOutcome,
    TaskStatus,
    TestsOutcome,
)
from orchestrator.core.suite import SandboxFacts, Tier
from orchestrator.reports.markdown import Places, render_report
from orchestrator.reports.report import REST, STAGES, build_report, with_facts

START = datetime(2026, 1, 1, tzinfo=UTC)
RECORD = SprintRecord(
    sprint="SP-001", backlog="/b.csv", repo="/my app", base="", story_ids=("A", "B", "C"), started_at=START,
    criteria={"A": ("A book | can be lent", "A book can come back"), "B": ("Finds by title",)},
)  # fmt: skip
PLACES = Places(backlog="/b.csv", repo="/my app", mirror="/s/m.git", replies={"A": "../../replies/SP-001/A@2"})


def event(story: str, number: int | str, name: str, after_s: float = 0, message: str = "", **data: Any) -> Event:
    known = {"task": data.pop("task", None), "persona": data.pop("persona", None)}
    return Event(
        id=f"SP-001/{story}:{number}", time=START + timedelta(seconds=after_s), name=name, message=message,
        sprint="SP-001", story=story, data=data, **known,
    )  # fmt: skip


def turn(story: str, number: int, purpose: str, ms: int, cost: float | None) -> Event:
    spent = {"input_tokens": 100, "cached_tokens": 40, "output_tokens": 10, "cost_usd": cost, "paid": True}
    persona = "mike" if purpose == "breakdown" else "alex"
    return event(story, number, "turn_finished", purpose=purpose, duration_ms=ms, persona=persona, **spent)


def ended(after_s: float, **fields: Any) -> Event:
    outcome = StoryOutcome(**fields).model_dump(mode="json")
    return event(fields["id"], "story_finished", "story_finished", after_s, outcome=outcome)


TESTS = TestsOutcome(
    run=3,
    passed=2,
    failed=1,
    cases=(
        CaseOutcome(name="test_lend", criterion="A book | can be lent", result="passed"),
        CaseOutcome(name="test_lend", criterion="A book | can be lent", result="passed"),
        CaseOutcome(name="test_more", criterion="something else", result="failed"),
        CaseOutcome(name="test_old", result="passed"),
    ),
)
EVENTS = [
    event("A", "story_started", "story_started"),
    turn("A", 1, "breakdown", 2000, 0.01),
    event("A", "1a", "plan_judged", message="plan 1: revise", stage="plan", verdict="revise"),
    event("A", "1b", "plan_judged", message="plan 2: valid", stage="plan", verdict="valid"),
    event("A", 2, "answer_healed", message="mike's breakdown was not valid JSON and healed: fence x1"),
    event("A", "2a", "files_shown", files=["only_read.py"]),
    turn("A", 3, "delivery", 4000, None),
    event("A", 4, "task_committed", task="T-A-01", commit="01", files=["a.py", "b.py"]),
    event("A", 5, "answer_sent_back", message="alex's delivery is sent back", task="T-A-02"),
    event("A", 6, "suite_committed", commit="02", files=["tests/test_a.py"]),
    event("A", 7, "tests_finished", duration_ms=500),
    ended(
        7.5, id="A", status=StoryStatus.NEEDS_ATTENTION, attempts=3, tests=TESTS, before={"test_lend": "not judged"},
        hollow={"test_lend": "failed"},
        branch="orchestrator/SP-001/A",
        commit="0123456789abcdef", tasks=(TaskOutcome(id="T-A-01", status=TaskStatus.DONE),),
        findings=(major("test.failed", "after 3 attempts: 1 failed", where=Where(file="a.py"), fix="see `show`"),),
    ),
    ended(8, id="B", status=StoryStatus.BLOCKED, findings=(major("story.blocked", "blocked by A", fix="reset A"),)),
]  # fmt: skip
EXPECTED = """\
# Sprint SP-001

1 pending, 1 needs_attention, 1 blocked. 2 calls, 200 tokens in (80 of them cached), 20 out; cost unknown.

| Story | Title | Status | Tests | Attempts | Calls | Cost | Time |
| --- | --- | --- | --- | --- | --- | --- | --- |
| A | Lend \\| return | needs_attention | 2/3 | 3 | 2 | unknown | 7.5 s |
| B | Search | blocked | none run | 0 | 0 | 0.0000 USD | 0.0 s |
| C |  | pending | none run | 0 | 0 | 0.0000 USD | 0.0 s |

| Persona | Calls | Tokens in | From the cache | Tokens out | Cost |
| --- | --- | --- | --- | --- | --- |
| alex | 1 | 100 | 40% | 10 | unknown |
| mike | 1 | 100 | 40% | 10 | 0.0100 USD |

- Backlog `/b.csv`, repository `/my app`
- A branch named below: `git -C '/my app' fetch /s/m.git BRANCH`, then `git log -p FETCH_HEAD`
- A file of it: `git --git-dir /s/m.git show BRANCH:FILE`

## A: Lend \\| return

**needs_attention**. 2 calls, 200 tokens in (80 of them cached), 20 out; cost unknown.

- Branch `orchestrator/SP-001/A` at `0123456789ab`
- Tasks: T-A-01 (done)
- Files: `a.py`, `b.py`, `tests/test_a.py`
- [Prompts and answers](<../../replies/SP-001/A@2>)

### Acceptance criteria

| No | Criterion | Test | Result | Shown by |
| --- | --- | --- | --- | --- |
| 1 | A book \\| can be lent | `test_lend` | passed (2 times) | fails without what its functions do |
| 2 | A book can come back | — | not covered | — |
| — | something else | `test_more` | failed | — |
| — |  | `test_old` | passed | — |

### Findings

- major `test.failed` (`a.py`): after 3 attempts: 1 failed → see `show`

### What was not right and how it went on

- plan 1: revise
- mike's breakdown was not valid JSON and healed: fence x1
- alex's delivery is sent back (T-A-02)

### Time per stage

```text
planning                      ███████████████                 2.0 s
building                      ██████████████████████████████  4.0 s
running tests                 ████                            0.5 s
git, installs, merges, waits  ████████                        1.0 s
```

## B: Search

**blocked**. 0 calls, 0 tokens in, 0 out; cost 0.0000 USD.

### Acceptance criteria

| No | Criterion | Test | Result | Shown by |
| --- | --- | --- | --- | --- |
| 1 | Finds by title | — | not covered | — |

### Findings

- major `story.blocked`: blocked by A → reset A

## C

**pending**. 0 calls, 0 tokens in, 0 out; cost 0.0000 USD.
"""


def test_the_whole_text() -> None:
    histories = fold(RECORD, EVENTS)
    titled = RECORD.model_copy(update={"titles": {"A": "Lend | return", "B": "Search"}})
    report = build_report(titled, histories)
    assert render_report(report, histories, PLACES) == EXPECTED
    first = report.model_dump(mode="json")["stories"][0]
    assert [(row["criterion"], len(row["tests"])) for row in first["criteria"]] == [
        ("A book | can be lent", 2),
        ("A book can come back", 0),
    ]
    assert first["healings"][2] == {
        "event": "answer_sent_back", "message": "alex's delivery is sent back", "task": "T-A-02"
    }  # fmt: skip
    assert {time["stage"]: time["duration_s"] for time in first["stages"]} == dict.fromkeys(STAGES, 0.0) | {
        "planning": 2.0, "building": 4.0, "running tests": 0.5, REST: 1.0
    }  # fmt: skip


def test_files_are_those_that_the_diff_changes_and_older_tests_of_the_plan_are_named() -> None:
    plan = {"tasks": [], "tests_to_change": [{"file": "tests/test_old.py", "reason": "the total | is rounded now"}]}
    begun = [
        event("A", 1, "plan_judged", stage="plan", verdict="valid", plan=plan),
        event("A", 2, "task_committed", commit="01", files=["a.py", "b.py", "same.py"]),
        event("A", 3, "task_committed", commit="02", files=["c.py"], removed=["b.py"]),
    ]

    def lines(events: list[Event]) -> list[str]:
        histories = fold(RECORD, events)
        text = render_report(build_report(RECORD, histories), histories, PLACES)
        return [line for line in text.splitlines() if line.startswith(("- Files", "- Older"))]

    older = "- Older tests that the plan changes: `tests/test_old.py` (the total \\| is rounded now)"
    assert lines(begun) == ["- Files: `a.py`, `same.py`, `c.py`", older]
    changed = {"a.py": "M", "c.py": "A", "old.py": "D"}
    done = ended(9, id="A", status=StoryStatus.FAILED, branch="x", changed=changed)
    assert lines([*begun, done]) == ["- Files: `a.py`, `c.py` (new), `old.py` (removed)", older]


SHOWN = [
    ({"before": "failed"}, "fails without the story's change"),
    ({"before": "not judged", "hollow": "failed"}, "fails without what its functions do"),
    ({"before": "passed"}, "passes without the story's change too"),
    ({"before": "not judged", "hollow": "passed"}, "passes without what its functions do too"),
    ({}, "passes only: no other run judged it"),
    ({"result": "failed", "before": "failed"}, ""),
]


@pytest.mark.parametrize(("case", "shown_by"), SHOWN)
def test_how_a_passing_test_was_shown(case: dict[str, str], shown_by: str) -> None:
    assert JudgedCase.model_validate({"name": "t", "result": "passed", **case}).shown_by == shown_by


def test_hostile_words_break_no_table_and_no_length() -> None:
    finding = major("x.y", "a\n| b ``` <script> " + "z" * 5000, where=Where(file="a`b.py"), fix="| do\nthat")
    outcome = ended(1, id="A", status=StoryStatus.FAILED, findings=(finding,) * 1 + tuple(
        major("n", f"number {n}") for n in range(500)
    ))  # fmt: skip
    histories = fold(RECORD, [outcome])
    titled = RECORD.model_copy(update={"titles": {"A": "t\n# no heading"}})
    text = render_report(build_report(titled, histories), histories, PLACES)
    assert len(text) < 20_000
    assert "<script>" not in text
    assert "\n# no heading" not in text
    assert "``a`b.py``" in text.replace("`` ", "``").replace(" ``", "``")
    assert "… and 441 more" in text


def test_a_conflict_is_told_with_all_its_four_texts() -> None:
    texts = "; ".join(f"{name}: {'word ' * 50}" for name in ("current", "requires", "reason", "recommended"))
    finding = critical("breakdown.conflict", texts)
    histories = fold(RECORD, [ended(1, id="A", status=StoryStatus.CONFLICTED, findings=(finding,))])
    assert " ".join(texts.split()) in render_report(build_report(RECORD, histories), histories, PLACES)


def test_the_tier_of_the_commands_is_told() -> None:
    histories = fold(RECORD, EVENTS)
    facts = SandboxFacts(tier=Tier.PLAIN, holds=("limits",), missing=("files", "network"), note="bubblewrap | none")
    report = with_facts(build_report(RECORD, histories), {"sandbox": facts})
    assert report.model_dump(mode="json")["totals"]["sandbox"] == facts.model_dump(mode="json")
    told = "Commands ran in the sandbox tier `plain`. Held: limits. Missing: files, network. bubblewrap \\| none"
    assert f"\n\n{told}\n\n" in render_report(report, histories, PLACES)
    assert with_facts(report, {"sandbox": None}) == report


def test_looks_are_counted_apart_from_the_calls_that_they_are() -> None:
    looks = [event("A", number, "files_shown", files=["a.py"], only=True) for number in (10, 11)]
    histories = fold(RECORD, [*EVENTS[:-3], *looks])
    report = build_report(RECORD, histories)
    assert (report.stories[0].calls, report.stories[0].looks, report.totals["looks"]) == (2, 2, 2)
    assert "2 calls, 2 of them looks, 200 tokens in" in render_report(report, histories, PLACES)
