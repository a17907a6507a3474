"""What a stage's answer may be, and what becomes of its tasks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answers import extract
from orchestrator.checks.analysis import read_stage
from orchestrator.core.analysis import ImprovementTask, StageReading, TaskPriority
from orchestrator.core.calls.wire import StageAnswer
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.paths import unsafe_reason


def read(*tasks: Any, **more: Any) -> tuple[StageReading, list[Finding]]:
    value = {"summary": " S. ", "recommendations": [" one ", "", 2, "two"], "tasks": list(tasks), **more}
    reading, said = read_stage(value, "security")
    assert reading is not None
    return reading, said


def only(**fields: Any) -> tuple[ImprovementTask, list[str]]:
    reading, said = read({"title": "A task", "priority": "low", **fields})
    return reading.tasks[0], [finding.code for finding in said]


def test_everything_is_trimmed_and_the_stage_attached() -> None:
    reading, said = read(
        {"title": " Bind\n the words ", "description": "\n why\n", "priority": "high", "file": "a/b.py"}
    )
    task = reading.tasks[0]
    assert said == []
    assert (reading.summary, reading.recommendations) == ("S.", ("one", "two"))
    assert (task.title, task.description, task.file, task.stage) == ("Bind the words", "why", "a/b.py", "security")


@pytest.mark.parametrize("title", [None, "", " \n\t", 5, 1.5, True, ["x"], {"a": 1}, "\u200b\u0007"])
def test_a_task_without_a_title_is_dropped_and_the_stage_named(title: Any) -> None:
    reading, said = read({"title": "Good", "priority": "low"}, {"title": title, "priority": "low"}, {"priority": "low"})
    assert [task.title for task in reading.tasks] == ["Good"]
    assert [finding.code for finding in said] == ["stage.no_title"] * 2
    assert all(finding.message.startswith("security: ") and not finding.severity.blocks for finding in said)


@pytest.mark.parametrize("entry", ["Add tests", 7, None, ["title"]])
def test_what_is_no_object_is_no_task(entry: Any) -> None:
    reading, said = read(entry, {"title": "Good", "priority": "low"})
    assert len(reading.tasks) == 1
    assert "no object" in said[0].message


@pytest.mark.parametrize(
    ("stated", "counts", "kept"),
    [
        *((word, word.strip().lower(), "") for word in ("critical", "HIGH", "Medium", " low\n", "CrItIcAl")),
        *((word, "medium", word) for word in ("P1", "asap", "blocker", "high!", "very high", "critical/high")),
        *(("", "medium", ""), ("  ", "medium", ""), (None, "medium", ""), (1, "medium", "1"), (True, "medium", "true")),
        (["high"], "medium", '["high"]'),
    ],
)
def test_exactly_four_priorities(stated: Any, counts: str, kept: str) -> None:
    task, said = only(priority=stated)
    assert (task.priority, task.priority_stated) == (counts, kept)
    is_word = isinstance(stated, str) and stated.strip().lower() in {*TaskPriority}
    assert said == ([] if is_word else ["stage.priority"])


def test_a_missing_priority_is_medium_and_told() -> None:
    reading, said = read({"title": "A"})
    assert reading.tasks[0].priority is TaskPriority.MEDIUM
    assert [finding.code for finding in said] == ["stage.priority"]


@pytest.mark.parametrize(
    ("file", "kept", "told"),
    [
        *((text, "src/a.py", False) for text in ("src/a.py", " src/a.py ", "./src/a.py", "`src/a.py`", "src/a.py:12")),
        *((text, "src/a.py", False) for text in ("src/a.py:12-40", "src/a.py#L3-L9", "src/a.py (line 4)")),
        ("src/", "src", False),
        *((text, "", False) for text in (None, "", "none", "N/A", "-", "multiple")),
        *(
            (text, "", True)
            for text in ("/etc/passwd", "../x", "C:\\a", "a/../../b", ".git/config", 5, ["a.py"], "a\0b")
        ),
    ],
)
def test_a_file_is_a_safe_relative_path_or_dropped(file: Any, kept: str, told: bool) -> None:
    task, said = only(file=file)
    assert (task.file, said) == (kept, ["stage.file"] if told else [])


@pytest.mark.parametrize("description", [None, 5, {}, [1]])
def test_what_is_no_text_is_no_description(description: Any) -> None:
    assert only(description=description)[0].description == ""


def test_texts_are_such_as_files_take() -> None:
    task, _ = only(
        title="half \ud83d of it\0",
        description="a\r\nb\ud83d\0",
        depends_on=["Other", 3],
        acceptance_criteria="It\nholds",
    )
    for text in (task.title, task.description):
        text.encode()
        assert "\0" not in text
    assert (task.depends_on, task.acceptance_criteria) == (("Other",), ("It holds",))
    assert len(only(title="x" * 5000)[0].title) == 300


@pytest.mark.parametrize("value", [[], "text", None, 5])
def test_what_is_no_object_is_no_answer(value: Any) -> None:
    reading, said = read_stage(value, "s")
    assert reading is None
    assert blocking(said)


def test_tasks_that_are_no_list_and_tasks_of_which_none_has_a_title_are_asked_for_again() -> None:
    for tasks, code in ((None, "stage.shape"), ("none", "stage.shape"), ([{"title": 1}, "x"], "stage.no_titles")):
        reading, said = read_stage({"summary": "S", "tasks": tasks}, "s")
        assert reading is not None
        assert (reading.summary, reading.tasks) == ("S", ())
        assert [finding.code for finding in blocking(said)] == [code]


def test_no_task_at_all_is_no_mistake_and_still_told() -> None:
    reading, said = read()
    assert reading.tasks == ()
    assert [(finding.code, finding.severity.blocks) for finding in said] == [("stage.no_tasks", False)]


@pytest.mark.parametrize(
    "text",
    ["Here you are:\n```json\n%s\n```\nGood luck!", "%s", '{"response": %s}', '<think>{"summary": "draft"}</think>%s'],
)
@pytest.mark.parametrize("title", ['"Bind the words"', "5"])
def test_answers_come_through_the_door_of_all_answers(text: str, title: str) -> None:
    """A title of a wrong type is one task's matter, not the whole answer's."""
    held = f'{{"summary": "S", "recommendations": ["a"], "tasks": [{{"title": {title}, "priority": "P0"}},'
    held += '{"title": "Other", "priority": "urgent", "file": null,}]}'
    extraction = extract(text % held, StageAnswer)
    assert extraction.complete
    reading, _ = read_stage(extraction.value, "s")
    assert reading is not None
    assert [task.title for task in reading.tasks] == (["Other"] if title == "5" else ["Bind the words", "Other"])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(["title", "description", "priority", "file", "depends_on", "acceptance_criteria", "other"])
TASKS = st.lists(st.dictionaries(FIELDS, ANYTHING, max_size=6) | ANYTHING, max_size=5)


@given(ANYTHING | st.fixed_dictionaries({"summary": ANYTHING, "recommendations": ANYTHING, "tasks": TASKS | ANYTHING}))
def test_no_answer_breaks_the_reading_and_every_task_is_sound(value: Any) -> None:
    reading, said = read_stage(value, "s")
    assert reading is not None or blocking(said)
    for task in reading.tasks if reading is not None else ():
        assert task.title == " ".join(task.title.split())
        assert task.title.isprintable()
        assert not task.file or unsafe_reason(task.file) is None
        task.model_dump_json().encode()
