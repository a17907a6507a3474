"""What the real runners say of a failure, and what personas read of it. The texts are recorded from real runs."""

from pathlib import Path

import pytest

from orchestrator.test_runners.failures import MESSAGE_CAP, mendable

RECORDED = Path(__file__).with_name("failures")
ROOT = Path("/srv/shop")

BY_PYTEST = """\
tests/test_us_001.py:9: in test_an_item_is_created
    response = client.post("/items", json={"name": "pear", "price": 3})
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
shop/store.py:24: in add_item
    session.commit()
/srv/env/lib/python3.11/site-packages/sqlalchemy/engine/default.py:1192: in do_execute
    cursor.execute(statement, parameters)
E   sqlite3.OperationalError: no such table: items"""
BY_JEST = """\
Error: no such table: items
    at Object.query (j/shop.test.js:8:69)
    at query (src/shop.js:5:25)
    at Object.load (j/shop.test.js:8:34)"""
BY_VITEST = """\
Error: expected 200 "OK", got 500 "Internal Server Error"
    at v/shop.test.js:9:63
----"""


@pytest.mark.parametrize(("name", "told"), [("pytest", BY_PYTEST), ("jest", BY_JEST), ("vitest", BY_VITEST)])
def test_the_projects_frames_and_the_error_are_left_of_a_real_report(name: str, told: str) -> None:
    assert mendable((RECORDED / f"{name}.txt").read_text(), ROOT) == told


def test_of_nodes_report_the_difference_and_the_values_stay() -> None:
    told = mendable((RECORDED / "node.txt").read_text(), ROOT)
    assert "+     name: 'pear',\n-     name: 'apple'," in told
    assert "expected: [ { name: 'apple', price: 3 }, { name: 'fig', price: 4 } ]" in told
    assert [line.strip() for line in told.split("\n") if line.strip().startswith("at ")] == [
        "at TestContext.<anonymous> (n/shop.test.js:7:29)"
    ]


TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/tests.py", line 4, in test_total
    self.assertEqual(total(client), 3)
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError("Expecting value", s, err.value) from None
  File "/srv/shop/shop/store.py", line 9, in total
    return sum(prices)
TypeError: unsupported operand type(s) for +: 'int' and 'str'"""


def test_of_a_plain_traceback_library_frames_are_folded() -> None:
    told = mendable(TRACEBACK, ROOT)
    assert told.startswith("Traceback")
    assert 'File "tests.py", line 4' in told
    assert 'File "shop/store.py", line 9, in total\n    return sum(prices)' in told
    assert "decoder" not in told
    assert told.endswith("TypeError: unsupported operand type(s) for +: 'int' and 'str'")


@pytest.mark.parametrize(
    "text",
    [
        "assert 1 == 2\ntrace <here>",
        "● Test suite failed to run\n\n    Cannot find module '../src/gone.js' from 'j/gone.test.js'",
        "a time 12:30:00 and a ratio 3:4: fine\nE is a letter",
    ],
)
def test_what_has_nothing_to_fold_is_told_as_it_is(text: str) -> None:
    assert mendable(text, ROOT) == text


@pytest.mark.parametrize("text", ["/a" * 4_000_000, "x:1: \n" * 1_000_000, "E  x\ny.py:1: in f\n" * 300_000])
def test_a_hostile_message_is_bounded(text: str) -> None:
    assert len(mendable(text, ROOT)) <= MESSAGE_CAP
