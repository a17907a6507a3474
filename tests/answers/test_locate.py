"""Where in its contract a text breaks off."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answers.json.locate import SHORT, locate
from orchestrator.core.wire import BreakdownAnswer, DeliveryAnswer

PLAN = BreakdownAnswer.model_json_schema()
HEAD = '{"story_id": "U", "architectural_conflict": {"detected": false}, "tasks": ['
ONE = '{"task_id": "T-1", "description": "say "hi" and key: value", "files_to_create": ["a"], "dependencies": []}'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("no key at all", ""),
        ('{"story_id": ', "story_id"),
        ('{"architectural_conflict": {"detected": ', "architectural_conflict.detected"),
        (f'{HEAD}{{"taskId": ', "tasks[0].taskId"),
        (f"{HEAD}{ONE}, {ONE[:-23]}", "tasks[1].files_to_create"),
        (f"{HEAD}{ONE}, {{task_id: ", "tasks[1].task_id"),
        (f'{HEAD}{ONE}], "technical_notes": "', "technical_notes"),
        (f'{HEAD}{{"task_id": "T"}}], "dependencies": {{"devDependencies": ', "dependencies.devDependencies"),
    ],
)
def test_the_field_that_is_being_read(text: str, field: str) -> None:
    assert locate(text + ', "task_id": 1', len(text), PLAN).field == field


def test_a_long_contract_is_shown_in_detail_at_the_place_only() -> None:
    text = f"{HEAD}{ONE}, {ONE[:-23]}"
    shown = locate(text, len(text), PLAN).contract
    item = shown["properties"]["tasks"]["items"]
    assert item["required"] == ["task_id", "description", "files_to_create"]
    assert item["properties"]["files_to_create"]["items"] == {"type": "string"}
    assert shown["required"] == PLAN["required"]
    assert shown["properties"].keys() == PLAN["properties"].keys()
    assert shown["properties"]["architectural_conflict"] == {"type": "object"}
    assert "$" not in json.dumps(shown)
    assert len(json.dumps(shown)) < SHORT < len(json.dumps(PLAN))


def test_a_short_contract_and_one_without_a_place_are_shown_whole() -> None:
    short = DeliveryAnswer.model_json_schema()
    assert locate('{"files": [{"path": ', 18, short).contract == short
    assert locate("prose", 5, PLAN).contract == PLAN


PIECES = ["{", "}", "[", "]", ",", '"', "tasks:", '"task_id":', '"id":', "x", "dependencies:", '"devDependencies":']


@given(text=st.lists(st.sampled_from(PIECES)), at=st.integers(0, 40))
def test_any_text_has_a_place(text: list[str], at: int) -> None:
    located = locate("".join(text), at, PLAN)
    assert located.field == "" or located.field[0].isalpha()
    assert locate("a: 1", 4, {"properties": {"a": {"$ref": "#/properties/a"}}}).field == "a"
