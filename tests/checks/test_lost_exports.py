"""What a changed file had and lost."""

import pytest

from orchestrator.checks.lost_exports import check_gone, check_lost, lost_exports
from orchestrator.core.delivery import Delivery, FileChange

PRICES = (
    "RATE = 2\n\n\ndef total(prices):\n    return sum(prices)\n\n\ndef apply_discount(prices):\n    return prices\n"
)
USER = {"shop/cart.py": "from shop.prices import apply_discount\n"}
JS = "export function total(p) { return p; }\nexport const rate = 2;\nexport default total;\n"
_NAMES = {"apply_discount", "rate", "default"}
COMMON = "function total() {}\nfunction rate() {}\nmodule.exports = { total, rate };\n"


def lost(
    path: str,
    old: str,
    new: str,
    *,
    task: str = "",
    others: dict[str, str] | None = None,
    more: dict[str, str] | None = None,
) -> list[tuple[str, str]]:
    files = tuple(FileChange(path=name, content=text) for name, text in {path: new, **(more or {})}.items())
    delivery = Delivery(story_id="US-1", task_id="T-US-1-01", files=files)
    found = check_lost(delivery, lost_exports(delivery, {path: old}, task), others or {})
    return [(str(one.severity), name) for one in found for name in one.message.split("`")[3::2] if name in _NAMES]


def without(name: str, text: str = PRICES) -> str:
    head, _, rest = text.partition(f"def {name}(")
    return head + rest.partition("\n\n\n")[2]


def test_what_others_use_is_major_and_what_nobody_uses_is_told() -> None:
    new = without("apply_discount")
    assert lost("shop/prices.py", PRICES, new, others=USER) == [("major", "apply_discount")]
    assert lost("shop/prices.py", PRICES, new) == [("minor", "apply_discount")]
    assert lost("shop/prices.py", PRICES, PRICES + "X = 1\n", others=USER) == []
    assert lost(
        "shop/prices.py", PRICES, new, others={"other/cart.py": "from other.prices import apply_discount\n"}
    ) == [("minor", "apply_discount")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shop/cart.py", "import shop.prices\nshop.prices.apply_discount([])\n"),
        ("shop/cart.py", "from . import prices as p\np.apply_discount([])\n"),
        ("shop/x/cart.py", "from ..prices import apply_discount as d\n"),
        ("shop/cart.py", "from shop import prices\nX = prices.apply_discount\n"),
    ],
)
def test_ways_to_use_a_name(path: str, text: str) -> None:
    assert lost("shop/prices.py", PRICES, without("apply_discount"), others={path: text}) == [
        ("major", "apply_discount")
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shop/cart.py", "from shop.prices import total  # not apply_discount\n"),
        ("shop/cart.py", "import shop.prices\napply_discount = 1\n"),
        ("other/cart.py", "from .prices import apply_discount\n"),
        ("shop/cart.py", "from prices import apply_discount\n"),
    ],
)
def test_a_file_that_only_speaks_of_a_name_uses_it_not(path: str, text: str) -> None:
    assert lost("shop/prices.py", PRICES, without("apply_discount"), others={path: text}) == [
        ("minor", "apply_discount")
    ]


@pytest.mark.parametrize(
    "task",
    [
        "Replace apply_discount by one that knows vouchers",
        "Remove the discount function",
        "`apply_discount` is not wanted",
        "Rename the discount helper",
    ],
)
def test_what_the_task_names_may_go(task: str) -> None:
    assert lost("shop/prices.py", PRICES, without("apply_discount"), task=task, others=USER) == []


def test_another_task_names_nothing() -> None:
    task = "Add a rounding helper and remove nothing"
    assert lost("shop/prices.py", PRICES, without("apply_discount"), task=task, others=USER) == [
        ("major", "apply_discount")
    ]


def test_what_moved_is_lost_only_to_those_who_ask_the_old_file() -> None:
    new, moved = without("apply_discount"), {"shop/vouchers.py": "def apply_discount(prices):\n    return prices\n"}
    assert lost("shop/prices.py", PRICES, new, more=moved) == []
    assert lost("shop/prices.py", PRICES, new, more=moved, others=USER) == [("major", "apply_discount")]
    again = "from shop.vouchers import apply_discount\n" + new
    assert lost("shop/prices.py", PRICES, again, more=moved, others=USER) == []


def test_what_is_still_there_in_another_way_is_not_lost() -> None:
    assert lost("shop/prices.py", PRICES, "from shop.all import *\n") == []
    assert lost("shop/prices.py", PRICES, '__all__ = ["RATE"]\n' + PRICES) == []
    assert lost("shop/prices.py", PRICES, "def broken(:\n") == []
    assert lost("shop/prices.py", PRICES, "") == []
    assert lost("src/a.js", COMMON, "const api = { total, rate };\nmodule.exports = api;\n") == []
    assert lost("src/a.js", COMMON, "module.exports = { ...require('./b') };\n") == []
    assert lost("src/a.ts", JS, "export * from './b';\n") == []


def test_javascript() -> None:
    user = {"src/b.js": "import total, { rate } from './a.js';\n"}
    assert lost("src/a.js", JS, "export function total(p) { return p; }\nexport default total;\n", others=user) == [
        ("major", "rate")
    ]
    assert lost("src/a.js", JS, JS.replace("export default total;\n", ""), others=user) == [("major", "default")]
    assert lost(
        "src/a.js", COMMON, COMMON.replace(", rate", ""), others={"src/c.js": "const { rate } = require('./a');\n"}
    ) == [("major", "rate")]
    assert lost("src/lib/index.ts", JS, JS.replace("export const rate = 2;\n", ""), others={
        "src/b.ts": "import { rate } from './lib';\n"}) == [("major", "rate")]  # fmt: skip


def said(removed: str, files: dict[str, str], before: dict[str, str] | None = None) -> list[str | None]:
    changes = tuple(FileChange(path=path, content=text) for path, text in files.items())
    delivery = Delivery(story_id="US-1", task_id="T-US-1-01", files=changes, removed=(removed,))
    return [finding.where.file for finding in check_gone(delivery, {removed: "X = 1\n", **(before or {})})]


@pytest.mark.parametrize(
    ("removed", "path", "text"),
    [
        ("old.py", "new.py", "from old import X\n"),
        ("app/old.py", "app/new.py", "import app.old\n"),
        ("app/old.py", "app/new.py", "from .old import X\n"),
        ("src/app/old.py", "src/app/new.py", "from app.old import X\n"),
        ("lib/old.js", "lib/new.js", "const { X } = require('./old');\n"),
        ("lib/old.js", "lib/new.mjs", "import { X } from './old.js';\n"),
        ("lib/old/index.ts", "lib/new.ts", "import { X } from './old';\n"),
    ],
)
def test_who_imports_what_is_gone_is_told(removed: str, path: str, text: str) -> None:
    assert said(removed, {path: text}) == [path]
    assert said(removed, {}, {path: text}) == [path], "a file of the task that was left as it was"
    assert said(removed, {path: "X = 1\n"}, {path: text}) == []


@pytest.mark.parametrize(
    ("removed", "files"),
    [
        ("old.py", {"old/__init__.py": "X = 1\n", "new.py": "from old import X\n"}),
        ("lib/old.js", {"lib/old.ts": "export const X = 1;\n", "lib/new.ts": "import { X } from './old';\n"}),
        ("app/requests.py", {"app/new.py": "import requests\n"}),
        ("app/old.py", {"other/new.py": "from .old import X\n"}),
        ("app/old.py", {"app/new.py": "old = 1  # from app.old import X\n"}),
        ("app/old.py", {"app/new.py": "from app import older\n"}),
        ("old.json", {"new.py": "def (\n"}),
        ("lib/old.js", {"lib/new.js": "import x from 'old';\n"}),
    ],
)
def test_what_is_still_there_or_another_is_not(removed: str, files: dict[str, str]) -> None:
    assert said(removed, files) == []
