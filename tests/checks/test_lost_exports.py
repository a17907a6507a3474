"""What a changed file had and lost, and who still uses it."""

import pytest

from orchestrator.checks.lost_exports import check_lost, lost_exports
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Severity
from tests.world.case import Case, table

PRICES = (
    "RATE = 2\n\n\ndef total(prices):\n    return sum(prices)\n\n\ndef apply_discount(prices):\n    return prices\n"
)
WITHOUT = PRICES.partition("\n\n\ndef apply_discount")[0] + "\n"
USER = {"shop/cart.py": "from shop.prices import apply_discount\n"}
MODULE = "export function total(p) { return p; }\nexport const rate = 2;\n"
COMMON = "function total() {}\nfunction rate() {}\nmodule.exports = { total, rate };\n"
LESS = "export function total(p) { return p; }\n"


def lost(
    files: dict[str, str],
    before: dict[str, str],
    task: str = "",
    others: dict[str, str] | None = None,
    removed: tuple[str, ...] = (),
) -> list[str]:
    """The names that a delivery takes from a file that still imports them."""
    changes = tuple(FileChange(path=path, content=text) for path, text in files.items())
    delivery = Delivery(story_id="US-1", task_id="T-US-1-01", files=changes, removed=removed)
    found = check_lost(delivery, lost_exports(delivery, before, task), others or {})
    assert {one.severity for one in found} <= {Severity.MAJOR}
    return [one.message.split("`")[3] for one in found]


def discount(task: str = "", new: str = WITHOUT, others: dict[str, str] = USER, **more: str) -> list[str]:
    return lost({"shop/prices.py": new, **more}, {"shop/prices.py": PRICES}, task, others)


def test_what_others_use_is_refused_and_what_nobody_uses_is_not() -> None:
    assert discount() == ["apply_discount"]
    assert discount(others={}) == []
    assert discount(new=PRICES + "X = 1\n") == []
    assert discount(new=WITHOUT + "# apply_discount\nX = 'apply_discount', lambda: apply_discount([])\n") == KEPT
    assert discount(others={"other/cart.py": "from other.prices import apply_discount\n"}) == []
    assert discount(others={"tests/test_cart.py": USER["shop/cart.py"]}) == [], "the tester's files are no users"
    many = {f"shop/a{n}.py": USER["shop/cart.py"] for n in range(4)}
    changed = (FileChange(path="shop/prices.py", content=WITHOUT),)
    delivery = Delivery(story_id="US-1", task_id="T", files=changed)
    (found,) = check_lost(delivery, lost_exports(delivery, {"shop/prices.py": PRICES}), many)
    assert "shop/a0.py, shop/a1.py, shop/a2.py and 1 more" in found.message


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shop/cart.py", "import shop.prices\nshop.prices.apply_discount([])\n"),
        ("shop/cart.py", "from . import prices as p\np.apply_discount([])\n"),
        ("shop/x/cart.py", "from ..prices import apply_discount as d\n"),
        ("shop/cart.py", "from shop import prices\nX = prices.apply_discount\n"),
        ("shop/cart.py", "def f():\n    from shop.prices import (\n        total,\n        apply_discount,\n    )\n"),
    ],
)
def test_ways_to_use_a_name(path: str, text: str) -> None:
    assert discount(others={path: text}) == ["apply_discount"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shop/cart.py", "from shop.prices import total  # not apply_discount\n"),
        ("shop/cart.py", "import shop.prices\napply_discount = 1\n"),
        ("other/cart.py", "from .prices import apply_discount\n"),
        ("shop/cart.py", "from prices import apply_discount\n"),
        ("shop/cart.py", "def (\nfrom shop.prices import apply_discount\n"),
    ],
)
def test_a_file_that_only_speaks_of_a_name_uses_it_not(path: str, text: str) -> None:
    assert discount(others={path: text}) == []


KEPT, GONE = ["apply_discount"], list[str]()


@table(
    *(
        Case(
            name=task, given=task, right=right, seen="tasks of plans, which name what they extend as well as what goes"
        )
        for task, right in (
            ("Extend `apply_discount` by a share; keep its callers working.", KEPT),
            ("apply_discount takes the voucher's rate as well.", KEPT),
            ("Remove the cache of `apply_discount`.", KEPT),
            ("Do not remove `apply_discount`.", KEPT),
            ("Move the rates out of apply_discount into a table.", KEPT),
            ("Extend `apply_discount` and delete the old cache.", KEPT),
            ("Add `drop_rows` beside `apply_discount`.", KEPT),
            ("Let `apply_discount` split and merge prices.", KEPT),
            ("Remove the rounding helper. `apply_discount` is told the rate.", KEPT),
            ("Without removing `apply_discount`, add vouchers.", KEPT),
            ("Remove the discount helper.", KEPT),
            ("Replace apply_discount by one that knows vouchers", GONE),
            ("Remove `total` and `apply_discount`.", GONE),
            ("Rename the helper `apply_discount` to `with_discount`.", GONE),
            ("Delete the function `shop.prices.apply_discount`, which nobody wants.", GONE),
            ("`apply_discount` is no longer wanted.", GONE),
            ("apply_discount() should be moved to shop/vouchers.py.", GONE),
            ("Get rid of `apply_discount`", GONE),
        )
    )
)
def test_a_name_goes_where_the_task_takes_it_away_and_not_where_it_is_mentioned(case: Case) -> None:
    assert discount(case.given) == case.right


def test_what_is_still_there_in_another_way_is_not_lost() -> None:
    assert discount(new="from shop.all import *\n") == []
    tried = "try:\n    from fast import apply_discount as a, total\nexcept ImportError:\n    apply_discount = a\n"
    assert discount(new=tried) == []
    assert discount(new="def broken(:\n") == [], "its syntax is refused"
    assert discount(new='__all__ = ["RATE"]\n' + PRICES) == []
    user = {"src/b.js": "import { rate, total } from './a.js';\n"}
    for new in ("const api = all();\nmodule.exports = api;\n", "module.exports = { ...require('./b') };\n"):
        assert lost({"src/a.js": new}, {"src/a.js": COMMON}, others=user) == []
    assert (
        lost({"src/a.ts": "export * from './b';\n"}, {"src/a.ts": MODULE}, others={"src/b.ts": user["src/b.js"]}) == []
    )


@pytest.mark.parametrize(
    ("path", "user", "text"),
    [
        ("src/a.js", "src/b.js", "import total, { rate } from './a.js';\n"),
        ("src/a.js", "src/c.js", "const { rate } = require('./a');\n"),
        ("src/a.js", "src/c.js", "const rate = require('./a').rate;\n"),
        ("src/a.js", "src/c.js", "const a = require('./a');\nexport const two = a.rate * 2;\n"),
        ("src/a.js", "src/c.js", "import * as a from './a';\nf(a.rate);\n"),
        ("src/a.ts", "src/c.ts", "import {\n  total,\n  type rate as r,\n} from '@/a';\n"),
        ("src/lib/index.ts", "src/b.ts", "import { rate } from './lib';\n"),
        ("src/lib/index.ts", "src/b.ts", "export { rate } from './lib/index.js';\n"),
    ],
)
def test_javascript(path: str, user: str, text: str) -> None:
    assert lost({path: LESS}, {path: MODULE}, others={user: text}) == ["rate"]
    assert lost({path: LESS}, {path: MODULE}, others={user: text.replace("rate", "other")}) == []
    assert lost({path: LESS}, {path: MODULE}, others={user: f"// {text}".replace("\n", "")}) == []


@pytest.mark.parametrize(
    ("removed", "path", "text"),
    [
        ("old.py", "new.py", "from old import X\n"),
        ("app/old.py", "app/new.py", "import app.old\nprint(app.old.X)\n"),
        ("app/old.py", "app/new.py", "from .old import X\n"),
        ("app/old.py", "app/new.py", "from . import old\nprint(old.X)\n"),
        ("src/app/old.py", "src/app/new.py", "from app.old import X\n"),
        ("lib/old.js", "lib/new.js", "const { X } = require('./old');\n"),
        ("lib/old.js", "lib/new.mjs", "import { X } from './old.js';\n"),
        ("lib/old/index.ts", "lib/new.ts", "import { X } from './old';\n"),
    ],
)
def test_a_file_that_goes_takes_its_names_along(removed: str, path: str, text: str) -> None:
    before = {removed: "X = 1\n" if removed.endswith(".py") else "export const X = 1;\n"}
    assert lost({path: text}, before, removed=(removed,)) == ["X"]
    assert lost({}, before, others={path: text, **before}, removed=(removed,)) == ["X"]
    assert lost({path: "X = 1\n"}, before, others={path: text}, removed=(removed,)) == []
    assert lost({}, before, f"Move {removed} into the other package", others={path: text}, removed=(removed,)) == []


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
        ("lib/old.js", {"lib/new.js": "import { X } from 'old';\n"}),
    ],
)
def test_what_is_still_there_or_another_is_not(removed: str, files: dict[str, str]) -> None:
    before = {removed: "X = 1\n" if removed.endswith(".py") else "export const X = 1;\n"}
    assert lost(files, before, removed=(removed,)) == []
