"""People answer a story's question: from any terminal, once, and with a clear word where they cannot."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.core.command import GATE_ANSWERED, NOBODY, Choice, GateAnswer, answer_id
from orchestrator.core.event import Event
from orchestrator.core.finding import major, minor
from orchestrator.core.sprint import StoryStatus
from orchestrator.story.gate import conflict_gate
from tests.cli.waiting import CONFLICT, NOON, SPRINT, Waiting, about_conflict, about_plan, plan
from tests.support import task

ISSUE = major("breakdown.test_file", "`test_a.py` is a test file", fix="Leave it out.")
HARD = major("breakdown.unsafe_path", "`../x` is unsafe", fix="Name it by its path.")


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    monkeypatch.chdir(tmp_path)
    return Waiting(tmp_path)


@pytest.mark.parametrize(
    ("words", "choice", "said"),
    [
        (["approve", "US-1"], Choice.APPROVE, "US-1: the plan is approved by anna"),
        (["reject", "US-1", "--comment", " no\n tables "], Choice.REJECT, "the plan is rejected by anna: no tables"),
        (["replan", "US-1"], Choice.REPLAN, "by anna"),
        (["cancel", "US-1", "--comment", "no more"], Choice.CANCEL, "the plan is given up by anna: no more"),
    ],
)
def test_an_answer_is_recorded_and_told(waiting: Waiting, words: list[str], choice: Choice, said: str) -> None:
    waiting.ask("US-1")
    done = waiting.cli(*words, "--gate", "1")
    assert done.exit_code == 0, done.output
    assert said in done.stdout
    assert "the same run command resumes it" in done.stdout
    (answer,) = waiting.answers()
    assert (answer.choice, answer.by, answer.number) == (choice, "anna", 1)
    assert answer.comment == (words[-1].strip() if "--comment" in words else "")
    second = waiting.cli("cancel", "US-1")
    assert second.exit_code == 2
    assert "US-1 waits for no answer: it is at work; question 1 of US-1 was answered already" in second.stderr
    assert len(waiting.answers()) == 1


def test_an_answer_as_json(waiting: Waiting) -> None:
    waiting.ask("US-1", about_conflict("US-1"))
    told = json.loads(waiting.cli("approve", "US-1", "--comment", "go on", "--json").stdout)
    assert datetime.fromisoformat(told.pop("answered_at")) > NOON
    assert told == {
        "sprint": SPRINT, "story": "US-1", "gate": 1, "counts": True, "choice": "approve", "by": "anna",
        "comment": "go on", "running_pid": None, "running_on": "", "begun_by": "run",
        "message": "US-1: the conflict is overridden by anna: go on",
    }  # fmt: skip
    assert "the conflict is overridden by anna: go on" in waiting.cli("logs", "--story", "US-1").stdout


def ask_twice(waiting: Waiting) -> None:
    waiting.ask("US-1")
    assert waiting.cli("reject", "US-1", "--comment", "once more").exit_code == 0
    waiting.ask("US-1")


def ended(status: StoryStatus) -> Callable[[Waiting], object]:
    return lambda waiting: (waiting.ask("US-2"), waiting.finish("US-2", status))


def reset(waiting: Waiting) -> None:
    waiting.ask("US-1")
    waiting.state.save(waiting.record.reset(("US-1",)))


def ask_what_takes_little(waiting: Waiting) -> None:
    waiting.ask("US-1", about_plan("US-1", HARD))
    waiting.ask("US-2", about_plan("US-2", ISSUE, plan_file="plans/us-2.md"))
    waiting.ask("US-3", about_conflict("US-3"))


REPLAN = "it ended as failed; `orchestrator replan US-2 --comment TEXT` has it planned again"
BARRED = "be carried out as it is: `../x` is unsafe; it takes reject, edit, replan, cancel"


REFUSED: dict[Callable[[Waiting], object], dict[str, str]] = {
    ask_twice: {
        "approve US-9": "unknown story US-9; did you mean US-1?",
        "approve US-1 --sprint S9": "unknown sprint S9",
        "approve US-2": "US-2 waits for no answer: it has not started",
        "approve US-1 --gate 1": "the plan is rejected by anna: once more; question 2 stands now: look",
        "approve US-1 --gate 7": "US-1 has no question 7: question 2 is open",
        "replan US-2 --gate 1": "US-2 has no question 1: no question is open",
        "reject US-1 --comment=": "the comment is empty",
        "reject US-1": "--comment",
        "approve US-1 --comment \udcff": "the comment is not UTF-8",
        f"reject US-1 --comment {'x' * 10_001}": "the comment has more than 10000 characters",
    },
    ended(StoryStatus.DONE): {"approve US-2": "it is done"},
    ended(StoryStatus.BLOCKED): {"approve US-2": "it is blocked by US-1"},
    ended(StoryStatus.FAILED): {"approve US-2": REPLAN},
    reset: {"approve US-1": "it has not started"},
    ask_what_takes_little: {
        "approve US-1": BARRED,
        "reject US-2 --comment x": "which the architect does not rewrite: edit it, or",
        "edit US-3": "a conflict is not settled in the plan: approve overrides it",
    },
}


@pytest.mark.parametrize("before", REFUSED)
def test_what_cannot_be_answered_is_told(waiting: Waiting, before: Callable[[Waiting], object]) -> None:
    before(waiting)
    known = [waiting.answers(story) for story in waiting.record.story_ids]
    for words, said in REFUSED[before].items():
        done = waiting.cli(*words.split(" "))
        assert done.exit_code == 2, words
        assert said in done.stderr
        assert [waiting.answers(story) for story in waiting.record.story_ids] == known


def test_a_person_sees_the_whole_plan_as_it_was_written_and_what_would_be_built(waiting: Waiting) -> None:
    design = {
        "dependencies": {"dependencies": {"flask": "^3.0"}, "devDependencies": {"pytest": "*"}},
        "acceptance_tests": [{"criterion": "it works", "test": "calls it once"}],
        "tests_to_change": [{"file": "tests/test_old.py", "reason": "the list is sorted now"}],
        "api_design": {"GET /shelves": {"returns": "all shelves"}},
    }
    described = f"Store the shelves.\n{'Each shelf has a name. ' * 20}end"
    tasks = [task("US-1", 1, ["app.py", "database"]) | {"description": described}, task("US-1", 2, ["b.py"])]
    written, mended = plan("US-1", *tasks, **design), plan("US-1", ["app.py"], ["b.py"], **design)
    struck = minor("breakdown.struck", "`database` was struck from US-1", fix="Name a file.")
    waiting.judge("US-1", written, major("breakdown.unsafe_path", "`database` is no file"), ISSUE)
    waiting.ask("US-1", about_plan("US-1", plan=mended, changes=[struck]))
    text = waiting.cli("show", "US-1").stdout
    for part in (
        "Plan as the architect wrote it, not accepted so far:",
        described.replace("\n", "\n      "),
        "files: app.py, database",
        "Packages: flask ^3.0",
        "Packages for development: pytest *",
        "it works -> calls it once",
        "Older tests to change: tests/test_old.py: the list is sorted now",
        "  Api design:\n    GET /shelves:\n      returns: all shelves",
        "Found in it:",
        "`database` is no file",
        "What would be built is its mended form, in which",
        "`database` was struck from US-1",
        "none yet; with this plan it would be: app.py, b.py; flask, pytest",
        "Findings:\n  none so far",
    ):
        assert part in text, (part, text)
    assert "approved" not in text
    shown = json.loads(waiting.cli("show", "US-1", "--json").stdout)
    assert shown["plan"] == mended.model_dump(mode="json")
    assert shown["written"] == written.model_dump(mode="json")


def test_after_the_deadline_nobody_answers(waiting: Waiting) -> None:
    waiting.ask("US-1", deadline=NOON + timedelta(hours=1))
    done = waiting.cli("approve", "US-1")
    assert (done.exit_code, waiting.answers()) == (2, [])
    assert "ended at 2026-03-01 13:00:00 UTC; the story continues as gate.on_timeout says" in done.stderr
    shown = waiting.cli("show", "US-1").stdout
    assert "until 2026-03-01 13:00:00 UTC: question 1" in shown
    assert "the time to answer ended at 2026-03-01 13:00:00 UTC" in shown
    assert "orchestrator approve" not in shown, "no command that cannot work"
    assert "the time to answer is over" in waiting.cli("status").stdout
    waiting.ask("US-2", deadline=datetime.now(UTC) + timedelta(days=1))
    assert waiting.cli("approve", "US-2").exit_code == 0


def test_an_earlier_sprint_in_which_the_story_waits_is_named(waiting: Waiting) -> None:
    waiting.ask("US-1")
    later = waiting.record.model_copy(update={"sprint": "S2", "started_at": NOON + timedelta(hours=1)})
    waiting.state.save(later)
    done = waiting.cli("approve", "US-1")
    assert (done.exit_code, waiting.answers()) == (2, [])
    assert "it has not started; in sprint S1 it waits: --sprint S1" in done.stderr
    assert waiting.cli("approve", "US-1", "--sprint", "S1").exit_code == 0


def test_whoever_comes_after_the_time_is_told_so(waiting: Waiting) -> None:
    gate = waiting.ask("US-1", deadline=NOON)  # it was settled hours later, when somebody ran the sprint again
    late = GateAnswer(number=gate.number, choice=Choice.TIME_OUT, by=NOBODY)
    waiting.emit(
        Event(
            id=answer_id("S1/US-1", 1), time=NOON + timedelta(hours=9), name=GATE_ANSWERED, message="nobody",
            sprint=SPRINT, story="US-1",
            data={"answer": late.model_dump(mode="json")},
        )
    )  # fmt: skip
    done = waiting.cli("approve", "US-1")
    assert done.exit_code == 2
    assert "question 1 of US-1 was not answered in time, which ended at 2026-03-01 12:00:00 UTC" in done.stderr
    assert "nobody answered in time" in waiting.cli("show", "US-1").stdout


def test_no_text_of_others_gives_orders_to_the_terminal(waiting: Waiting) -> None:
    orders = "\x1b]0;title\x07\x1b[2J\x9b31m\u202ea\rb"
    conflict = plan("US-1", architectural_conflict=CONFLICT | {"detected": True, "conflict_reason": f"{orders}\nmore"})
    waiting.ask("US-1", conflict_gate(conflict, iteration=1, plan_file=""))
    waiting.ask("US-2", about_plan("US-2", ISSUE, plan=plan("US-2", task("US-2", 1, ["a.py"], description=orders))))
    done = waiting.cli("approve", "US-2", "--comment", orders, "--gate", "1")
    again = waiting.cli("approve", "US-2")
    texts = [waiting.cli(*words.split()).stdout for words in ("status", "show US-1", "show US-2", "logs")]
    for text in (*texts, done.output, again.output):
        assert [letter for letter in text if not letter.isprintable() and letter != "\n"] == []
    assert "more" in texts[1]


def test_a_secret_in_a_comment_is_neither_kept_nor_told(waiting: Waiting) -> None:
    waiting.ask("US-1")
    secret = "sk-abcdefghijklmnopqrstuvwx"
    done = waiting.cli("reject", "US-1", "--comment", f"use {secret} for it", "--json")
    assert (done.exit_code, "was left out of the comment" in done.stderr) == (0, True)
    assert waiting.answers()[0].comment == json.loads(done.stdout)["comment"] == "use [redacted] for it"
    assert secret not in waiting.state.event_database.read_bytes().decode("latin-1")


def test_show_and_status_tell_what_is_asked(waiting: Waiting) -> None:
    ask_twice(waiting)
    waiting.ask("US-2", about_conflict("US-2"), deadline=datetime(2999, 1, 1, tzinfo=UTC))
    note = minor("breakdown.too_many_files", "the task has 4 files", fix="Split it.")
    waiting.ask("US-3", about_plan("US-3", HARD, ISSUE, note))
    text = waiting.cli("status").stdout
    assert "waiting for a person: US-1, US-2, US-3" in text
    assert "orchestrator show US-1, then approve | reject | edit | replan | cancel" in text
    told = json.loads(waiting.cli("status", "--json").stdout)["waiting"]
    assert [(one["story"], one["gate"], one["kind"]) for one in told] == [
        ("US-1", 2, "plan"), ("US-2", 1, "conflict"), ("US-3", 1, "plan"),
    ]  # fmt: skip
    assert told[1]["deadline"] == "2999-01-01T00:00:00+00:00"
    first = waiting.cli("show", "US-1").stdout
    for part in ("question 2, about the plan", "orchestrator approve US-1 --sprint S1 --gate 2", "Questions answered:",
                 "1, ", "the plan is rejected by anna: once more", "T-US-1-01 [pending]"):  # fmt: skip
        assert part in first
    second = waiting.cli("show", "US-2").stdout
    for part in ("until 2999-01-01", "current architecture: one file per shelf", "recommended action: decide on",
                 "override it"):  # fmt: skip
        assert part in second
    assert "orchestrator edit" not in second
    third = waiting.cli("show", "US-3").stdout
    for part in ("it cannot be approved: `../x` is unsafe", "`test_a.py` is a test file", "to do: Leave it out.",
                 "the task has 4 files"):  # fmt: skip
        assert part in third
    assert "orchestrator approve" not in third
    shown = json.loads(waiting.cli("show", "US-3", "--json").stdout)
    assert shown["question"]["number"] == 1
    assert set(shown["question"]["commands"]) == {"reject", "edit", "replan", "cancel"}
    assert shown["plan"] == plan("US-3").model_dump(mode="json")
    assert json.loads(waiting.cli("show", "US-1", "--json").stdout)["answers"][0]["comment"] == "once more"
