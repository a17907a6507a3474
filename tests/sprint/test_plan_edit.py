"""A plan survives its way to an editor and back, whatever stands in it and above it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.core.finding import blocking
from orchestrator.sprint.plan_edit import body_of, commented, plan_text, read_edit
from tests.support import breakdown, task

SOUND = json.dumps(breakdown("US-1", ["app.py"]))
BAD = "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [app.py, tests/test_app.py]}\n"

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
PATHS = st.lists(st.sampled_from(["src/a.py", "b b.txt", "ü/ö.js", "no", "1.10", "*.md", "a: b", "#c"]), unique=True)
FREE = st.recursive(TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """An architect's answer with anything in its texts."""
    count = draw(st.integers(1, 3))
    tasks = [task("US-1", n, draw(PATHS), draw(TEXT), description=draw(TEXT)) for n in range(1, count + 1)]
    return breakdown("US-1", *tasks) | {
        "acceptance_tests": [{"criterion": draw(TEXT), "test": draw(TEXT)}],
        "dependencies": {"dependencies": {"flask": draw(st.sampled_from(["1.10", ">=2", "*", "yes"]))}},
        "technical_notes": {draw(TEXT): draw(FREE)},
        "todos": {"add": [draw(TEXT)], "remove": []},
    }


@given(answers(), st.lists(TEXT))
def test_a_plan_that_nobody_changed_comes_back(answer: dict[str, Any], head: list[str]) -> None:
    plan, said = read_breakdown(answer, "US-1")
    if plan is None:
        assert blocking(said)  # a text of blanks only
        return
    text = plan_text(plan, head)
    assert read_edit(text, "US-1", frozenset(), frozenset()).plan == plan
    again = commented([*head, "found", *head], text)
    assert body_of(again) == body_of(text)
    assert read_edit(again, "US-1", frozenset(), frozenset()).plan == plan


@given(st.text() | st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)).map(str))
def test_no_text_raises_and_none_is_taken_by_chance(text: str) -> None:
    assert not read_edit(text, "US-1", frozenset(), frozenset()).accepted(force=True)


HOSTILE: dict[str, str] = {
    "bomb": "a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join(['*a'] * 9)}]\n" for n in range(9)),
    "tag": "tasks: !!python/object/apply:os.system ['touch pwned']",
    "tag of a text": "tasks: !!python/name:os.system ''",
    "tabs": "tasks:\n\t- task_id: T-US-1-01\n",
    "two megabytes": "tasks:\n" + "- {task_id: T-US-1-01, description: x, files_to_create: [app.py]}\n" * 33_000,
    "two megabytes of brackets": "[" * 2_000_000,
    "NUL": "tasks: \0",
    "a list": "- tasks",
    "a number": "5",
    "tasks of a wrong type": "tasks: {T-US-1-01: x}",
    "a task of a wrong type": "tasks: [5, null, [a]]",
    "files of a wrong type": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: {a: 1}}",
    "paths of a wrong type": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [[a], 5]}",
    "a command of a wrong type": "tasks:\n- {id: T-US-1-01, title: x, files_to_create: [], command_to_run: [ls]}",
    "needs of a wrong type": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [a.py], dependencies: 5}",
    "a cycle": json.dumps({"tasks": [task("US-1", 1, ["app.py"], dependencies=["T-US-1-01"])]}),
    "a misspelt field": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [a.py], comand_to_run: ls}",
    "no work": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: []}",
    "a path out": "tasks:\n- {task_id: T-US-1-01, description: x, files_to_create: [../x.py]}\n",
    "another's task": "tasks:\n- {task_id: T-US-2-01, description: x, files_to_create: [a.py]}",
    "a source": SOUND.replace('"dependencies": {}, "dev', '"dependencies": {"x": "git+https://x.y/z"}, "dev'),
    "a conflict": "architectural_conflict: {detected: true, current_architecture: a, story_requirement: b, "
    "conflict_reason: c, recommended_action: d}",
    "half a pair": '{"tasks": "\\ud800"}',
}  # fmt: skip


def test_what_a_person_leaves_empty_and_says_of_no_conflict_counts_as_left_out() -> None:
    empty = "command_to_run: null\n  dependency_reason:\n  dependencies: ~"
    given = f"tasks:\n- id: T-US-1-01\n  title: x\n  files_to_create: [app.py]\n  {empty}\ndependencies: null\n"
    for text in (given, f"{given}architectural_conflict: {{detected: false}}\ntodos:\n"):
        edited = read_edit(text, "US-1", frozenset(), frozenset())
        assert edited.accepted(force=False), edited
        assert edited.plan is not None
        assert (edited.plan.tasks[0].command, edited.plan.tasks[0].dependencies) == (None, ())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_broken_texts_are_no_plan(name: str) -> None:
    assert not read_edit(HOSTILE[name], "US-1", frozenset(), frozenset()).accepted(force=False)
