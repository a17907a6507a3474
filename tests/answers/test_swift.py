"""The swift reading is the Reader's, or it is none."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from benchmarks.answers.corpus import cases
from orchestrator.answers.json.fast_reader import swift_reading
from orchestrator.answers.json.reader import Reader
from orchestrator.answers.json.shape import ANYTHING, Shape, shape_of
from orchestrator.core.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from tests.effort import examples

CONTRACTS: dict[str, type[BaseModel]] = {"breakdown": BreakdownAnswer, "delivery": DeliveryAnswer, "suite": SuiteAnswer}
PIECES = [
    '"', "'", "`", ",", ":", "{", "}", "[", "]", "\\", "\n", " ", "// x\n", "/* x */", "# x\n", "// ...\n", "/*",
    "null", "nan", "1", "-", "...", '"..."', '"and 3 more"', "\\n", "\\'", "\\x41", '"a":', "'b': ", "c: ", '"": ', "“",
    "”", "\u00a0", "\t", "\x00", ",,", "[,]", "{,}", '"a" + ', '"""', "```", ";", "=", '"path": ', '"content": "', "(",
]  # fmt: skip
SLOPPY = st.recursive(
    st.sampled_from(['"x"', "'it'", "`a\nb`", "“q”", '"a\nb"', r'"it\'s \d"', r'"\x41"', "1", "-0.5", "true", "None",
                     '"and 3 more"', '"...", "x"', '""', "1e3", "undefined", "NaN"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(inner, max_size=3).map(lambda items: "[" + "\n".join(items) + ",]"),
        st.lists(inner, max_size=3).map(lambda items: "[" + " ".join(items) + "]"),
        st.lists(inner, min_size=1, max_size=3).map(" + ".join),
        st.tuples(
            st.lists(st.tuples(st.sampled_from(['"a"', "'b'", "c", '"content"', '"path"', '"d e"', '"f:"', "`g`"]),
                               inner), max_size=4),
            st.sampled_from([", ", ",\n", "\n", " // why\n, ", ", # why\n", ","]),
            st.sampled_from(["", ",", ",\n", " ", "/* end */", ", // rest\n"]),
        ).map(lambda parts: "{" + parts[1].join(f"{key}: {value}" for key, value in parts[0]) + parts[2] + "}"),
    ),
    max_leaves=12,
)  # fmt: skip


def same_or_none(text: str, contract: Shape) -> bool:
    """Whether there is a swift reading; it is the Reader's."""
    start = text.find("{")
    swift = swift_reading(text, start) if start >= 0 else None
    if swift is None:
        return False
    slow = Reader(text, start, contract).read()
    assert (swift.outcome, swift.start, swift.end) == (slow.outcome, slow.start, slow.end), (text, swift, slow)
    assert json.dumps(swift.value) == json.dumps(slow.value), (text, swift.value, slow.value)
    assert sorted(swift.changes) == sorted(slow.changes), (text, swift.changes, slow.changes)
    rest = ("why", "duplicates", "keyed", "fitting", "ends", "shown", "gap", "loose", "deep")
    assert all(getattr(swift, name) == getattr(slow, name) for name in rest), (text, swift, slow)
    return True


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2,], "b": {"c": 3,},}',
        '{"a": 1, // one\n "b": /* two */ 2, # three\n}',
        "{'a': True, 'b': [None, 'it\\'s'], }",
        "{a: 1, b_2: {c: `x\ny`}}",
        '{“a”: “x "y"”}',
        '{"a": "line\nline\t", "b": "it\\\'s \\d"}',
        '{"a": "x"\n "b": {"c": [{}\n{}]}\n "d": 1}',
        '{"a": "x" +\n "y" + "z", /* why */ "b": ["x" "y" {} []]}',
        '{\u200b"a":\u00a01}',
    ],
)
def test_slips_that_need_no_decision_are_read_swiftly(text: str) -> None:
    assert same_or_none(f"So: {text}\n```\nIt's done.", ANYTHING)


@settings(max_examples=examples(400))
@given(SLOPPY, st.lists(st.tuples(st.integers(0, 80), st.integers(0, 6), st.sampled_from(PIECES)), max_size=3))
def test_sloppy_texts_and_damaged_ones(text: str, edits: list[tuple[int, int, str]]) -> None:
    for at, gone, piece in edits:
        text = text[:at] + piece + text[at + gone :]
    for contract in (ANYTHING, shape_of(DeliveryAnswer)):
        same_or_none('{"a": ' + text + ',\n"files": [' + text + "]}", contract)


def test_the_cases_of_the_bench() -> None:
    drawn: list[Any] = cases(11, 500)
    taken = [same_or_none(case.text, shape_of(CONTRACTS[case.kind.contract])) for case in drawn]
    assert sum(taken) > len(taken) / 10
