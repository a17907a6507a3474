import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.backlogs.csv import BOM, parse_csv
from orchestrator.core.errors import BacklogError
from tests.backlogs.backlog_samples import MESSY

TEXT = st.text(st.sampled_from('ab,"\n\r é'), max_size=6)


def styled(value: str, quote: bool) -> str:
    if quote or any(c in value for c in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[list[str]]]:
    rows = draw(st.lists(st.lists(TEXT, min_size=1, max_size=4), min_size=1, max_size=5))
    ends = [draw(st.sampled_from(["\n", "\r\n"])) for _ in rows]
    text = "".join(",".join(styled(v, draw(st.booleans())) for v in row) + e for row, e in zip(rows, ends, strict=True))
    if draw(st.booleans()) and text.rstrip("\r\n"):
        text = text.removesuffix(ends[-1])
    return draw(st.sampled_from([b"", BOM])) + text.encode(), rows


@given(files())
def test_reads_what_was_written_with_any_style(case: tuple[bytes, list[list[str]]]) -> None:
    data, rows = case
    table = parse_csv(data, "x.csv")
    read = [table.values(row) for row in table.rows]
    assert read == rows[: len(read)]
    assert all(row == [""] for row in rows[len(read) :])


@given(files(), st.data())
def test_an_edit_changes_its_cell_and_no_other_byte(case: tuple[bytes, list[list[str]]], data: st.DataObject) -> None:
    content, _ = case
    table = parse_csv(content, "x.csv")
    if not table.rows:
        return
    spots = st.tuples(st.integers(0, len(table.rows) - 1), st.integers(0, 5))
    edits = data.draw(st.dictionaries(spots, TEXT, max_size=4))
    changed = parse_csv(table.replaced(edits), "x.csv")
    expected = [table.values(row) for row in table.rows]
    for (number, column), value in edits.items():
        row = expected[number]
        if value or column < len(row):
            row += [""] * (column + 1 - len(row))
            row[column] = value
    assert [changed.values(row) for row in changed.rows] == expected
    for number, (before, after) in enumerate(zip(table.rows, changed.rows, strict=True)):
        for column, (old, new) in enumerate(zip(before.cells, after.cells, strict=False)):
            if (number, column) not in edits:
                assert table.data[old.start : old.end] == changed.data[new.start : new.end]
    between = [table.data[a.cells[-1].end : b.cells[0].start] for a, b in zip(table.rows, table.rows[1:], strict=False)]
    after_ = [
        changed.data[a.cells[-1].end : b.cells[0].start] for a, b in zip(changed.rows, changed.rows[1:], strict=False)
    ]
    assert between == after_
    assert table.replaced({}) == content


def test_agrees_with_the_standard_library_and_knows_lines() -> None:
    table = parse_csv(MESSY, "x.csv")
    expected = list(csv.reader(io.StringIO(MESSY.decode("utf-8-sig"), newline="")))
    assert [[] if row == [""] else row for row in map(table.values, table.rows)] == expected
    assert [row.line for row in table.rows] == [1, 2, 3, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("data", "code", "line", "said"),
    [
        (b"a,b\r\nc,caf\xe9\r\n", "backlog.encoding", 2, "byte 0xe9 in line 2"),
        ("Story_ID,Title\n".encode("utf-16"), "backlog.encoding", 1, "save the file as UTF-8"),
        ("Story_ID,Title\n".encode("utf-16-le"), "backlog.encoding", 1, "a NUL byte in line 1"),
        (b"Story_ID,Title\nA,x\0y\n", "backlog.encoding", 2, "a NUL byte in line 2"),
        (b'a,b\n"x\ny",z\nq,"open\nand on', "backlog.unterminated_quote", 4, "never closed"),
    ],
)
def test_unreadable_text_is_named_by_line(data: bytes, code: str, line: int, said: str) -> None:
    with pytest.raises(BacklogError) as caught:
        parse_csv(data, "my.csv")
    assert said in caught.value.message
    assert "my.csv" in caught.value.message
    (finding,) = caught.value.findings
    assert (finding.code, finding.where.line) == (code, line)


def test_text_behind_a_closing_quote_is_seen() -> None:
    table = parse_csv(b'"a" ,"say "hi" now",5" pipe\n', "x.csv")
    assert table.broken_quote(table.rows[0])
    assert table.values(table.rows[0])[0] == "a"
    assert table.values(table.rows[0])[2] == '5" pipe'
    assert not parse_csv(b'"a" ,5" pipe\n', "x").broken_quote(parse_csv(b'"a" ,5" pipe\n', "x").rows[0])


def test_a_value_never_makes_the_file_unreadable() -> None:
    table = parse_csv(b"a,b\n", "x.csv")
    again = parse_csv(table.replaced({(0, 1): 'nul\0, "q"\ud800\r\n '}), "x.csv")
    assert again.values(again.rows[0]) == ["a", 'nul, "q"?\r\n ']
