"""The map of a project for a story: what it is about first, within one budget, whatever the project's size."""

import re

import pytest

from orchestrator.code.outline import outline
from orchestrator.core.contract import FileExports
from orchestrator.prompts.budget import tokens
from orchestrator.story.project_map import (
    MAP_TOKENS,
    NEAR_FILES,
    imports_of,
    in_part,
    near_paths,
    nearby,
    project_map,
    ranked,
)
from orchestrator.story.project_scan import build_surface, scan_paths

SHOP = {
    "shop/__init__.py": "",
    "shop/prices.py": "from shop.money import rounded\n\n\n"
    "def price_of(item: str) -> float:\n    return rounded(1.0)\n",
    "shop/money.py": "def rounded(amount: float) -> float:\n    return _half_up(amount)\n\n\n"
    "def _half_up(amount: float) -> float:\n    return round(amount, 2)\n",
    "shop/parcels.py": "class Parcel:\n    weight: float\n\n    def label(self) -> str:\n        return ''\n",
    "shop/cart.py": "from .prices import price_of\n\n\ndef total(items: list[str]) -> float:\n"
    "    return sum(price_of(item) for item in items)\n",
    "web/cart.js": "import { add } from './lines';\nexport function show(cart) {\n  return add(cart);\n}\n",
    "web/lines.js": "export const add = (cart) => cart;\n",
    "web/style.css": ".cart-line:hover { color: red }\n.btn { color: blue }\n",
    "tests/test_prices.py": "from shop.prices import price_of\n\n\n"
    "def test_price() -> None:\n    assert price_of('a')\n",
}


def grown(modules: int) -> dict[str, str]:
    more = {
        f"part_{n}/m{n}.py": f"def work_{n}(values: list[int]) -> int:\n    return {n}\n" * 3 for n in range(modules)
    }
    return {**SHOP, **more}


def test_imports_are_found_in_python_and_javascript_also_relative_ones() -> None:
    assert imports_of({**SHOP, "src/pkg/a.py": "import pkg.b\n", "src/pkg/b.py": ""}, (*SHOP, "src/pkg/b.py")) == {
        "shop/cart.py": ("shop/prices.py",),
        "shop/prices.py": ("shop/money.py",),
        "src/pkg/a.py": ("src/pkg/b.py",),
        "tests/test_prices.py": ("shop/prices.py",),
        "web/cart.js": ("web/lines.js",),
    }


@pytest.mark.parametrize("about", ["`shop.spelled` carries where it rounds up", "Mend it"])
def test_many_files_of_one_name_do_not_come_before_the_tests(about: str) -> None:
    """Forty translations in folders with the project's name were listed, and the test file of the story was not."""
    files = {f"src/shop/locale/l{n}/LC_MESSAGES/shop.po": "" for n in range(40)}
    files |= {f"src/{path}": text for path, text in SHOP.items() if path.startswith("shop/")}
    files |= {f"tests/test_{name}.py": "" for name in "abcdef"}
    files |= {f"docs/page{n}.md": "" for n in range(40)} | {f"docs/spelled_{n}.md": "" for n in "ab"}
    files |= {"src/shop/words.py": "def spelled(cents: int) -> str: ...\n"}
    files["tests/test_cents.py"] = "import shop\n\n\ndef test_spelled():\n    assert shop.spelled(1)\n"
    read = {path: text for path, text in files.items() if not path.endswith(".po")}
    order = [path for path, _ in ranked(about, tuple(files), read, imports_of(read, files))]
    assert sum(path.endswith(".po") for path in order[: order.index("tests/test_cents.py")]) < 8


@pytest.mark.parametrize("modules", [0, 30, 3000])
def test_the_map_keeps_to_its_budget_and_shows_what_the_story_is_about(modules: int) -> None:
    files = grown(modules)
    shown = project_map("Prices have a discount", tuple(files), files, imports_of(files, files))
    assert "def price_of(item: str) -> float" in shown
    assert "def rounded(amount: float) -> float" in shown
    assert tokens(shown) <= MAP_TOKENS
    assert ("Files not named here: " in shown) is (modules > 100)


def test_the_files_of_the_root_are_named_where_there_is_no_room_for_all() -> None:
    files = {**grown(3000), "CHANGES.md": "## Version 8.5.0\n", "LICENSE.txt": "", ".gitignore": ""}
    shown = project_map("Prices have a discount", tuple(files), files, imports_of(files, files))
    assert "in the root (CHANGES.md, LICENSE.txt), " in shown
    assert tokens(shown) <= MAP_TOKENS
    files |= {f"note-{n}.md": "" for n in range(900)}
    assert re.search(r"in the root \(\d+\), ", project_map("Prices have a discount", tuple(files), files, {}))


SHOWN = ("versions", "imports", "map")


def test_the_scan_of_a_story_reads_its_files_first_and_pages_too() -> None:
    files = (*(f"a{n}.py" for n in range(700)), "far/below/here/prices.py", "web/style.css")
    assert "far/below/here/prices.py" not in scan_paths(files)
    assert {"far/below/here/prices.py", "web/style.css"} <= set(scan_paths(files, "Prices have a discount"))
    surface = build_surface("", tuple(SHOP), SHOP, about="The cart has buttons")
    assert "web/style.css:\n```css\n.cart-line:hover" in surface.map
    assert surface.imports["shop/cart.py"] == ("shop/prices.py",)
    assert build_surface("", tuple(SHOP), SHOP).map == ""
    checked = build_surface("", tuple(SHOP), SHOP, about="The cart has buttons", shown=False)
    assert checked.model_dump(exclude={*SHOWN}) == surface.model_dump(exclude={*SHOWN})
    assert {name: getattr(checked, name) for name in SHOWN if getattr(checked, name)} == {}, "no prompt shows it"


def test_around_a_task_stand_what_it_imports_who_imports_it_and_what_it_names() -> None:
    exports = (
        FileExports(path="shop/parcels.py", names=("Parcel",)),
        FileExports(path="shop/money.py", names=("rounded",)),
    )
    imports = imports_of(SHOP, SHOP)
    near = near_paths("A Parcel has a price", ["shop/prices.py"], tuple(SHOP), exports, imports)
    assert near == ("shop/parcels.py", "shop/money.py", "shop/cart.py")
    shown = nearby(near, SHOP, "A Parcel has a price", told="shop/cart.py:\n")
    assert "class Parcel" in shown
    assert "shop/cart.py" not in shown
    many = {f"m{n}.py": ("shop/prices.py",) for n in range(50)}
    assert len(near_paths("x", ["shop/prices.py"], tuple(many), (), many)) == NEAR_FILES


def test_of_a_method_that_many_classes_have_that_of_the_named_class_is_shown() -> None:
    """The task that is below was planned for click, whose module of types has fourteen methods `convert`."""
    text = "import os\n" + "".join(
        f"\n\nclass {name}(ParamType):\n    def convert(self, value):\n"
        + "        value = value.strip()\n" * 30
        + f"        return self.{name.lower()}(value)\n"
        for name in (*(f"Type{n}" for n in range(20)), "Choice", *(f"Other{n}" for n in range(20)))
    )
    shown = in_part("types.py", text, "the error of Choice suggests close choices where convert fails")
    assert "return self.choice(value)" in shown
    assert "return self.type19(value)" not in shown


def test_a_changelog_is_shown_by_its_head() -> None:
    text = "# Changes\n\n" + "".join(f"## 1.{n}\n\n- something was changed in part {n}\n\n" for n in range(300))
    shown = in_part("CHANGELOG.md", text, "Add a function")
    assert "## 1.5\n" in shown
    assert "## 1.250" not in shown


def test_of_a_long_module_imports_and_exported_names_are_shown() -> None:
    text = "# licence\n" * 20 + "import os\nfrom shop import (\n    prices,\n    taxes,\n)\n\n\n"
    text += "".join(f"def work_{n}():\n    return {n}\n\n\n" for n in range(900)) + '__all__ = [\n    "work_1",\n]\n'
    shown = in_part("m.py", text, "export rates")
    assert "import os\nfrom shop import (\n    prices,\n    taxes,\n)" in shown
    assert '__all__ = [\n    "work_1",\n]' in shown
    works = "".join(f"def work_{n}():\n    return [{n}]\n\n\n" for n in range(900))
    for names in ('__all__: list[str] = [\n    "work_1",\n]', '__all__ = (\n    "work_1",\n)', "__all__ = ['work_1']"):
        assert f"{names}\n```" in in_part("m.py", "# licence\n" * 20 + f"{names}\n\n\n\n\n\n{works}", "export rates")
    script = "import {\n  prices,\n} from './prices.js'"
    functions = "".join(f"export function work{n}() {{\n  return {n}\n}}\n\n" for n in range(900))
    assert script in in_part("m.js", "// licence\n" * 20 + f"{script}\n\n\n{functions}", "export rates")


def test_outlines_name_what_can_be_built_on() -> None:
    def told(path: str, text: str) -> list[str]:
        return [one.signature for one in outline(text, path)]

    assert told(
        "a.py", "class A(B):\n    x: int\n\n    @property\n    async def f(self): ...\n\n\ndef _g(a=1): ...\n"
    ) == ["class A(B): x: int", "  @property async def f(self)", "def _g(a=1)"]
    # sqlite-utils: the name stands behind the options of a command.
    options = "".join(f"@click.option('--{name}', help='Include {name} for each table')\n" for name in "abcdefgh")
    assert told("cli.py", f"@cli.command()\n{options}@output_options\ndef tables(path, a): ...\n") == [
        "@cli.command(…) @click.option(…) @output_options def tables(path, a)"
    ]
    # Read as the checks read it: with a byte order mark, and where the running Python is older than the text.
    assert told("a.py", "\ufeffdef f[T](a: T) -> T: ...\n") == ["def f(a: T) -> T"]
    typed = "export class Hooks<\n  T extends object,\n> {\n  private _held: T;\n\n  add<N extends keyof T>(\n"
    typed += "    name: N,\n    ...args: T[N][]\n  ): () => void {\n    this.go(\n      name,\n    );\n  }\n\n"
    typed += "  async *go<N>(name: N) {\n  }\n}\n"
    assert told("a.ts", typed) == [
        "export class Hooks<T extends object>",
        "  add<N extends keyof T>(name: N, ...args: T[N][]): () => void",
        "  async *go<N>(name: N)",
    ]
    assert told("a.js", "class A {\n\trun(x) {\n\t}\n}\n") == ["class A", "  run(x)"]
    assert told(
        "a.js", "export async function f(a) {\n}\nclass A {\n  run(x) {\n  }\n}\nmodule.exports = { f };\n"
    ) == ["export async function f(a)", "class A", "  run(x)", "module.exports = { f };"]
    # p-limit: an example in a comment is no code, a call with a function is no method.
    limit = "export type LimitFunction = {\n\t/**\n\tDiscard pending promises.\n\n```\nconst limit = pLimit(1);\n```\n"
    limit += "\t*/\n\tclearQueue: () => void;\n};\n/** Runs. */ export default function pLimit(concurrency: number);\n"
    assert told("index.d.ts", limit) == [
        "export type LimitFunction =",
        "export default function pLimit(concurrency: number);",
    ]
    calls = "test('clears', t => {\n\tpLimit({});\n\tt.throws(() => {\n\t\tlimit(async () => {\n\t\t});\n\t});\n});\n"
    assert told("test.js", calls) == []
    # A formatter sets long parameters on lines of their own; brackets in a comment count for nothing.
    objects = "export class Store {\n  constructor({\n    url,\n  }) {\n  }\n  async load(url, {\n    retries = 3,\n"
    objects += "  } = {}) {\n  }\n  done(all) { // :(\n  }\n  end(all) { return all; };\n}\n"
    assert [one.name for one in outline(objects, "a.js")] == ["Store", "constructor", "load", "done", "end"]
    assert outline("class A {}\n/*\f\n*/\nfunction f() {}\n", "a.js")[1].line == 5
    assert [one.name for one in outline("/*\n" * 100_000 + "class A {}\n", "a.js")] == ["A"], (
        "at once, though not closed"
    )
    assert told("a.css", ".card:hover, .card > .title {}") == ["classes: card, title"]
    page = (
        '{% extends "base.html" %}{% block body %}<form id="login" class="card wide"><input name="email">{% endblock %}'
    )
    assert told("a.html", page) == [
        "extends: base.html",
        "blocks: body",
        "classes: card, wide",
        "ids: login",
        "fields: email",
    ]
    assert told("a.sql", "CREATE TABLE t (id INT, name TEXT);") == ["CREATE TABLE t (id INT, name TEXT)"]
    made = "-- CREATE TABLE no (a INT);\ncreate table if not exists\n `t` (\n  id INT\n);\nCREATE TEMP TABLE u (b INT);"
    assert told("a.sql", made) == ["create table if not exists `t` ( id INT )", "CREATE TEMP TABLE u (b INT)"]
    assert told("broken.py", "def f(:") == []
