"""A longer test file keeps what it held: rows, members, tests and imports may be added, nothing may change.

One that two stories added to holds the additions of both; anything else is left to people.
"""

import pytest

from orchestrator.checks.kept_tests import joined, lost_parts
from orchestrator.core.delivery import Conflict

PYTHON = '''"""Tests."""

import pytest
from shop import price, rate

CASES = [(1, 2), (3, 4)]


@pytest.fixture
def cart():
    return []


@pytest.mark.parametrize(("given", "expected"), [(1, 1), (2, 4)])
def test_price(given, expected):
    assert price(given) == expected


class TestRate:
    def test_low(self):
        assert rate(1) == 0.1
'''
NODE = """import test from 'node:test'
import assert from 'node:assert/strict'
import { price } from '../shop.js'

test('a price', () => {
  assert.equal(price(1), 1)
})
"""


@pytest.mark.parametrize(
    "changes",
    [
        [("price, rate", "discount, price, rate")],
        [("(3, 4)]", "(3, 4), (5, 6)]")],
        [("[(1, 1), (2, 4)]", "[\n    (1, 1),\n    (2, 4),\n    (3, 9),\n]")],
        [
            (
                "assert rate(1) == 0.1\n",
                "assert rate(1) == 0.1\n\n    def test_high(self):\n        assert rate(9) == 1\n",
            )
        ],
        [("class TestRate", "def test_new(cart):\n    assert not cart\n\n\nclass TestRate")],
        [('"""Tests."""', '"""Tests of the shop."""')],
    ],
)
def test_python_that_only_grows(changes: list[tuple[str, str]]) -> None:
    after = PYTHON
    for old, new in changes:
        assert old in after
        after = after.replace(old, new)
    assert lost_parts("tests/test_shop.py", PYTHON, after) == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("== expected", "!= expected", "test_price"),
        ("(2, 4)]", "(2, 5)]", "test_price"),
        ("(3, 4)]", "(3, 5)]", "CASES"),
        ("return []", "return [1]", "cart"),
        ("== 0.1", "== 0.2", "TestRate"),
        ("price, rate", "price", "from shop import rate as None"),
        ("    assert price", "    return\n    assert price", "test_price"),
        ("class TestRate:", "@pytest.mark.skip\nclass TestRate:", "TestRate"),
        ("class TestRate:", "def test_price():\n    pass\n\n\nclass TestRate:", "test_price"),
    ],
)
def test_python_that_changes(old: str, new: str, lost: str) -> None:
    assert lost in lost_parts("tests/test_shop.py", PYTHON, PYTHON.replace(old, new))


def test_node_that_only_grows() -> None:
    after = NODE.replace("{ price }", "{ price, rate }") + "\ntest('a rate', () => {\n  assert.equal(rate(1), 2)\n})\n"
    assert lost_parts("test/shop.test.js", NODE, after) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("price(1), 1", "price(1), 2"), ("  assert", "  return\n  assert"), ("test('a price'", "test('the price'")],
)
def test_node_that_changes(old: str, new: str) -> None:
    assert lost_parts("test/shop.test.js", NODE, NODE.replace(old, new))


BASE = "from shop import price\n\n\ndef test_price():\n    assert price() == 1\n"
JOINED_NODE = "import test from 'node:test'\nimport { price } from '../shop.js'\n\ntest('a', () => {\n  price()\n})\n"


def added(name: str) -> str:
    return f"\n\ndef test_{name}():\n    assert {name}() == 1\n"


def row(name: str) -> str:
    return f"\ntest('{name}', () => {{\n  {name}()\n}})\n"


@pytest.mark.parametrize(
    ("path", "base", "result", "story", "expected"),
    [
        ("t.py", BASE, BASE + added("a"), BASE + added("b"), BASE + added("a") + added("b")),
        (
            "t.py",
            BASE,
            BASE.replace("price\n\n", "price, a\n\n") + added("a"),
            BASE.replace("price\n\n", "price, b\n\n") + added("b"),
            BASE.replace("price\n\n", "price, a\nfrom shop import price, b\n\n") + added("a") + added("b"),
        ),
        (
            "t.test.js",
            JOINED_NODE,
            JOINED_NODE.replace("{ price }", "{ price, a }") + row("a"),
            JOINED_NODE.replace("{ price }", "{ price, b }") + row("b"),
            JOINED_NODE.replace("{ price }", "{ price, a, b }") + row("a") + row("b"),
        ),
        (
            "t.py",
            None,
            "import pytest\n" + added("a"),
            "import pytest\n" + added("b"),
            "import pytest\n" + added("a") + added("b"),
        ),
        ("t.py", BASE, BASE + added("a"), BASE.replace("== 1", "== 2"), None),
        ("t.py", BASE, BASE + added("a"), BASE + added("a").replace("1", "2"), None),
    ],
)
def test_both_additions(path: str, base: str | None, result: str, story: str, expected: str | None) -> None:
    assert joined(Conflict(path=path, base=base, result=result, story=story)) == expected
