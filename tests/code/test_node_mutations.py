"""Changed expectations of tests for `node --test`, and what node says to them."""

import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.javascript.tests import test_names
from orchestrator.code.javascript.tree import root
from orchestrator.code.mutations import node_mutations
from orchestrator.test_runners.node import REPORTER
from tests.code.mutated import First, changed
from tests.support import needs_node

HEAD = """import test, { describe, it, suite } from 'node:test';
import assert, { deepEqual as same } from 'node:assert/strict';
import loose from 'assert';
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # the last literal expectation
        ("{ assert.equal(f(), 1); }", "{ assert.equal(f(), 3); }"),
        ("{ assert.equal(f(), 1); assert.equal(f(), 2); }", "{ assert.equal(f(), 1); assert.equal(f(), 4); }"),
        ("{ assert.strictEqual(f(), -3, 'why'); }", "{ assert.strictEqual(f(), -1, 'why'); }"),
        ("{ assert.equal(f(), 0.5); }", "{ assert.equal(f(), 2.5); }"),
        ("{ assert.equal(f(), 0xff); }", "{ assert.equal(f(), [0xff, 2]); }"),
        ("{ assert.equal(f(), 1e400); }", "{ assert.equal(f(), [1e400, 2]); }"),
        ("{ assert.equal(f(), ''); }", "{ assert.equal(f(), 'a'); }"),
        (r"{ assert.equal(f(), 'ü\''); }", r"{ assert.equal(f(), 'ü\'a'); }"),
        (r"{ assert.equal(f(), '\0'); }", r"{ assert.equal(f(), '\0a'); }"),
        ("{ assert.equal(f(), `ü`); }", "{ assert.equal(f(), `üa`); }"),
        ("{ assert.equal(f(), true); }", "{ assert.equal(f(), false); }"),
        ("{ assert.deepEqual(f(), [1, ]); }", "{ assert.deepEqual(f(), [[1, ], 2]); }"),
        ("{ same(f(), { a: 1 }); }", "{ same(f(), [{ a: 1 }, 2]); }"),
        ("{ t.assert.equal(f(), false); }", "{ t.assert.equal(f(), true); }"),
        ("{ expect(f()).toBe(false); }", "{ expect(f()).toBe(true); }"),
        ("{ assert.equal(f(), 1); assert.ok(f()); }", "{ assert.equal(f(), 1); assert.ok(!(f())); }"),
        ("assert.equal(f(), true)", "assert.equal(f(), false)"),
        # else the last truth or computed expectation
        ("{ assert(f() > 1, 'why'); }", "{ assert(!(f() > 1), 'why'); }"),
        ("{ g(); loose.ok(f()); }", "{ g(); loose.ok(!(f())); }"),
        ("{ assert.equal(f(), g()); }", "{ assert.equal(f(), [g(), 2]); }"),
        ("{ assert.equal(f(), `${a}`); }", "{ assert.equal(f(), [`${a}`, 2]); }"),
        ("{ assert.equal(f(), 017); }", "{ assert.equal(f(), [017, 2]); }"),
        # else a failing statement at the end, also where a server is closed behind the assertions
        ("{ assert.ok(f()); g(); }", "{ assert.ok(f()); g(); throw new Error('expected 0 to be 1'); }"),
        ("{ assert.throws(f); }", "{ assert.throws(f); throw new Error('expected 0 to be 1'); }"),
        ("{ assert.throws(f) }", "{ assert.throws(f); throw new Error('expected 0 to be 1'); }"),
        ("{ assert.rejects(f); }", "{ assert.rejects(f); throw new Error('expected 0 to be 1'); }"),
        ("{ assert.equal(...f()); }", "{ assert.equal(...f()); throw new Error('expected 0 to be 1'); }"),
        ("{ expect(f()).not.toBe(1); }", "{ expect(f()).not.toBe(1); throw new Error('expected 0 to be 1'); }"),
        ("{ if (f) assert(f) }", "{ if (f) assert(f); throw new Error('expected 0 to be 1'); }"),
        ("{}", "{ throw new Error('expected 0 to be 1'); }"),
        ("{\n  f() // g\n}", "{\n  f() // g\n  throw new Error('expected 0 to be 1');\n}"),
        ("assert.throws(f)", "{ assert.throws(f); throw new Error('expected 0 to be 1'); }"),
        ("classed()", "{ classed(); throw new Error('expected 0 to be 1'); }"),
        ("f()", "{ f(); throw new Error('expected 0 to be 1'); }"),
    ],
)
def test_a_changed_expectation(before: str, after: str) -> None:
    text = f"{HEAD}test('Ü 1', (t) => {before});\n"
    assert changed(text, node_mutations("a.test.js", text, First())) == text.replace(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ await assert.rejects(f); }", "{ await assert.rejects(f); throw new Error('expected 0 to be 1'); }"),
        ("assert.rejects(f)", "{ await assert.rejects(f); throw new Error('expected 0 to be 1'); }"),
        ("{ assert(f()); await g; }", "{ assert(f()); await g; throw new Error('expected 0 to be 1'); }"),
        ("await f()", "{ await f(); throw new Error('expected 0 to be 1'); }"),
        ("{ assert.equal(f(), <any>'x' as string); }", "{ assert.equal(f(), <any>'xa' as string); }"),
    ],
)
def test_a_changed_expectation_of_an_async_test_in_typescript(before: str, after: str) -> None:
    text = f"{HEAD}test('1', async (t: T): Promise<void> => {before});\n"
    assert changed(text, node_mutations("a.test.ts", text, First())) == text.replace(before, after)


@pytest.mark.parametrize(
    "code",
    [
        "test(`a ${b}`, () => {});",
        "test('a', () => {}); test('a', () => {});",
        "test('a > b', () => {}); describe('a', () => { it('b', () => {}); });",
        "it.skip('a', () => {}); it.todo('b', () => {}); it.only('c', () => {});",
        "test('a', { skip: b }, () => {}); test('b', { expectFailure: true }, () => {}); test('c', options, () => {});",
        "describe('a', { todo: true }, () => { it('b', () => {}); });",
        "describe('a', options, () => { it('b', () => {}); });",
        "for (const a of b) test('a', () => {});",
        "if (a) test('a', () => {});",
        "test('a', (t, done) => { done(); });",
        "test('a', () => { if (b) return; assert.equal(b, 1); });",
        "test('a', (t) => { if (b) t.skip(); assert.equal(b, 1); });",
        "test('a', function* () { assert.equal(b, 1); });",
        "test('a', named); test('b', () => 1); test('c', () => function () {}());",
        "test('a', () => {",
    ],
)
def test_what_is_left_as_it_is(code: str) -> None:
    assert node_mutations("a.test.js", HEAD + code, First()) == ()


SUITE = f"""{HEAD}const wait = async () => 3, list = () => [1, 2];
test('numbers', () => {{ assert.equal(1 + 1, 2); }});
test('größer – «texts»', () => {{
  const text = 'naïve';
  assert.equal(text, "naïve");
}});
test('loose', () => {{ loose.equal('1', 1); loose.deepEqual([1], ['1']); }});
test('large', () => {{ loose.deepEqual({{ a: 1 }}, {{ a: '1' }}); }});
describe('shelf', () => {{
  it('has books', () => assert.deepEqual(list(), [1, 2]));
  it('is full', {{ timeout: 5000 }}, () => {{
    const found = [1].map((one) => {{ return one; }});
    assert.ok(found.length)
  }});
  suite('when empty', () => {{
    it('throws', () => {{ assert.throws(() => {{ throw new Error('x'); }}); }});
    it('throws at once', () => assert.throws(() => {{ throw new Error('x'); }}, /x/));
    it('rejects', async () => {{ await assert.rejects(async () => {{ throw new Error('x'); }}); }});
    it('rejects at once', async () => assert.rejects(async () => {{ throw new Error('x'); }}));
    it('matches', () => {{ assert.match('abc', /b/) }});
  }});
}});
test('computed', async () => {{ assert.equal(await wait(), 1 + 2); }});
test('same object', () => {{ same({{ a: 1, b: [] }}, {{ a: 1, b: [] }}); }});
test('nothing', () => {{ assert.equal(list()[7], undefined); }});
test('empty', () => {{}});
test('nested only', function () {{ for (const one of list()) {{ assert.equal(typeof one, 'number'); }} }});
test('parent', async (t) => {{ await t.test('child', () => {{ assert.equal(1, 1); }}); }});
"""


def results(folder: Path, text: str) -> dict[str, str]:
    """What node and our reporter say of each case: `failure`, or "" for one that passed."""
    (folder / "a.test.mjs").write_text(text, encoding="utf-8")
    command = [shutil.which("node") or "", "--test", f"--test-reporter={REPORTER}"]
    command += ["--test-reporter-destination=report.xml", "a.test.mjs"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True)
    cases = ElementTree.parse(folder / "report.xml").getroot().iter("testcase")
    return {case.attrib["name"]: case[0].tag if len(case) else "" for case in cases}


@needs_node
@pytest.mark.parametrize("seed", range(3))
def test_node_reports_each_changed_test_as_failed_and_no_other(tmp_path: Path, seed: int) -> None:
    before = results(tmp_path, SUITE)
    assert set(before.values()) == {""}
    mutations = node_mutations("a.test.mjs", SUITE, random.Random(seed))
    assert {one.case for one in mutations} == before.keys() - {"parent > child"}
    after = results(tmp_path, changed(SUITE, mutations))
    assert {name for name, result in after.items() if result} == {one.case for one in mutations}
    assert after.keys() == before.keys()


VALUES = st.sampled_from(
    [
        "1",
        "-0.5",
        "0b11",
        "9n",
        "'ü'",
        '"\\""',
        "`a`",
        "`${f}`",
        "true",
        "[]",
        "[, ]",
        "{}",
        "{ a, ...b }",
        "f(1)",
        "null",
    ]
)
CALLS = st.sampled_from(
    ["assert.equal(f(), {0})", "same({0}, {0})", "assert({0})", "assert.throws(() => [{0}])", "f({0})"]
)
STATEMENTS = st.builds(lambda call, value: call.replace("{0}", value), CALLS, VALUES)
BODIES = st.lists(STATEMENTS, max_size=3).flatmap(
    lambda lines: st.sampled_from(["; ".join(lines), "\n  " + "\n  ".join(lines) + " // ü\n"])
)
TESTS = st.builds("{} => {{{}}}".format, st.sampled_from(["()", "async (t)", "async t"]), BODIES)


@given(st.lists(TESTS | STATEMENTS.map("() => {}".format), max_size=4), st.randoms(use_true_random=False))
def test_a_changed_suite_parses_and_has_the_same_tests(functions: list[str], chance: random.Random) -> None:
    titles = "äbcd"
    text = HEAD + "\n".join(f"test('{title}', {body});" for title, body in zip(titles, functions, strict=False))
    mutations = node_mutations("a.test.js", text, chance)
    after = changed(text, mutations)
    assert not root(after).has_error
    assert test_names(after, "a.test.js") == test_names(text, "a.test.js") == tuple(one.case for one in mutations)
