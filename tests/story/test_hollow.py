"""Suites run for real where the functions under test return nothing: what fails there has noticed them."""

from pathlib import Path

from orchestrator.core.suite import TestSuite
from orchestrator.story.fail_before import Ended, hollow, results_hollow
from tests.support import needs_node
from tests.test_runners.test_suite_runner import runner_in, tree

FAILED, PASSED, NOT_JUDGED = Ended.FAILED, Ended.PASSED, Ended.NOT_JUDGED
SHOP = '''"""Prices."""
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps

LIMIT = 3
ROUTES = {}


def route(path):
    def put(handler):
        ROUTES[path] = handler
        return handler
    return put


def doubled(function):
    @wraps(function)
    def wrapper(*values):
        return 2 * function(*values)
    return wrapper


@dataclass
class Item:
    price: int
    count: int = 1

    def total(self):
        return self.price * self.count


class Cart:
    def __init__(self):
        self.items = []

    def add(self, item):
        if item.price < 0:
            raise ValueError(item.price)
        self.items.append(item)

    @property
    def size(self):
        return len(self.items)


def total(items, *, rate=1.0):
    """What the items cost."""
    return sum(item.total() for item in items) * rate


def find(items, price):
    return next((item for item in items if item.price == price), None)


def each(items):
    for item in items:
        yield item.price


@contextmanager
def opened(items):
    yield items


@doubled
def twice(value):
    return value


@route("/total")
def show(items):
    return {"total": total(items)}


async def later(value): return value + 1
'''
PYTHON: dict[str, tuple[Ended, str]] = {
    "compares a value": (FAILED, "assert shop.total([shop.Item(2, 3)]) == 6"),
    "a keyword": (FAILED, "assert shop.total([Item(2)], rate=2) == 4"),
    "expects an error": (FAILED, "with pytest.raises(ValueError):\n        shop.Cart().add(Item(-1))"),
    "a property": (FAILED, "assert shop.Cart().size == 0"),
    "a generator": (FAILED, "assert list(shop.each([Item(1)])) == [1]"),
    "a context manager": (FAILED, "with shop.opened([1]) as items:\n        assert items"),
    "a decorated function": (FAILED, "assert shop.twice(2) == 4"),
    "a registered function": (FAILED, "assert shop.ROUTES['/total']([]) == {'total': 0}"),
    "async": (FAILED, "assert asyncio.run(shop.later(1)) == 2"),
    "a helper of the suite": (FAILED, "check(shop.total([]))"),
    "an unmocked part": (FAILED, "monkeypatch.setattr(shop, 'LIMIT', 1)\n    assert shop.total([]) == 0"),
    # Faults that were seeded: each passes whatever the program does.
    "asserts nothing": (PASSED, "shop.total([])"),
    "a tautology": (PASSED, "result = shop.total([])\n    assert result == result"),
    "a constant": (PASSED, "assert True"),
    "swallowed": (PASSED, "try:\n        assert shop.total([]) == 7\n    except AssertionError:\n        pass"),
    "behind a return": (PASSED, "return\n    assert shop.total([]) == 7"),
    "compared and not asserted": (PASSED, "shop.total([]) == 0"),
    "in a loop over nothing": (PASSED, "for one in []:\n        assert shop.total([one]) == 1"),
    "a copy of the implementation": (PASSED, "assert copied_total([2, 3]) == 5"),
    "a mock of the subject": (
        PASSED, "monkeypatch.setattr(shop, 'total', lambda items: 6)\n    assert shop.total([]) == 6",
    ),
    "a mock object": (PASSED, "cart = Mock()\n    cart.add(1)\n    cart.add.assert_called_once_with(1)"),
    "only that it is there": (PASSED, "assert callable(shop.total)"),
    "not awaited": (PASSED, "shop.later(1).close()"),
    "honest, and asks for None": (PASSED, "assert shop.find([], 1) is None"),
    # What stays in the hollow tree may be what a test is about.
    "a constant of the program": (NOT_JUDGED, "assert shop.LIMIT == 3"),
    "fields": (NOT_JUDGED, "assert Item(2) == Item(2, 1)"),
    "what a fixture of its file uses": (NOT_JUDGED, "assert limit == 3"),
    "skipped": (NOT_JUDGED, "pytest.skip('later')"),
}  # fmt: skip
HEAD = """import asyncio
from unittest.mock import Mock
import pytest
import shop
from shop import LIMIT, Item

@pytest.fixture
def limit():
    return shop.LIMIT

def check(value):
    assert value == 0

def copied_total(prices):
    return sum(prices)
"""


async def test_python_tests_that_do_not_notice_their_subject(tmp_path: Path) -> None:
    names = {title: f"test_{title.replace(' ', '_').replace(',', '')}" for title in PYTHON}
    text = HEAD + "".join(
        f"\ndef {names[title]}({'monkeypatch' if 'monkeypatch' in body else 'limit' if ' limit' in body else ''}):\n"
        f"    {body}\n"
        for title, (_, body) in PYTHON.items()
    )
    assert await results(tmp_path, {"shop.py": SHOP}, "tests/test_shop.py", text, tuple(names.values())) == {
        names[title]: result for title, (result, _) in PYTHON.items()
    }


CART = """import { Base } from './base.js';
export const LIMIT = 3;
export function total(prices) { return prices.reduce((sum, price) => sum + price, 0); }
export const later = async (value) => value + 1;
export const wrapped = (value) => ({ value });
export class Cart extends Base {
  constructor(owner) { super(); this.owner = owner; }
  add(price) { if (price < 0) throw new RangeError('price'); this.prices.push(price); }
  get size() { return this.prices.length; }
}
export default { format(price) { return `${price} EUR`; } };
"""
NODE: dict[str, tuple[Ended, str]] = {
    "compares a value": (FAILED, "assert.equal(total([1, 2]), 3)"),
    "awaits": (FAILED, "assert.equal(await later(1), 2)"),
    "an object": (FAILED, "assert.deepEqual(wrapped(1), { value: 1 })"),
    "expects an error": (FAILED, "assert.throws(() => new Cart('a').add(-1), RangeError)"),
    "a getter of a derived class": (FAILED, "assert.equal(new Cart('a').size, 0)"),
    "a method of an object": (FAILED, "assert.equal(cart.format(1), '1 EUR')"),
    "asserts nothing": (PASSED, "total([])"),
    "a tautology": (PASSED, "const sum = total([]); assert.equal(sum, sum)"),
    "swallowed": (PASSED, "try { assert.equal(total([]), 7) } catch {}"),
    "a copy of the implementation": (PASSED, "assert.equal([1, 2].reduce((a, b) => a + b, 0), 3)"),
    "a mock of the subject": (PASSED, "const total = t.mock.fn(() => 6); assert.equal(total([]), 6)"),
    "never called back": (PASSED, "[].forEach((price) => assert.equal(total([price]), 1))"),
    "a constant of the program": (NOT_JUDGED, "assert.equal(LIMIT, 3)"),
}


@needs_node
async def test_node_tests_that_do_not_notice_their_subject(tmp_path: Path) -> None:
    head = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\n"
    head += "import cart, { LIMIT, total, later, wrapped, Cart } from '../src/cart.js';\n"
    text = head + "".join(f"test({title!r}, async (t) => {{ {body}; }});\n" for title, (_, body) in NODE.items())
    sources = {"src/cart.js": CART, "src/base.js": "export class Base { prices = []; }\n"}
    assert await results(tmp_path, sources, "tests/cart.test.js", text, tuple(NODE)) == {
        title: result for title, (result, _) in NODE.items()
    }


async def results(
    folder: Path, sources: dict[str, str], file: str, text: str, names: tuple[str, ...]
) -> dict[str, Ended]:
    """The suite passes on the sources, and this is how its tests end when they are hollow."""
    suite = TestSuite(test_file=file, test_content=text, expected_names=names)
    runner, root = runner_in(folder), tree(folder, {**sources, file: text})
    honest = await runner.run(root, files=[file], key="k")
    assert honest.failed == 0, [case for case in honest.cases if case.id in honest.failing_ids]
    made = hollow(sources)
    for path, changed in made.texts.items():
        (root / path).write_text(changed, encoding="utf-8")
    return results_hollow(suite, await runner.run(root, files=[file], key="k"), made)
