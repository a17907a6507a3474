from typing import Any

import pytest

from orchestrator.checks.suite import check_older, check_suite, read_analysis, read_suite
from orchestrator.core.finding import Finding, Severity, blocking
from orchestrator.core.suite import TestSuite as Suite


def read(**fields: Any) -> tuple[Suite | None, list[Finding]]:
    value = {
        "test_file": "tests/test_a.py",
        "test_content": "def test_a():\n    assert f()\n",
        "test_cases": ["test_a"],
    }
    return read_suite({**value, **fields}, "US-001")


def check(text: str, wanted: int | None = None, file: str = "tests/test_a.py") -> list[tuple[str, str]]:
    suite, findings = read(test_file=file, test_content=text, test_cases=[])
    assert suite is not None
    assert findings == []
    found = check_suite(suite, required_criteria=wanted)
    return [(str(finding.severity), finding.code.removeprefix("suite.")) for finding in found]


def test_where_peoples_own_command_runs_the_tests_any_language_is_read() -> None:
    cases = [{"name": "TestAdds", "criterion": "adds"}, "calc::tests::subtracts"]
    value = {"test_file": "calc/add_test.go", "test_content": "package calc\n", "test_cases": cases}
    assert read_suite(value, "US-001")[0] is None
    suite, findings = read_suite(value, "US-001", any_language=True)
    assert suite is not None
    assert findings == []
    assert suite.expected_names == ("TestAdds", "subtracts")
    assert check_suite(suite, required_criteria=2) == []
    assert [finding.code for finding in check_suite(suite, required_criteria=3)] == ["suite.criteria"]


def test_one_test_may_show_several_criteria() -> None:
    """A parametrized test has a row for each: it was told to be too few tests."""
    text = "def test_a():\n    assert f()\n"
    cases = [{"name": "test_a", "criterion": "adds"}, {"name": "test_a", "criterion": "subtracts"}]
    suite, _ = read(test_content=text, test_cases=cases, story_id="US-2")
    assert suite is not None
    assert [[one.code for one in check_suite(suite, required_criteria=n)] for n in (2, 3)] == [[], ["suite.criteria"]]


def test_a_suite_is_read_with_the_names_it_must_report() -> None:
    text = "def test_a():\n    assert f()\nclass TestB:\n    def test_c(self):\n        assert f()\n"
    cases = ["tests/test_a.py::TestB::test_c[1]", {"name": "test_a", "criterion": "adds"}, {"name": "elsewhere"}]
    suite, findings = read(test_content=text, test_cases=cases, story_id="US-2", more=1)
    assert suite is not None
    assert suite.expected_names == ("test_a", "test_c")
    assert [(case.name, case.criterion) for case in suite.test_cases][:2] == [("test_c", ""), ("test_a", "adds")]
    assert [finding.code for finding in findings] == ["suite.story_id", "suite.unknown_case"]
    assert blocking(findings) == ()


@pytest.mark.parametrize("name", ["TestB.test_c", "test_a.TestB.test_c", "TestB::test_c[one.two]", "test_c()"])
def test_a_case_names_its_function_as_runners_do(name: str) -> None:
    text = "class TestB:\n    def test_c(self):\n        assert f()\n"
    suite, findings = read(test_content=text, test_cases=[{"name": name, "criterion": "adds"}])
    assert suite is not None
    assert [(case.name, case.criterion) for case in suite.test_cases] == [("test_c", "adds")]
    assert findings == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"test_file": None}, "shape"),
        ({"test_content": " "}, "shape"),
        ({"test_content": ["x"]}, "shape"),
        ({"test_cases": None}, "shape"),
        ({"test_file": "../test_a.py"}, "file_name"),
        ({"test_file": "tests/a.py"}, "file_name"),
        ({"test_file": "src/a.js"}, "file_name"),
        ({"test_file": "tests/a.css"}, "file_name"),
        ({"test_file": "node_modules/a.test.js"}, "file_name"),
        ({"test_file": "tests/conftest.py"}, "file_name"),
        ({"test_file": ".hidden/test_a.py"}, "file_name"),
    ],
)
def test_a_broken_suite_is_refused(fields: dict[str, Any], code: str) -> None:
    suite, findings = read(**fields)
    assert suite is None
    assert [finding.code for finding in blocking(findings)] == [f"suite.{code}"]


@pytest.mark.parametrize(
    "file",
    [
        *("a.test.js", "tests/a.test.mjs", "tests/us-1.test.cjs", "a.spec.tsx", "src/__tests__/a.js", "test/unit/a.ts"),
        *("store_test.py", "shop/tests.py", "test-cart.js", "cart_test.js", "test.js", "src/cart-spec.js"),
        "examples/.test/smoke/smoke.test.ts",
    ],
)
def test_file_names_that_runners_find(file: str) -> None:
    assert read(test_file=file, test_cases=[])[0] is not None


def test_a_list_is_no_suite() -> None:
    assert read_suite([{"test_file": "tests/test_a.py"}], "US-001")[0] is None


NODE = "tests/a.test.js"
HEAD = "import { test, describe, it } from 'node:test';\nimport assert from 'node:assert/strict';\n"


def test_node_names_are_whole_and_cases_find_theirs() -> None:
    text = f"""{HEAD}
describe('cart', () => {{ it("can't be [empty]", () => assert.ok(f())); it('adds', () => assert.ok(f())); }});
test('adds', async (t) => {{ await t.test(`sub`, () => assert.ok(f())); }});
for (const n of [1, 2]) test(`number ${{n}}`, () => assert.ok(n));
"""
    cases = [{"name": "cart can't be [empty]", "criterion": "c"}, "sub", "cart > adds", "adds", "elsewhere"]
    suite, findings = read(test_file=NODE, test_content=text, test_cases=cases)
    assert suite is not None
    assert suite.expected_names == ("cart > can't be [empty]", "cart > adds", "adds", "adds > sub")
    assert [case.name for case in suite.test_cases] == [
        *("cart > can't be [empty]", "adds > sub", "cart > adds", "adds", "elsewhere")
    ]
    assert [finding.code for finding in findings] == ["suite.unknown_case"]
    assert check_suite(suite, required_criteria=4) == []


PROVEN = [
    ("def f(:\n", "syntax"),
    ("def helper():\n    assert f()\n", "no_tests"),
    ("import pytest\n\n\ndef checks_sum():\n    assert f()\n", "no_tests"),
    ("def test_a():\n    assert f() == 1\ndef test_a():\n    assert f() == 2\n", "duplicate_test"),
    ("class TestA:\n    def test_a(self): pass\n    def test_a(self): pass\n", "duplicate_test"),
]
PROVEN_OF_NODE = [("test('a', () => {\n", "syntax"), ("const x = 1;\nf(x);\n", "no_tests")]


@pytest.mark.parametrize(("text", "code"), PROVEN)
def test_what_is_proven_is_refused(text: str, code: str) -> None:
    assert check(text) == [("major", code)]


@pytest.mark.parametrize(("text", "code"), PROVEN_OF_NODE)
def test_what_is_proven_of_node_is_refused(text: str, code: str) -> None:
    assert check(text, file=NODE) == [("major", code)]


@pytest.mark.parametrize(
    ("text", "file", "wanted", "code"),
    [
        ("def test_a():\n    assert f()\n", "tests/test_a.py", 2, "criteria"),
        ("test('a', () => f());\ntest('a', () => f());\n", NODE, None, "duplicate_test"),
    ],
)
def test_a_suspicion_is_advice(text: str, file: str, wanted: int | None, code: str) -> None:
    assert check(text, wanted, file) == [("minor", code)]


# Styles of real projects' tests that a rule by syntax tree refused once.
FINE = [
    "from rest_framework.test import APITestCase\nclass Users(APITestCase):\n    def test_a(self): self.get('/')\n",
    "from .base import Shared\nclass OnPostgres(Shared):\n    backend = 'postgres'\n",
    "from .shared import *\n",
    "test_all = make_test('all')\n",
    "class DescribeCart:\n    def it_tests_adding(self): assert f()\n",
    "async def test_a(client):\n    async with client: await client.get('/')\n",
    "def test_smoke():\n    main(['--help'])\n",
    "def test_speed(benchmark):\n    benchmark(f)\n",
    "def test_output(snapshot):\n    snapshot.assert_match(f())\n",
    "def test_eq():\n    a = A()\n    assert a == a\n",
    "def test_less():\n    with pytest.raises(TypeError):\n        A() < 1\n",
    "def test_loop():\n    for x in f():\n        check(x)\n",
    "import time\ndef test_wait(server):\n    time.sleep(1)\n    assert requests.get(server.url).ok\n",
    "@pytest.mark.skipif(W)\ndef test_a():\n    try:\n        f()\n    except ValueError:\n        pytest.fail()\n",
    "import sys\nif sys.version_info > (3, 12):\n    def test_a(): f()\nelse:\n    def test_a(): g()\n",
    "class A:\n    @property\n    def test(self): pass\n    @test.setter\n    def test(self, x): pass\n",
]
FINE_OF_NODE = [
    "for (const n of [1]) test(`n ${n}`, () => f(n));\n",
    "register('cart', (name) => it(name, () => f()));\n",
    "describe('a', () => { it('x', () => f()); });\ndescribe('a', () => { it('x', () => f()); });\n",
    "if (process.env.X) { test('a', () => f()); } else { test.skip('a', () => {}); }\n",
    "require('./shared')(server);\n",
    "import './shared.js';\n",
    "require('./helper').payloadMethod('options', t);\n",
    "const tap = require('tap');\ntap.test('a', (t) => { t.end(); });\n",
    "new RuleTester().run('rule', rule, { valid: [] });\n",
    "test.each([[1, 2]])('adds %i', (a, b) => expect(f(a)).toBe(b));\n",
    "test('server', (t, done) => { const s = net.createServer().listen(0, () => { s.close(done); }); });\n",
]


@pytest.mark.parametrize("text", FINE)
def test_real_styles_are_fine(text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize("text", FINE_OF_NODE)
def test_real_styles_of_node_are_fine(text: str) -> None:
    assert check(text, file=NODE) == []


def test_an_analysis_gives_its_instructions() -> None:
    good = {"file": "./src/a.py:12", "function": "add", "issue": "adds twice", "fix": "add once", "more": 1}
    instructions, findings = read_analysis({"failure_analysis": [good, {"file": "b.py"}, "text"]})
    assert [(i.file, i.function) for i in instructions] == [("src/a.py", "add")]
    assert [f.code for f in findings if f.severity is Severity.MAJOR] == ["analysis.shape"] * 2
    assert read_analysis([good])[1] == []
    for nothing in ({}, {"failure_analysis": []}, None, "x"):
        assert read_analysis(nothing)[0] == ()
        assert blocking(read_analysis(nothing)[1])


OLDER = "from a import A, B\nLIMIT = 3\n\n\n@mark\ndef test_a():\n    assert A == LIMIT\n"


@pytest.mark.parametrize(
    ("older", "text", "fine"),
    [
        (OLDER, OLDER, True),
        (OLDER, OLDER.replace("A, B", "A, B, C") + "\ndef test_c():\n    assert C\n", True),
        (OLDER, OLDER.replace("@mark\n", "@skip\n"), False),
        (OLDER, OLDER.replace("== LIMIT", ">= LIMIT"), False),
        (OLDER, OLDER.replace("LIMIT = 3", "LIMIT = 4"), False),
        (OLDER, OLDER.replace("from a ", "from b "), False),
        ("def (", OLDER, False),
        (None, OLDER, False),
        ("", OLDER, True),
    ],
)
def test_what_a_file_holds_already_stays(older: str | None, text: str, fine: bool) -> None:
    suite = Suite(test_file="tests/test_a.py", test_content=text)
    assert (check_older(suite, older) == []) is fine


SUMS = """@mark.parametrize(("one", "two"), [(1, 2), (2, 4)])
def test_sums(one, two):
    assert one + one == two


def test_zero():
    assert 0 + 0 == 0
"""


@pytest.mark.parametrize(
    ("content", "cases", "own"),
    [
        (
            SUMS + "\n\ndef test_new():\n    assert f()\n",
            {"test_sums": "1, 2", "test_new": "3"},
            ["test_sums", "test_new"],
        ),
        (SUMS, {"test_sums": "1, 2, 3"}, ["test_sums"]),
        (SUMS, {"test_sums": ""}, ["test_sums"]),
        (SUMS + "\n\ndef test_new():\n    assert f()\n", {"test_sums": "", "test_new": "3"}, ["test_new"]),
        (SUMS + "\n\ndef test_new():\n    assert f()\n", {"test_new": "1, 2, 3"}, ["test_new"]),
    ],
    ids=[
        "rows and a new test",
        "rows alone",
        "rows without a number",
        "an older one is only named",
        "a new test alone",
    ],
)
def test_of_a_file_that_was_there_the_tests_that_show_a_criterion_count(
    content: str, cases: dict[str, str], own: list[str]
) -> None:
    """Rows in a table beside a new test showed nothing: no test case named their criteria, it was said."""
    value = {
        "test_file": "tests/test_a.py",
        "test_content": content,
        "test_cases": [{"name": name, "criterion": criterion} for name, criterion in cases.items()],
    }
    suite, findings = read_suite(value, "US-001", covered={"tests/test_a.py": SUMS.replace(", (2, 4)", "")})
    assert suite is not None
    assert findings == []
    assert list(suite.expected_names) == own
    assert set(suite.older_names) == {"test_sums", "test_zero"} - {*own}
