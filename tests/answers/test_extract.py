import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answers import Status, extract
from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer
from tests.answers.cases import FOUND, PLAN, PLAN_TEXT, REFUSED, REPAIRED, TRUNCATED, delivery, files
from tests.effort import examples

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=6)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
SIXTY = settings(max_examples=examples(60))
CODE = st.text(alphabet=st.sampled_from(list("ab{}[]:,'`$ \n\\/<>#.;(=")), max_size=60)
HOSTILE = st.text(
    alphabet=st.sampled_from(list("{}[]\"'`:,\\ \n/*#.+-1eE<>think“”tasksfiles…&quot;\ufeff")), max_size=200
)


@pytest.mark.parametrize("name", REPAIRED)
def test_repairs_are_made_and_listed(name: str) -> None:
    text, contract, value, kind = REPAIRED[name]
    for around, shift in ((text, 0), (f"Here it is:\n{text}\nDone.", 12)):
        if shift and name == "unseen at the ends":
            continue
        found = extract(around, contract)
        assert (found.value, found.status, found.complete) == (value, Status.REPAIRED, True), found.problems
        repair = next(repair for repair in found.repairs if repair.kind == kind)
        if repair.before and len(repair.before) < 20 and kind not in ("html_entities", "wrapper"):
            assert around.startswith(repair.before, repair.offset)


@pytest.mark.parametrize("name", FOUND)
def test_valid_json_is_found_unaltered(name: str) -> None:
    text, contract, value = FOUND[name]
    found = extract(text, contract)
    assert (found.value, found.status, found.repairs) == (value, Status.OK, ()), found.problems
    assert found.candidates >= 1


@pytest.mark.parametrize("name", TRUNCATED)
def test_what_is_cut_holds_whole_parts_only(name: str) -> None:
    text, contract, value = TRUNCATED[name]
    found = extract(text, contract)
    assert (found.value, found.status, found.complete) == (value, Status.TRUNCATED, False)
    assert found.problems[0].code == "answer.truncated"


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_known_is_refused(name: str) -> None:
    text, contract, code = REFUSED[name]
    found = extract(text, contract)
    assert (found.value, found.status, found.complete, found.layer) == (None, Status.REFUSED, False, "none")
    assert [problem.code for problem in found.problems] == [code]
    assert found.problems[0].where.line is not None


def test_the_place_of_a_failure_is_told_in_lines_of_the_original() -> None:
    found = extract("Sure.\n\n" + PLAN_TEXT.replace('"T-US-004-01"', "@@@"), BreakdownAnswer)
    assert (found.problems[0].where.line, found.problems[0].where.column) == (8, 18)


def test_duplicate_keys_last_wins_and_is_told() -> None:
    found = extract('{"a": 1,\n "a": 2}')
    assert (found.value, found.status) == ({"a": 2}, Status.OK)
    assert [(p.code, p.severity, p.where.line, p.where.column) for p in found.problems] == [
        ("answer.duplicate_key", "minor", 2, 2)
    ]


def test_a_cut_duplicate_does_not_revive_the_first() -> None:
    assert extract('{"a": "old", "b": 1, "a": "ne').value == {"b": 1}


def test_the_contract_may_be_a_schema_with_references_and_aliases() -> None:
    schema = {
        "$ref": "#/$defs/Top",
        "$defs": {
            "Top": {"type": "object", "required": ["nodes"], "properties": {
                "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "x-aliases": ["children"]}}},
            "Node": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "inner": {"$ref": "#/$defs/Node"}}},
        },
    }  # fmt: skip
    text = '{"name": "x"} {"children": [{"name": "say "x"", "inner": {"name": "y"}}, {"name": "z'
    found = extract(text, schema)
    assert found.value == {"children": [{"name": 'say "x"', "inner": {"name": "y"}}]}
    assert found.status is Status.TRUNCATED


def test_the_better_fit_wins_over_the_later_place() -> None:
    text = PLAN_TEXT + '\n{"story_id": "US-004", "tasks": "see above"}'
    assert extract(text, BreakdownAnswer).value == PLAN


def test_repairs_are_capped_and_counted() -> None:
    found = extract(delivery("\n" * 5000), DeliveryAnswer)
    assert found.value == files("\n" * 5000)
    assert (len(found.repairs), found.repairs[-1].kind, found.repairs[-1].after) == (1001, "more", "4000 more repairs")


def test_misuse_is_a_type_error() -> None:
    for text, contract in ((b"{}", None), (None, None), ("{}", 5), ("{}", int)):
        with pytest.raises(TypeError):
            extract(text, contract)  # type: ignore[arg-type]


def test_half_of_a_character_is_a_loss_and_no_obstacle() -> None:
    found = extract('{"a": "\\ud800", "b": "\ud83d\\ude00", "c": [1]}')
    assert (found.value, found.status) == ({"b": "😀", "c": [1]}, Status.TRUNCATED)
    assert "`a`" in found.problems[0].message
    assert extract("{\"a\": '\udc80\n'}").model_dump_json(exclude={"value"})


@SIXTY
@given(OBJECTS | st.lists(VALUES), st.sampled_from([None, 2]), st.booleans())
def test_valid_json_comes_out_identical(value: Any, indent: int | None, ascii_only: bool) -> None:
    found = extract(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert (found.value, found.status, found.repairs) == (value, Status.OK, ())


@given(
    OBJECTS,
    st.sampled_from(["", "Sure:\n", "```json\n", "<think>{}</think>\n"]),
    st.sampled_from(["", "\n```", " ok."]),
)
def test_valid_json_in_prose_comes_out_identical(value: Any, before: str, after: str) -> None:
    found = extract(before + json.dumps({**value, "a": 1}) + after)
    assert (found.value, found.status) == ({**value, "a": 1}, Status.OK)


@SIXTY
@given(OBJECTS, st.data())
def test_a_truncated_answer_is_never_ok_and_never_wrong(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    found = extract(text[: data.draw(st.integers(0, len(text) - 1))])
    assert found.status in (Status.TRUNCATED, Status.REFUSED)
    for key, kept in (found.value or {}).items():
        assert value[key] == kept


@given(st.lists(CODE, min_size=1, max_size=3), st.data())
def test_a_truncated_delivery_keeps_whole_files_only(contents: list[str], data: st.DataObject) -> None:
    whole = files(*contents)
    text = json.dumps({**whole, "notes": "x"}, indent=data.draw(st.sampled_from([None, 2])))
    found = extract(text[: data.draw(st.integers(0, len(text) - 1))], DeliveryAnswer)
    assert found.status in (Status.TRUNCATED, Status.REFUSED)
    kept = (found.value or {}).get("files", [])
    assert kept == whole["files"][: len(kept)]


@given(CODE.filter(lambda code: '"' not in code), st.integers(0, 60))
def test_a_delivery_with_raw_line_ends_is_whole_or_refused(code: str, at: int) -> None:
    content = code[:at] + ' say("x") ' + code[at:]
    raw = content.replace("\\", "\\\\")
    found = extract(delivery(raw), DeliveryAnswer)
    assert found.value in (files(content), None), found


@given(OBJECTS, OBJECTS, st.data())
def test_no_part_of_an_object_is_taken_for_it(inner: Any, around: Any, data: st.DataObject) -> None:
    whole = {"first": 1, **around, "inner": {"part": 1, **inner}, "list": [{"part": 2, **inner}], "last": "end"}
    text = json.dumps(whole)
    at = data.draw(st.integers(1, len(text) - 2))
    damaged = text[:at] + data.draw(st.sampled_from(["", '"', "{", "}", "\\", ",", "@@"])) + text[at + 1 :]
    found = extract(f"Here: {damaged} Done.")
    nothing = not found.value and not found.complete
    # The damage may be in the name of the first pair, and no other be left behind it.
    first = len({*next(iter(found.value), "")} & {*"first"}) >= 3 if found.value else False
    assert nothing or first or any(key in found.value for key in ("last", "first", "inner")), found


@settings(max_examples=examples(150))
@given(HOSTILE, st.sampled_from([None, DeliveryAnswer, BreakdownAnswer]))
def test_nothing_raises(text: str, contract: Any) -> None:
    found = extract(text, contract)
    assert (found.value is None) == (found.status is Status.REFUSED)
    assert found.complete == (found.status in (Status.OK, Status.REPAIRED))
    assert all(0 <= repair.offset <= len(text) for repair in found.repairs)


HOSTILE_UNITS = [
    "{", "[", '{"a"', '{"a":', '[{"a":', '"', '\\"', "x<think>", "</think>{", '{"files": x ', '{"files":"b"c ',
    '{"files":[{"path":"a","content":"say "x", ', '"}]}', '{"files":["a"/*', '{"files":1\n\n<', "{ ", "&quot;{",
    '{\\"a\\":',
    '"a"x, ', '{"path": "a", "content": ```\nx\n```},', "f(", "(", '"a" "b"', '{"path" "a" ', '{""a"": ', "1: {\n",
    "> {\n", "\nContinuing:\n", "\n```\nmore\n```json\n", "etc., ", '"...", ', "\\n{", '{"path": "a", "content": '
    + '"' * 3 + "x" + '"' * 3 + ", ",
    '"a": ', "'", "`", '{"files": [x\n\n{"files":[]}\n\n', '{"files":["a"+', "{'files':['", "1,", "…", "{a:b}",
]  # fmt: skip


@pytest.mark.parametrize(
    "unit", [pytest.param(unit, marks=pytest.mark.soak if at % 14 else ()) for at, unit in enumerate(HOSTILE_UNITS)]
)
def test_time_grows_no_faster_than_the_text(unit: str) -> None:
    def cpu(size: int) -> float:
        code = '{"files": [{"path": "a", "content": "'
        text = (code if unit == '"}]}' else '{"files": [' if unit[0] in "\"'{f(1e" else "") + unit * (size // len(unit))
        start = time.process_time()
        extract(text, DeliveryAnswer)
        return time.process_time() - start

    # Once more where it fails: a collection of garbage is not the reader's time.
    assert any(cpu(48_000) < 6 * 4 * max(cpu(8_000), 0.002) for _ in range(4))
