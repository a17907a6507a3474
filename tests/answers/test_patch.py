"""A part of a long text, repaired and put back."""

import json

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answers.json.locate import AROUND, Part, offset_of, part_around, patched

TEXT = "head\n" + '{"a": "say "hi" there", "b": "x\\ty"}' + "\ntail"
PART = Part(5, len(TEXT) - 5)
GOOD = '{"a": "say \\"hi\\" there", "b": "x\\ty"}'


def test_what_says_the_same_is_put_back() -> None:
    whole = f"head\n{GOOD}\ntail"
    for reply in (GOOD, f"\n{GOOD}\n", f"```json\n{GOOD}\n```", f"~~~~\n{GOOD}\n~~~~\n"):
        assert patched(TEXT, PART, reply) == whole


def test_what_says_something_else_is_refused() -> None:
    part = TEXT[PART.start : PART.end]
    for reply in (
        "", part, "```\n```", f"Here it is: {GOOD}", GOOD.replace("there", ""), GOOD.replace("x", "y"),
        GOOD + ', "c": 1', GOOD[:-8], f"```\n{GOOD}\n```\n```\n{GOOD}\n```",
    ):  # fmt: skip
        assert patched(TEXT, PART, reply) is None, reply


@given(st.text(max_size=40), st.text(st.characters(codec="utf-8", exclude_characters="\\", max_codepoint=0xFFFF)))
def test_a_string_in_any_json_form_says_the_same(head: str, said: str) -> None:
    text = f"{head}'{said}x'"
    for form in (json.dumps(said + "x"), json.dumps(said + "x", ensure_ascii=False)):
        assert patched(text, Part(len(head), len(text)), form) == head + form


@given(st.lists(st.text(st.sampled_from("ab \n")), max_size=50), st.integers(0, 60), st.data())
def test_places_and_parts_lie_in_the_text(pieces: list[str], column: int, data: st.DataObject) -> None:
    text = "".join(pieces) * 300
    lines = text.split("\n")
    line = data.draw(st.integers(1, len(lines) + 2))
    at = offset_of(text, line, column + 1)
    assert 0 <= at <= len(text)
    if line <= len(lines) and column <= len(lines[line - 1]):
        assert (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) == (line, column + 1)
    part = part_around(text, at)
    assert 0 <= part.start <= at <= part.end <= len(text)
    assert part.end - part.start <= 4 * AROUND
