"""A test file that two stories added to holds the additions of both; anything else is left to people."""

import pytest

from orchestrator.checks.joined_tests import joined
from orchestrator.core.delivery import Conflict

BASE = "from shop import price\n\n\ndef test_price():\n    assert price() == 1\n"
NODE = "import test from 'node:test'\nimport { price } from '../shop.js'\n\ntest('a', () => {\n  price()\n})\n"


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
            NODE,
            NODE.replace("{ price }", "{ price, a }") + row("a"),
            NODE.replace("{ price }", "{ price, b }") + row("b"),
            NODE.replace("{ price }", "{ price, a, b }") + row("a") + row("b"),
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
