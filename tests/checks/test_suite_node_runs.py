# ruff: noqa: E501 (a suite is one line here, so that the lists can be read)
"""Suites for `node --test` as models write them: sound ones pass without a word, and what shows nothing is refused."""

import pytest

from orchestrator.checks.suite import check_suite
from orchestrator.checks.suite_project import Project
from orchestrator.domain.testing import TestSuite as Suite

CART = "export function price(n) { return n * 2; }\nexport async function load() { return 1; }\nexport class Cart {}\n"
PROJECT = Project(files=frozenset({"src/cart.js", "cli.js"}), sources={"src/cart.js": CART}, packages=frozenset())
HEAD = (
    "import { test, describe, it, before, after, mock } from 'node:test';\n"
    "import assert from 'node:assert/strict';\n"
    "import { price, load, rows, emitter } from '../src/cart.js';\n"
)
NODE = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\n"


def check(text: str) -> list[tuple[str, str]]:
    suite = Suite(test_file="tests/a.test.js", test_content=text)
    found = check_suite(suite, required_criteria=None, project=PROJECT)
    assert all(finding.fix for finding in found)
    return [(finding.code.removeprefix("suite."), str(finding.severity)) for finding in found]


def body(text: str) -> str:
    return f"{HEAD}test('a', async (t) => {{\n  {text}\n}});\n"


SOUND = [
    *map(
        body,
        [
            "assert.equal(price(2), 4);",
            "assert.equal(await load(), 1);",
            "await assert.rejects(load(-1), /negative/);",
            "return assert.rejects(() => load(-1));",
            "assert.throws(() => price(-1), RangeError);",
            "const done = assert.rejects(load(-1)); await done;",
            "await Promise.all([assert.rejects(load(-1)), assert.rejects(load(-2))]);",
            "await load().then((n) => { assert.equal(n, 1); });",
            "return load().then((n) => assert.equal(n, 1));",
            "await new Promise((resolve) => { setTimeout(() => { assert.ok(rows()); resolve(); }, 1); });",
            "t.plan(1); emitter.on('row', () => t.assert.ok(true)); emitter.emit('row');",
            "await t.test('sub', () => { assert.equal(price(2), 4); });",
            "try { price(-1); assert.fail('no error'); } catch (error) { assert.match(error.message, /negative/); }",
            "for (const n of [1, 2]) { assert.equal(price(n), 2 * n); }",
            "[1, 2].forEach((n) => { assert.equal(price(n), 2 * n); });",
            "const log = t.mock.method(console, 'log'); price(1); assert.equal(log.mock.callCount(), 1);",
            "const clock = mock.method(emitter, 'now', () => 5); assert.equal(price(1), 2);",
            "if (price(2) !== 4) { throw new Error('not four'); }",
            "assert.ok(rows().length >= 1);",
            "assert.ok(price(1) === 2 || price(1) === 3);",
            "assert.deepEqual(rows(), []);",
        ],
    ),
    HEAD + "test('a', (t, done) => { load().then((n) => { assert.equal(n, 1); done(); }); });\n",
    HEAD + "describe('cart', () => { it('doubles', () => { assert.equal(price(2), 4); }); });\n",
    HEAD + "import { expect } from 'expect';\ntest('a', async () => { expect(price(2)).toBe(4); await expect(load()).resolves.toBe(1); });\n",
    HEAD + "import { expect } from 'chai';\ntest('a', () => { expect(rows()).to.be.empty; });\n",
    HEAD + "import request from 'supertest';\ntest('a', async () => { await request(emitter).get('/').expect(200); });\n",
    HEAD + "function doubles(n) { assert.equal(price(n), 2 * n); }\ntest('a', () => { doubles(2); });\n",
    HEAD + "import { checkRow } from './helpers.js';\ntest('a', () => { checkRow(rows()[0]); });\n",
    HEAD + "after(() => { emitter.stop(); });\ntest('a', () => assert.equal(price(2), 4));\n",
    NODE + "import { spawnSync } from 'node:child_process';\ntest('a', () => { assert.equal(spawnSync('node', ['cli.js']).status, 0); });\n",
    NODE + "import { readFileSync } from 'node:fs';\ntest('a', () => { assert.match(readFileSync('index.html', 'utf8'), /<h1>/); });\n",
    "const test = require('node:test');\nconst assert = require('node:assert');\nconst { price } = require('../src/cart.js');\ntest('a', () => { assert.equal(price(2), 4); });\n",
]  # fmt: skip


@pytest.mark.parametrize("text", SOUND)
def test_sound_suites_pass_without_a_word(text: str) -> None:
    assert check(text) == []


REFUSED = [
    ("price(2);", "no_assertion"),
    ("console.log(price(2));", "no_assertion"),
    ("return price(2) === 4;", "no_assertion"),
    ("price(2); return; assert.equal(price(2), 4);", "no_assertion"),
    ("if (false) { assert.equal(price(2), 4); }", "no_assertion"),
    ("while (0) { assert.equal(price(2), 4); }", "no_assertion"),
    ("for (const n of []) { assert.equal(price(n), 4); }", "no_assertion"),
    ("function never() { assert.equal(price(2), 4); } price(2);", "no_assertion"),
    ("try { assert.equal(price(2), 4); } catch (error) { console.log(error); }", "no_assertion"),
    ("try { price(-1); } catch (error) { assert.match(error.message, /x/); }", "no_assertion"),
    ("expect(price(2));", "no_assertion"),
    ("assert.ok(true);", "always_true"),
    ("assert(1);", "always_true"),
    ("assert.ok('price is two');", "always_true"),
    ("assert.ok([]);", "always_true"),
    ("assert.ok(!!rows || true);", "always_true"),
    ("assert.ok(!false);", "always_true"),
    ("assert.equal(1, 1);", "always_true"),
    ("const n = price(2); assert.deepEqual(n, n);", "always_true"),
    ("assert.ok(rows.length >= 0);", "always_true"),
    ("assert.ok(0 <= rows.length);", "always_true"),
    ("assert.ok(rows.length > -1);", "always_true"),
    ("const n = price(2); assert.ok(n || !n);", "always_true"),
    ("const n = price(2); assert.ok(n === null || n !== null);", "always_true"),
    ("assert.ok(() => price(2) === 4);", "always_true"),
    ("assert.ok(1 !== 2);", "always_true"),
    ("assert.throws(() => { throw new Error('x'); });", "always_true"),
    ("assert.doesNotThrow(() => {});", "always_true"),
    ("expect(true).toBe(true);", "always_true"),
    ("expect(true).toBeTruthy();", "always_true"),
    ("assert.rejects(load(-1));", "not_awaited"),
    ("assert.ok(1 < price(2)); expect(load()).resolves.toBe(1);", "not_awaited"),
    ("load().then((n) => { assert.equal(n, 1); });", "not_awaited"),
    ("load().then((n) => { assert.equal(n, 1); }).catch(() => {});", "not_awaited"),
    ("setTimeout(() => { assert.equal(price(2), 4); }, 10);", "not_awaited"),
    ("rows().forEach(async (row) => { assert.equal(await load(row), 1); });", "not_awaited"),
    ("(async () => { assert.equal(await load(), 1); })();", "not_awaited"),
    ("async function steps() { assert.equal(await load(), 1); } steps();", "not_awaited"),
    ("assert.ok(load());", "not_awaited"),
    ("load(); assert.equal(price(2), 4);", "not_awaited"),
    ("t.skip('later'); assert.equal(price(2), 4);", "skipped"),
    ("t.todo(); assert.equal(price(2), 4);", "skipped"),
    ("assert.equal(price(2), 4); assert.fail('to do');", "always_fails"),
    ("assert.equal(price(2), 4); throw new Error('to do');", "always_fails"),
    ("await new Promise((resolve) => setTimeout(resolve, 2000)); assert.equal(price(2), 4);", "sleep"),
    ("mock.method(emitter, 'total', () => 3); assert.equal(emitter.total(), 3);", "mocked"),
    ("await (await fetch('https://example.com/x')).text(); assert.equal(price(2), 4);", "network"),
]
REFUSED_FILES = [
    (HEAD + "test.skip('a', () => { assert.equal(price(2), 4); });\n", "skipped"),
    (HEAD + "test.todo('a');\n", "skipped"),
    (HEAD + "test('a');\n", "skipped"),
    (HEAD + "it.only('a', () => { assert.equal(price(2), 4); });\n", "skipped"),
    (HEAD + "test('a', { skip: true }, () => { assert.equal(price(2), 4); });\n", "skipped"),
    (HEAD + "test('a', { skip: 'later' }, () => { assert.equal(price(2), 4); });\n", "skipped"),
    (HEAD + "describe.skip('cart', () => { it('a', () => { assert.equal(price(2), 4); }); });\n", "skipped"),
    (HEAD + "describe('cart', { todo: true }, () => { it('a', () => { assert.equal(price(2), 4); }); });\n", "skipped"),
    (NODE + "function price(n) { return n * 2; }\ntest('a', () => { assert.equal(price(2), 4); });\n", "no_subject"),
    (NODE + "import { expect } from 'chai';\ntest('a', () => { expect(JSON.parse('1')).to.equal(1); });\n", "no_subject"),
    (NODE + "import { rows } from '../src/cart.js';\nconst price = (n) => n * 2;\ntest('a', () => { assert.equal(price(2), 4); });\n", "own_copy"),
    (NODE + "import { rows } from '../src/cart.js';\nclass Cart { size() { return 0; } }\ntest('a', () => { assert.equal(new Cart().size(), 0); });\n", "own_copy"),
    ("import { test, expect } from 'vitest';\nimport { price } from '../src/cart.js';\ntest('a', () => { expect(price(2)).toBe(4); });\n", "no_tests"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), [*((body(text), code) for text, code in REFUSED), *REFUSED_FILES])
def test_what_shows_nothing_is_refused(text: str, code: str) -> None:
    assert (code, "major") in check(text)


def test_what_may_be_switched_off_is_only_told() -> None:
    text = f"{HEAD}test('a', {{ skip: process.platform === 'win32' }}, () => {{ assert.equal(price(2), 4); }});\n"
    assert check(text) == [("skipped", "minor")]
    assert check(body("await new Promise((r) => setTimeout(r, 50)); assert.equal(price(2), 4);")) == [
        ("sleep", "minor")
    ]
