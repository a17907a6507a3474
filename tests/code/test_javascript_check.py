import pytest

from orchestrator.code.check import check_syntax
from orchestrator.code.javascript.tests import test_names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#!/usr/bin/env node\nimport a, { b as c } from './a.js' with { type: 'json' };\nexport default c?.d ?? a;\n",
        "class A { #x = 1_000n; static { this.y = 2; } get [k]() { return this.#x; } async *z() { yield* q; } }\n",
        "const f = async ({ a = 1, ...rest }, [b]) => { for await (const x of y) label: while (1) break label; };\n",
        "const t = tag`a ${`b ${c}`}`; a ||= /[/]\\/(?<n>x)/v.exec(b) ** 2;\n",
        "export const App = () => <div className='x'>{list.map((i) => <Item key={i} />)}</div>;\n",
        "function f() {\n  return 1\n}\nlet a = 1\nlet b = f()\n++a\n",
        "let in_x\nlet a = b\nin_x = a\n",
        "f('`', () => $`a ${'`'}\\`${'b'}`, 'a`b');\n"
        "f('\\\\u{g}', () => $`echo.js \\u{g} ${`\\n`}`, `a\\n`, String.raw`\\x\\`${'\\`'}`)\n",  # execa
    ],
)
def test_javascript_that_parses(text: str) -> None:
    for path in ("src/a.js", "a.mjs", "a.cjs"):
        assert check_syntax(path, text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [("const a = (1;\n", 1), ("let a = 1;\nfunction f( {\n", 2), ("let a: number = 1;\n", 1), ("if (a) {\n", 1)],
)
def test_javascript_that_does_not(text: str, line: int) -> None:
    (found,) = check_syntax("src/a.js", text, code="delivery.syntax")
    assert (str(found.severity), found.code, found.where.line) == ("major", "delivery.syntax", line)


@pytest.mark.parametrize(
    "text",
    [
        "import type { A } from 'p'; import { type B, c } from './b.ts'; import fs = require('fs'); export = fs;\n",
        "export type { T } from './t'; export type * from './u'; export type * as V from './v';\n",
        "enum E { A = 1 << 0 } const enum F { B } namespace N.M { export const a = 1 } declare module 'x' {}\n",
        "abstract class P<const T, in out U> implements I { private readonly x?: number; accessor q = 1; f!: T }\n",
        "type F<T> = T extends (infer U extends string)[] ? U : never; type M = { readonly [P in keyof T]-?: T[P] };\n",
        "const v = { a: 1 } satisfies R<string>; const w = <const>['a']; f<string>(x!, y as unknown as Z);\n",
        "function f(x: string): void; function f(x: any): asserts x is string {} let t: [a: string, ...b: X[]];\n",
        "@Injectable() export class S { constructor(@Inject(X) private x: X) {} static { this.y = 1; } }\n",
        "interface S {\n  url?: string | null\n  /** d */\n  in_reply_to_id?: string | null\n}\n",  # elk
        "interface O<\n  in out A,\n  in out B extends\n    | undefined\n    | F<A>,\n> {}\n",  # form of TanStack
        "type S<T> = { [type in keyof T]: T[type] extends { a: infer R } ? R : never }\n"
        "interface Q<T> {\n  <A>(a: A): R;\n\n  /** b */\n  <B>(b: B): R;\n}\n",  # postgres
        # Call signatures with type parameters behind one without `;`: hono, immer, vite; beside such an arrow: zustand.
        "interface F {\n  <\n    T,\n  >(a: T): R<T>\n  <\n    T extends {},\n  >(b: T, c: U): R<T>\n}\n",
        "type P = {\n  (a: A): () => void\n  <S extends (...b: any[]) => any>(c: S): void\n}\n"
        "export const f =\n  <S>(a: S) =>\n  <T>(b: T): T => b\n",
    ],
)
def test_typescript_that_parses(text: str) -> None:
    for path in ("src/a.ts", "a.mts", "a.cts"):
        assert check_syntax(path, text) == []


def test_typescript_that_does_not_and_what_only_one_language_knows() -> None:
    for path, text in (("a.ts", "let a: number = (1;\n"), ("a.tsx", "<div>\n"), ("a.mts", "class A {\n  f() {\n")):
        (found,) = check_syntax(path, text, code="delivery.syntax")
        assert (str(found.severity), found.code) == ("major", "delivery.syntax")
        assert found.message.startswith("TypeScript")
    page = "const App = () => <p>{x as string}</p>;\n"
    assert [bool(check_syntax(path, page)) for path in ("a.tsx", "a.ts", "a.jsx")] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "const test = require('node:test');\ntest('a', f); test.it('b', f); test.suite('c', () => test('d', f));",
            "a b c>d",
        ),
        ("const { test: t, describe } = require('node:test');\ndescribe.only('x', () => { t.skip('y'); });", "x>y"),
        ("import * as nt from 'node:test';\nnt.test('a', f); nt.suite('s', () => nt.it('b', f));", "a s>b"),
        ("import t from 'ava';\nt('a', f); t.serial('b', f); t.before(f); t.serial.skip('c', f);", "a b c"),
        ("import t from 'node:test';\nt('tab\\t \\u{1F600}\\x41', f);", "tab\t\U0001f600A"),
        (
            "import t from 'node:test';\nt('a', async (c) => { await c.test('b', (d) => d.test('c', f)); });",
            "a a>b a>b>c",
        ),
        ("import t from 'node:test';\nfunction make() { t('hidden', f); }\nif (x) { t('seen', f); }", "seen"),
        ("import t from 'tap';\nt('a', f);", ""),
        ("import t from 'node:test';\nt(f); t(`a ${b}`, f); t('', f); t();", ""),
    ],
)
def test_names_as_node_reports_them(text: str, names: str) -> None:
    assert " ".join(name.replace(" > ", ">").replace(" ", "") for name in test_names(text, "a.test.js")) == names


def test_names_of_typescript_tests() -> None:
    text = """import { test, describe } from 'node:test';
describe('s', (): void => {
  test('a', async (t: Context) => { await t.test('b', (): void => {}); });
  test('d', { timeout: 1 } as Options, f);
});
"""
    assert test_names(text, "a.test.ts") == ("s > a", "s > a > b", "s > d")


def test_what_only_the_other_grammar_takes_is_no_fault() -> None:
    for path, text in (
        ("a.js", "const a = <p class='x'>hi</p>;\n"),
        ("a.jsx", "const a = <label for='y'>hi</label>;\n"),
        ("a.js", "// @flow\nlet a: number = 1;\n"),
        ("a.ts", "interface P {\n\t<A>(r: X): A\n\n\t/** c */\n\t<R extends F>(\n\t\tr: R\n\t): I<R>\n}\n"),
    ):
        assert check_syntax(path, text) == [], text
    assert check_syntax("a.jsx", "const a = <label for='y'>hi</p>;\n")
