"""Where tests belong, on the layouts of real projects."""

import pytest

from orchestrator.checks.suite_place import Place, beside, place_of

HUMANIZE = (
    *("src/humanize/__init__.py", "src/humanize/filesize.py", "src/humanize/number.py", "src/humanize/lists.py"),
    *("tests/__init__.py", "tests/test_benchmarks.py", "tests/test_filesize.py", "tests/test_number.py"),
)
BOLTONS = (
    *("boltons/__init__.py", "boltons/iterutils.py", "boltons/debugutils.py", "boltons/mboxutils.py"),
    *("tests/conftest.py", "tests/test_iterutils.py", "tests/test_debugutils_trace_print_hook.py"),
)
TENACITY = (
    *("tenacity/__init__.py", "tenacity/wait.py", "tenacity/tornadoweb.py", "tenacity/asyncio/retry.py"),
    *("tenacity/_utils.py", "tests/test_asyncio.py", "tests/test_tenacity.py", "tests/test_tornado.py"),
    "tests/test_utils.py",
)
CLICK = (
    *("src/click/core.py", "src/click/utils.py", "src/click/_termui_impl.py", "src/click/globals.py"),
    *("tests/conftest.py", "tests/test_context.py", "tests/test_termui.py", "tests/test_utils/test_echo.py"),
)
HOOKABLE = ("src/hookable.ts", "src/utils.ts", "test/hookable.test.ts", "test/types.test.ts", "package.json")
EXPRESS = (
    *("lib/request.js", "lib/utils.js", "examples/auth/index.js", "test/acceptance/auth.js", "test/utils.js"),
    *("test/app.all.js", "test/req.get.js", "test/res.json.js"),
)
ANGULAR = (
    *("src/app/cart/cart.service.ts", "src/app/cart/cart.service.spec.ts", "src/app/cart/price.pipe.ts"),
    *("src/app/user/user.service.ts", "src/app/user/user.service.spec.ts", "src/app/user/name.ts"),
)
JEST = ("src/lib/Money.ts", "src/lib/__tests__/Money.test.ts", "src/lib/rates.ts", "src/api/rates.ts")
UNITS = (
    *("shop/cart/items.py", "shop/cart/totals.py", "shop/tax/rates.py", "tests/unit/shop/cart/test_items.py"),
    *("tests/unit/conftest.py", "tests/unit/helpers.py", "tests/integration/test_totals.py"),
)
DJANGO = ("manage.py", "polls/__init__.py", "polls/views.py", "polls/tests.py", "users/views.py", "users/tests.py")
BEHIND = ("app/money.py", "app/money_test.py", "app/rates.py")
AVA = ("index.js", "replacements.js", "test.js")
GO = ("cart.go", "cart_test.go", "rates.go")


@pytest.mark.parametrize(
    ("files", "source", "expected", "there"),
    [
        (HUMANIZE, "src/humanize/number.py", "tests/test_number.py", True),
        (HUMANIZE, "src/humanize/lists.py", "tests/test_lists.py", False),
        (BOLTONS, "boltons/iterutils.py", "tests/test_iterutils.py", True),
        (BOLTONS, "boltons/mboxutils.py", "tests/test_mboxutils.py", False),
        (TENACITY, "tenacity/_utils.py", "tests/test_utils.py", True),
        (TENACITY, "tenacity/asyncio/retry.py", "tests/test_asyncio.py", True),
        (TENACITY, "tenacity/tornadoweb.py", "tests/test_tornado.py", True),
        (TENACITY, "tenacity/wait.py", "tests/test_tenacity.py", True),
        (CLICK, "src/click/_termui_impl.py", "tests/test_termui.py", True),
        (CLICK, "src/click/utils.py", "tests/test_utils/test_echo.py", True),
        (CLICK, "src/click/globals.py", "tests/test_globals.py", False),
        (HOOKABLE, "src/hookable.ts", "test/hookable.test.ts", True),
        (HOOKABLE, "src/utils.ts", "test/utils.test.ts", False),
        (EXPRESS, "lib/utils.js", "test/utils.js", True),
        (EXPRESS, "lib/request.js", "test/request.js", False),
        (ANGULAR, "src/app/cart/cart.service.ts", "src/app/cart/cart.service.spec.ts", True),
        (ANGULAR, "src/app/cart/price.pipe.ts", "src/app/cart/price.pipe.spec.ts", False),
        (ANGULAR, "src/app/user/name.ts", "src/app/user/name.spec.ts", False),
        (JEST, "src/lib/Money.ts", "src/lib/__tests__/Money.test.ts", True),
        (JEST, "src/lib/rates.ts", "src/lib/__tests__/rates.test.ts", False),
        (JEST, "src/api/rates.ts", "src/api/__tests__/rates.test.ts", False),
        (UNITS, "shop/cart/items.py", "tests/unit/shop/cart/test_items.py", True),
        (UNITS, "shop/tax/rates.py", "tests/unit/shop/tax/test_rates.py", False),
        (DJANGO, "users/views.py", "users/tests.py", True),
        (BEHIND, "app/money.py", "app/money_test.py", True),
        (BEHIND, "app/rates.py", "app/rates_test.py", False),
        (AVA, "replacements.js", "test.js", True),
        (GO, "cart.go", "cart_test.go", True),
        (GO, "rates.go", "rates_test.go", False),
        (("app.py",), "app.py", "tests/test_us_4.py", False),
        (("src/app.ts", "package.json"), "src/app.ts", "tests/us_4.test.ts", False),
        (("README.md",), "README.md", "", False),
    ],
)
def test_the_place(files: tuple[str, ...], source: str, expected: str, there: bool) -> None:
    texts = {
        "tests/test_tenacity.py": "import tenacity\nfrom tenacity import retry\n\nwait_fixed, wait_none, wait_chain\n"
        "wait_random, wait_combine, wait_exponential, wait_incrementing\nwait_base, wait_sum\n",
        "tests/test_asyncio.py": "from tenacity import asyncio, _utils\nfrom tenacity.wait import wait_fixed\n",
        "tests/test_utils.py": "def test_is_coroutine_callable(): ...\n",
        "test/utils.js": "describe('utils', () => {})\n",
        "users/tests.py": "from users.views import profile\n",
    }
    kinds = ("fixed", "none", "chain", "random", "combine", "exponential", "incrementing", "base", "sum")
    exports = {"tenacity/wait.py": [f"wait_{kind}" for kind in kinds]}
    found = place_of("US-4", [source], files, texts, exports)
    assert (found.file, found.there) == (expected, there)


def test_of_many_tests_of_a_source_the_one_is_taken_that_the_story_speaks_of() -> None:
    """Those of commander.js: all import its index, and one the source itself, for another function."""
    files = ["lib/command.js", "tests/command.action.test.js", "tests/command.allowExcessArguments.test.js"]
    files += ["tests/command.exitOverride.test.js", "tests/options.bool.test.js", "tests/useColor.test.js"]
    texts = {path: "const commander = require('../');\n" for path in files[1:]}
    texts["tests/useColor.test.js"] = "const { useColor } = require('../lib/command.js');\n"
    exports = {"lib/command.js": ["Command", "useColor"]}
    title = "List excess arguments in the error message"
    assert place_of("CMD-1", files[:1], files, texts, exports, story=title).file == files[2]
    assert place_of("CMD-3", files[:1], files, texts, exports, story="Colors when piped").file == files[-1]


def test_nearest_tests_and_their_helpers_are_shown_with_it() -> None:
    new = place_of("US-4", ["shop/tax/rates.py"], UNITS, {})
    assert new.near[-2:] == ("tests/unit/conftest.py", "tests/unit/helpers.py")
    old = place_of("US-4", ["boltons/iterutils.py"], BOLTONS, {})
    assert old == Place("tests/test_iterutils.py", there=True, near=("tests/test_iterutils.py", "tests/conftest.py"))


def test_a_test_file_that_the_plan_names_goes_first() -> None:
    files = ("src/utils.ts", "src/query.ts", "test/utilities.test.ts", "test/query.test.ts", "test/utils.test.ts")
    assert place_of("US-4", ["src/utils.ts"], files, {}).file == "test/utils.test.ts"
    words = "in test/query.test.ts, imported from src: call it\nalso in test/utilities.test.ts"
    assert place_of("US-4", ["src/utils.ts"], files, {}, planned=words).file == "test/query.test.ts"
    words = "its types in test/types.test-d.ts, which is compiled and never run; the rest in test/utilities.test.ts"
    there = (*files, "test/types.test-d.ts")
    assert place_of("US-4", ["src/utils.ts"], there, {}, planned=words).file == "test/utilities.test.ts"
    words = "in test/filter.test.ts, or packages/a/test/query.test.ts"  # not there
    assert place_of("US-4", ["src/utils.ts"], files, {}, planned=words).file == "test/utils.test.ts"
    words = "`test/unit/filter.test.ts`, `src/new.ts`, `../a.test.ts`"  # as a person's plan names its tests
    assert place_of("US-4", ["src/utils.ts"], files, {}, planned=words)[:2] == ("test/unit/filter.test.ts", False)
    assert place_of("US-4", ["src/utils.ts"], files[:1], {}, planned=words)[:2] == ("test/unit/filter.test.ts", False)
    no_places = "`test/{name}.test.ts`, `node_modules/a/b.test.ts`, `test/types.test-d.ts`, "  # refused there
    assert place_of("US-4", ["src/utils.ts"], files, {}, planned=no_places + words).file == "test/unit/filter.test.ts"
    no_places = "`tests/test_{name}.py`, `.venv/test_a.py`, `dist/test_a.py`"
    assert place_of("US-4", ["a.py"], ["a.py"], {}, planned=no_places).file == "tests/test_us_4.py"
    words += ", `test/query.test.ts`"
    assert place_of("US-4", ["src/utils.ts"], files, {}, planned=words).file == "test/query.test.ts"


def test_of_several_files_the_one_with_tests_decides_and_not_the_manifest() -> None:
    sources = ["pyproject.toml", "src/humanize/__init__.py", "src/humanize/number.py"]
    assert place_of("US-4", sources, HUMANIZE, {}).file == "tests/test_number.py"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_number.py", "tests/test_number_us_4.py"),
        ("app/money_test.py", "app/money_us_4_test.py"),
        ("src/cart.service.spec.ts", "src/cart.service_us_4.spec.ts"),
        ("test/utils.js", "test/utils_us_4.js"),
    ],
)
def test_a_name_beside_a_file_that_is_there(path: str, expected: str) -> None:
    assert beside(path, "US-4") == expected
