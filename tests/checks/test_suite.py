from typing import Any

import pytest

from orchestrator.checks.suite import check_suite, read_analysis, read_suite
from orchestrator.checks.suite_older import check_older
from orchestrator.domain.findings import Finding, Severity, blocking
from orchestrator.domain.testing import TestSuite as Suite


def read(**fields: Any) -> tuple[Suite | None, list[Finding]]:
    value = {
        "test_file": "tests/test_a.py",
        "test_content": "def test_a():\n    assert f()\n",
        "test_cases": ["test_a"],
    }
    return read_suite({**value, **fields}, "US-001")


def check(text: str, wanted: int | None = None) -> list[tuple[str, str]]:
    suite, findings = read(test_content=text, test_cases=[])
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
        ({"test_file": "src/test_a.js"}, "file_name"),
        ({"test_file": "tests/conftest.py"}, "file_name"),
        ({"test_file": ".hidden/test_a.py"}, "file_name"),
    ],
)
def test_a_broken_suite_is_refused(fields: dict[str, Any], code: str) -> None:
    suite, findings = read(**fields)
    assert suite is None
    assert [finding.code for finding in blocking(findings)] == [f"suite.{code}"]


def test_a_list_is_no_suite() -> None:
    assert read_suite([{"test_file": "tests/test_a.py"}], "US-001")[0] is None
    assert read(test_file="store_test.py")[0] is not None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("print(f())", "no_assertion"),
        ("return\n    assert f()", "no_assertion"),
        ("if False:\n        assert f()", "no_assertion"),
        ("try:\n        assert f()\n    except Exception:\n        pass", "no_assertion"),
        ("def inner():\n        assert f()", "no_assertion"),
        ("expected_value(f())", "no_assertion"),
        ("helper_without()", "no_assertion"),
        ("assert True", "always_true"),
        ("assert 1", "always_true"),
        ("assert (f() == 1, 'message')", "always_true"),
        ("x = f()\n    assert x == x", "always_true"),
        ("assert f() or True", "always_true"),
        ("assert not False", "always_true"),
        ("assert len(f()) >= 0", "always_true"),
        ("assert f() == 1\n    assert 'text'", "always_true"),
        ("self.assertTrue(True)", "always_true"),
        ("self.assertEqual(1, 1)", "always_true"),
    ],
)
def test_tests_that_cannot_fail(body: str, code: str) -> None:
    helpers = "def helper_without():\n    f()\n\n"
    assert check(f"{helpers}def test_a(self=None):\n    {body}\n") == [("major", code)]


@pytest.mark.parametrize(
    "body",
    [
        "assert f() == f()",
        "self.assertEqual(f(), 2)",
        "with pytest.raises(ValueError):\n        f()",
        "mock.assert_called_once_with(1)",
        "check(f())",
        "def inner():\n        assert f()\n    inner()",
        "try:\n        f()\n    except ValueError:\n        return\n    pytest.fail('no error')",
        "try:\n        assert f()\n    except Exception:\n        raise",
        "for x in f():\n        assert x",
    ],
)
def test_tests_that_can_fail(body: str) -> None:
    helpers = "import pytest\ndef check(x):\n    deeper(x)\ndef deeper(x):\n    assert x == 1\n\n"
    assert check(f"{helpers}def test_a(self=None, mock=None):\n    {body}\n") == []


def test_helpers_that_call_each_other_cost_no_more_than_their_number() -> None:
    chain = "".join(f"def h{n}():\n    h{n + 1}(); h{n + 1}()\n" for n in range(2000))
    assert check(f"{chain}def h2000():\n    assert f()\ndef test_a():\n    h0()\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import requests\ndef test_a():\n    assert requests.get('https://example.com/x').ok", ["network"]),
        ("from urllib.request import urlopen as go\nU = 'http://a.org'\ndef test_a():\n    assert go(U)", ["network"]),
        ("import httpx as h\nfrom conf import URL\ndef test_a():\n    assert h.post(URL).is_error", ["network"]),
        ("import socket\ndef test_a():\n    s = socket.socket()\n    assert s.connect(('a.org', 80))", ["network"]),
        ("import requests\ndef test_a(s):\n    assert s.get('https://a.org').ok", ["network"]),
        ("import requests\nB = 'http://127.0.0.1:8000'\ndef test_a():\n    assert requests.get(f'{B}/x').ok", []),
        ("import requests\ndef test_a(server):\n    assert requests.get(server.url('localhost')).ok", []),
        ("def test_a(links):\n    assert links.get('https://example.com') == 1", []),
        ("import time\ndef test_a():\n    time.sleep(2)\n    assert f()", ["sleep"]),
        ("from time import sleep as rest\ndef test_a(n):\n    rest(n)\n    assert f()", ["sleep"]),
    ],
)
def test_what_tests_must_not_reach_for(text: str, expected: list[str]) -> None:
    assert check(text) == [("major", code) for code in expected]


def test_a_short_sleep_is_only_told() -> None:
    assert check("import time\ndef test_a():\n    time.sleep(0.1)\n    assert f()") == [("minor", "sleep")]


def test_the_rest_of_the_rules() -> None:
    assert check("def f(:\n") == [("major", "syntax")]
    assert check("def helper():\n    assert f()\n") == [("major", "no_tests")]
    twice = "def test_a():\n    assert f() == 1\ndef test_a():\n    assert f() == 2\n"
    assert check(twice) == [("major", "duplicate_test")]
    assert check("def test_a():\n    assert f()\n", wanted=2) == [("major", "criteria")]
    assert check("def test_a():\n    assert " + "(" * 150 + "f()" + ")" * 150) == []


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
