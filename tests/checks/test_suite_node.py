"""Suites for `node --test`: names, and for each rule what is accepted and what is refused."""

from typing import Any

import pytest

from orchestrator.checks.suite import check_suite, read_suite
from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, blocking
from orchestrator.domain.testing import TestSuite as Suite

HEAD = "import { test, describe, it, before, after } from 'node:test';\nimport assert from 'node:assert/strict';\n"
HEAD += "import { f } from '../src/f.js';\n"
OK = "test('a', () => assert.ok(f()));\n"


def read(**fields: Any) -> tuple[Suite | None, list[Finding]]:
    value = {"test_file": "tests/a.test.js", "test_content": HEAD + OK, "test_cases": ["a"]}
    return read_suite({**value, **fields}, "US-001")


def check(text: str, wanted: int | None = None) -> list[str]:
    suite, findings = read(test_content=text, test_cases=[])
    assert suite is not None
    assert findings == []
    return [f.code.removeprefix("suite.") for f in blocking(check_suite(suite, required_criteria=wanted))]


def test_names_are_whole_and_cases_find_theirs() -> None:
    text = f"""{HEAD}
describe('cart', () => {{ it("can't be [empty]", () => assert.ok(f())); it('adds', () => assert.ok(f())); }});
test('adds', async (t) => {{ await t.test(`sub`, () => assert.ok(f())); }});
for (const n of [1, 2]) test(`number ${{n}}`, () => assert.ok(n));
"""
    cases = [{"name": "cart can't be [empty]", "criterion": "c"}, "sub", "cart > adds", "adds", "elsewhere"]
    suite, findings = read(test_content=text, test_cases=cases)
    assert suite is not None
    assert suite.expected_names == ("cart > can't be [empty]", "cart > adds", "adds", "adds > sub")
    assert [case.name for case in suite.test_cases] == [
        *("cart > can't be [empty]", "adds > sub", "cart > adds", "adds", "elsewhere")
    ]
    assert [finding.code for finding in findings] == ["suite.unknown_case"]
    assert check_suite(suite, required_criteria=4) == []


@pytest.mark.parametrize(
    "file",
    ["a.test.js", "tests/a.test.mjs", "tests/us-1.test.cjs", "a.spec.tsx", "src/__tests__/a.js", "test/unit/a.ts"],
)
def test_file_names_that_runners_find(file: str) -> None:
    assert read(test_file=file)[0] is not None


@pytest.mark.parametrize("file", ["a.js", "src/tests.js", "tests/a.css", "node_modules/a.test.js"])
def test_file_names_that_are_refused(file: str) -> None:
    suite, findings = read(test_file=file)
    assert suite is None
    assert [finding.code for finding in blocking(findings)] == ["suite.file_name"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{HEAD}test('a', () => {{\n", "syntax"),
        (f"{HEAD}const x = 1;\n", "no_tests"),
        (f"{HEAD}test(title(), () => assert.ok(f()));\n", "no_tests"),
        (HEAD + OK + OK, "duplicate_test"),
    ],
)
def test_suites_that_show_nothing(text: str, code: str) -> None:
    assert check(text) == [code]


def test_a_test_for_each_criterion() -> None:
    assert check(HEAD + OK, wanted=2) == ["criteria"]
    assert check(HEAD + OK, wanted=1) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("f();", "no_assertion"),
        ("idle();", "no_assertion"),
        ("try { assert.equal(f(), 1); } catch {}", "no_assertion"),
        ("const later = () => assert.ok(f());", "no_assertion"),
        ("assert.ok(true);", "always_true"),
        ("assert(!false, 'm');", "always_true"),
        ("assert.ok('text');", "always_true"),
        ("assert.equal(1, 1);", "always_true"),
        ("const x = f(); assert.deepEqual(x, x);", "always_true"),
        ("assert.ok(f() || true);", "always_true"),
        ("assert.ok(list.length >= 0);", "always_true"),
        ("t.assert.strictEqual(2, 2);", "always_true"),
        ("expect(true).toBe(true);", "always_true"),
    ],
)
def test_tests_that_cannot_fail(body: str, code: str) -> None:
    assert check(f"{HEAD}function idle() {{ f(); }}\ntest('a', async (t) => {{ {body} }});\n") == [code]


@pytest.mark.parametrize(
    "body",
    [
        "assert.equal(f(), f());",
        "await assert.rejects(f());",
        "checked(f());",
        "const inner = () => assert.ok(f()); inner();",
        "if (f() !== 1) throw new Error('not one');",
        "try { f(); assert.fail('no error'); } catch (error) { assert.match(error.message, /x/); }",
        "t.assert.ok(f());",
        "expect(f()).toBe(true);",
        "await t.test('sub', () => assert.ok(f()));",
    ],
)
def test_tests_that_can_fail(body: str) -> None:
    helpers = "function checked(x) { deeper(x); }\nconst deeper = (x) => { assert.equal(x, 1); };\n"
    assert check(f"{HEAD}{helpers}test('a', async (t) => {{ {body} }});\n") == []


CLOSED_DB = "let db;\nbefore(async () => { ({ db } = await import('../src/db.js')); });\nafter(() => db.close());\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import db from '../src/db.js';\nafter(() => db.close());\n", ["database_import"]),
        ("const { pool } = require('../src/db');\nafter(() => pool.end());\n", ["database_import"]),
        ("import db from '../src/db.js';\n", ["database_import", "database_open"]),
        ("test('b', async () => { const { db } = await import('../db.js'); assert.ok(db); });\n", ["database_open"]),
        ("test('b', () => { const d = new DatabaseSync(p); assert.ok(d); });\n", ["database_open"]),
        ("test('b', (t) => { const d = new DatabaseSync(p); t.after(() => d.close()); assert.ok(d); });\n", []),
        ("test('b', async () => { const c = await createConnection(p); assert.ok(c); await c.end(); });\n", []),
        ("import { openDatabase } from '../src/db.js';\n", []),
        ("import { db } from 'some-package';\n", []),
        (CLOSED_DB, []),
    ],
)
def test_databases(code: str, expected: list[str]) -> None:
    assert sorted(check(HEAD + code + OK)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("let s;\nbefore(() => { s = app.listen(0); });\n", ["server_open"]),
        ("before(() => { app.listen(0); });\n", ["server_open"]),
        ("const s = createServer(app);\nbefore((_, done) => { s.listen(0, done); });\n", ["server_open"]),
        ("const s = await startServer();\n", ["server_open"]),
        ("let s;\nbefore(() => { s = app.listen(0); });\nafter(() => s.close());\n", []),
        ("const s = createServer(app);\nbefore(() => s.listen(0));\nafter((_, done) => s.close(done));\n", []),
        ("const s = await startServer();\nafter(() => closeServer(s));\n", []),
        ("const s = createServer(app);\n", []),
        ("await app.listen({ port: 0 });\nafter(() => app.close());\n", []),
    ],
)
def test_servers(code: str, expected: list[str]) -> None:
    assert check(HEAD + code + OK) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("const r = await fetch(url); assert.equal(r.status, 200);", ["undrained"]),
        ("assert.equal((await fetch(url)).status, 200);", ["undrained"]),
        ("http.get(url, (res) => { assert.equal(res.statusCode, 200); });", ["undrained"]),
        ("await fetch('http://example.com/').then((r) => r.text()); assert.ok(f());", ["network"]),
        ("const r = await fetch(url); assert.equal(r.status, 200); await r.text();", []),
        ("const r = await fetch(url); assert.ok(await shown(r));", []),
        ("assert.ok(await (await fetch(url)).json());", []),
        ("const body = await fetch(`http://127.0.0.1:${port}/`).then((r) => r.json()); assert.ok(body);", []),
        ("http.get(url, (res) => { assert.equal(res.statusCode, 200); res.resume(); });", []),
        ("http.get(url, (res) => { res.on('data', () => {}); assert.ok(res.statusCode); });", []),
    ],
)
def test_requests(body: str, expected: list[str]) -> None:
    assert check(f"{HEAD}test('a', async () => {{ {body} }});\n") == expected


def test_hostile_nesting_costs_time_but_never_the_stack() -> None:
    assert check(HEAD + OK + "(" * 5000 + "1" + ")" * 5000 + ";\n") == []


FOR_JEST = "const { f } = require('../src/f');\n"
CASES = "describe('f', () => { it('adds', () => { expect(f(1)).toBe(2); }); });\n"
TABLE = "test.each([[1, 2], [2, 3]])('of %i is %i', (a, b) => { expect(f(a)).toBe(b); });\n"


@pytest.mark.parametrize(
    ("text", "brought", "fine"),
    [
        (FOR_JEST + CASES + TABLE, {"jest"}, True),
        (FOR_JEST + TABLE.replace("test.each", "describe('x', () => { it.concurrent.each") + "});\n", {"vitest"}, True),
        (FOR_JEST + CASES, {"express"}, False),
        (
            f"import {{ describe, expect, it }} from 'vitest';\nimport {{ f }} from '../src/f';\n{CASES}",
            {"vitest"},
            True,
        ),
        (
            f"import {{ describe, expect, it }} from 'vitest';\nimport {{ f }} from '../src/f';\n{CASES}",
            {"jest"},
            False,
        ),
    ],
)
def test_suites_for_the_projects_own_runner(text: str, brought: set[str], fine: bool) -> None:
    suite, _ = read(test_content=text)
    assert suite is not None
    found = check_suite(suite, required_criteria=None, project=Project(packages=frozenset(brought)))
    assert [finding.code for finding in blocking(found)] == ([] if fine else ["suite.no_tests"])
    assert ("f > adds" in suite.expected_names) == (CASES in text)
