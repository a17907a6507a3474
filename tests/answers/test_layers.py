"""The layers by themselves: values in, values out."""

import pytest

from orchestrator.answers.json.code import parses, settled, unescaped
from orchestrator.answers.json.recovery import announced, before_gap, has_gap
from orchestrator.answers.json.scan import fit
from orchestrator.answers.json.shape import ANYTHING, shape_of
from orchestrator.answers.json.views import (
    joined_chunks,
    overlapping_chunks,
    with_opener,
    without_doubled_quotes,
    without_entities,
    without_marks,
    without_string,
)
from orchestrator.answers.result import Change
from tests.answers.slips import EMPTY, INVOICE, ONE

INVOICES = shape_of(INVOICE)


@pytest.mark.parametrize(
    ("raw", "closing", "code", "meant", "kinds"),
    [
        ("plain", '"', False, "plain", []),
        (r"a\n\u00e9\ud83d\ude00\/", '"', False, "a\né😀/", []),
        ("a\n\tb", '"', False, "a\n\tb", ["raw_newline", "raw_tab"]),
        (r"it\'s \$5 \_x \`y\`", '"', False, "it's $5 _x `y`", ["invalid_escape"] * 5),
        (r"\d+\s", '"', True, r"\d+\s", ["invalid_escape"] * 2),
        (r"\bword\b\d", '"', True, r"\bword\b\d", ["invalid_escape"] * 3),
        (r"bell\b", '"', False, "bell\b", []),
        (r"caf\xe9 \u{1F600}", '"', False, "café 😀", ["foreign_escape"] * 2),
        (r"\x1b[0m", '"', True, r"\x1b[0m", ["invalid_escape"]),
        (r"\x1b[0m", "'", True, "\x1b[0m", ["foreign_escape"]),
        ("one \\\ntwo", "'", False, "one two", ["foreign_escape"]),
        ("make \\\n  all", '"', False, "make \\\n  all", ["invalid_escape"]),
        (r"half \u12", '"', False, r"half \u12", ["invalid_escape"]),
        ("C:\\", '"', False, "C:\\", ["invalid_escape"]),
    ],
)
def test_escapes(raw: str, closing: str, code: bool, meant: str, kinds: list[str]) -> None:
    changes: list[Change] = []
    assert unescaped(raw, 7, closing, changes, code=code) == meant
    assert [change.kind for change in changes] == kinds
    assert all(raw.startswith(change.before, change.offset - 7) for change in changes)


def test_the_reading_that_parses_is_the_right_one() -> None:
    both = 'print("a\\n")\n'
    assert settled(both, 0, '"', "a.py", False, []) == both, "the escape belongs to the code"
    assert settled("x = 1\\ny = 2", 0, '"', "a.py", True, []) == "x = 1\ny = 2", "the escapes are the string's"
    assert settled("a\\nb", 0, '"', "a.txt", False, []) == "a\nb"
    assert settled("a\\nb", 0, '"', None, True, []) == "a\\nb", "no language decides: as it stands"
    assert (parses("a.py", "x ="), parses("a.js", "f(1);"), parses("a.cobol", "?"), parses(None, "x")) == (
        False, True, None, None)  # fmt: skip


def test_gaps_and_counts() -> None:
    assert announced({**ONE, "line_count": 3}, INVOICES) == ("lines", 3)
    assert announced({**ONE, "line_count": 1}, INVOICES) is None
    quiet = {**INVOICE, "properties": {**INVOICE["properties"], "line_count": {"type": "integer", "x-counts": False}}}
    assert announced({**ONE, "line_count": 3}, shape_of(quiet)) is None
    gapped = {"invoice_id": "x", "lines": [*ONE["lines"], "…", {"sku": "z", "qty": 9}]}
    assert has_gap(gapped, INVOICES)
    assert before_gap(gapped, INVOICES) == ONE
    assert not has_gap({"invoice_id": "...", "lines": []}, INVOICES)


VIEWED = {
    "entities": (without_entities, "x {&quot;a&quot;: &#39;b &amp;amp; c&#39;}", "x {\"a\": 'b &amp; c'}"),
    "a string": (without_string, r'say "{\"a\": \"b\\n\"}" ok', r'{"a": "b\n"}'),
    "doubled quotes": (without_doubled_quotes, '{""a"": """"}', '{"a": ""}'),
    "numbers": (without_marks, "so\n7: {\n8: }\nend", "so\n{\n}\nend"),
    "numbers that do not count up": (without_marks, "7: {\n9: }", None),
    "one line": (without_marks, "> {}", None),
    "marks without a bracket": (without_marks, "> a\n> b", None),
    "an overlap": (
        overlapping_chunks,
        'a "one two three\n\nContinuing:\n\n"one two three four',
        'a "one two three four',
    ),
    "no overlap": (overlapping_chunks, "a,\n\nContinuing:\n\nb", None),
    "a cut between members": (joined_chunks, '{"a": 1,\n\n(continued)\n\n"b": 2}', '{"a": 1,"b": 2}'),
    "a cut in a string": (joined_chunks, '{"a": "b\n\n(continued)\n\nc"}', None),
    "code that resumes": (joined_chunks, "f(\n  resume,\n  continuation_ws=' ',\n  continue\n)", None),
    "no opener": (with_opener, 'ok:\n  "lines": []}', 'ok:\n{  "lines": []}'),
    "an opener for another key": (with_opener, '"other": []}', None),
}


@pytest.mark.parametrize("name", VIEWED)
def test_views(name: str) -> None:
    view, text, meant = VIEWED[name]
    seen = view(text, INVOICES)
    assert (seen.text if seen else None) == meant
    if seen:
        assert all(0 <= seen.original(offset) <= len(text) for offset in range(len(seen.text) + 1))


def test_fit_orders_by_what_is_there() -> None:
    assert fit(EMPTY, INVOICES) == (2, 2, True, True)
    assert fit({"invoice_id": "x"}, INVOICES) < fit({"invoice_id": "x", "lines": 5}, INVOICES)
    assert fit({"invoice_id": "x", "lines": [{"sku": "a"}]}, INVOICES).inner is False
    assert fit({"lines": "see above"}, INVOICES) is None
    assert fit({"other": 1}, INVOICES) is None
    assert fit({}, shape_of({"type": "object", "properties": {"a": {}}})) is not None
    chosen = shape_of({"required": ["id"], "properties": {"id": {"const": "US-1"}, "n": {}}})
    assert fit({"id": "US-1"}, chosen).whole
    assert fit({"id": "US-2"}, chosen) is None
    assert fit({"a": 1}, ANYTHING) is not None
