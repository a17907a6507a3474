"""Changed expectations of Python tests, and what pytest says to them."""

import ast
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.mutations import python_mutations
from tests.code.mutated import WITHOUT_PLUGINS, First, changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("assert f() == 1", "assert f() == 3"),
        ("assert f() == -1.5, 'why'", "assert f() == 0.5, 'why'"),
        ("assert f() == 1e300", "assert f() == -1e+300"),
        ("assert 'ü' == f()", "assert 'ü' '10' == f()"),
        ("assert f() == b'x'", "assert f() == b'x' b'10'"),
        ("assert f() == True", "assert f() == False"),
        ("assert f() == [1,]", "assert f() == {2: [1,]}"),
        ("assert f() == 1; assert g() == 2", "assert f() == 1; assert g() == 4"),
        ("assert f() == g()", "assert f() == {2: g()}"),
        ("assert 5 == approx(f(), abs=9)", "assert 5 == {2: approx(f(), abs=9)}"),
        ("assert approx(f()) == 5", "assert approx(f()) == {2: 5}"),
        ("self.assertEqual(f(), g())", "self.assertEqual(f(), {2: g()})"),
        ("assert f()", "assert not (f())"),
        ("assert 'ü' in f()", "assert not ('ü' in f())"),
        ("self.assertEqual(f(), 'a')", "self.assertEqual(f(), 'a' '10')"),
        ("self.assertTrue(f())", "self.assertTrue(not (f()))"),
        # else a failing statement at the end
        ("f()  # why", "f()\n    assert 0 == 1  # why"),
        ("for a in f():\n        assert a", "for a in f():\n        assert a\n    assert 0 == 1"),
        ("with pytest.raises(E):\n        f()", "with pytest.raises(E):\n        f()\n    assert 0 == 1"),
    ],
)
def test_a_changed_expectation(before: str, after: str) -> None:
    text = f"def test_a(self=None):\n    {before}\n"
    assert changed(text, python_mutations(text, First())) == text.replace(before, after)


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    if f():\n        return\n    assert f() == 1\n",
        "def test_a():\n    yield\n    assert f() == 1\n",
        "@pytest.mark.xfail\ndef test_a():\n    assert f() == 1\n",
        "@retry\ndef test_a():\n    assert f() == 1\n",
        "def test_a(): f()\n",
        "def test_a():\n    f(); g()\n",
        "def test_a():\n    assert 1 == 1\n\n\ndef test_a():\n    assert 2 == 2\n",
        "class A(unittest.TestCase):\n    async def test_a(self):\n        assert f() == 1\n",
        "def test_a(:\n",
    ],
)
def test_what_is_left_as_it_is(text: str) -> None:
    assert python_mutations(text, First()) == ()


SUITE = """import unittest
from unittest import mock

import pytest


def test_numbers():
    assert 1 + 1 == 2


@pytest.mark.parametrize("word", ["a", "ü"])
def test_words(word):
    assert word + "!" == f"{word}!"


@mock.patch("os.getcwd", lambda: "/there")
def test_patched(tmp_path):
    (tmp_path / "a").write_text("naïve")
    assert (tmp_path / "a").read_text() == "naïve"


class TestList:
    def test_full(self):
        found = [1, 2]
        assert found == [1, 2]

    def test_raises(self):
        with pytest.raises(ValueError, match="x"):
            raise ValueError("x")


class Values(unittest.TestCase):
    def test_equal(self):
        self.assertEqual({"a": 1}, {"a": 1})

    def test_each(self):
        for number in (1, 2):
            with self.subTest(number):
                self.assertTrue(number)

    def test_raises(self):
        with self.assertRaises(ValueError):
            raise ValueError
"""


def results(folder: Path, text: str) -> dict[str, set[str]]:
    """What pytest says of each test, by class and name: `failure`, or "" for one that passed."""
    (folder / "test_a.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    command += ["--basetemp=temporary", "test_a.py"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True, env=WITHOUT_PLUGINS)
    found: dict[str, set[str]] = {}
    for case in ElementTree.parse(folder / "report.xml").getroot().iter("testcase"):
        scope = case.attrib["classname"].removeprefix("test_a").removeprefix(".")
        name = case.attrib["name"].partition("[")[0]
        found.setdefault(f"{scope}::{name}" if scope else name, set()).add(case[0].tag if len(case) else "")
    return found


@pytest.mark.parametrize("seed", range(2))
def test_pytest_reports_each_changed_test_as_failed(tmp_path: Path, seed: int) -> None:
    before = results(tmp_path, SUITE)
    assert set().union(*before.values()) == {""}
    mutations = python_mutations(SUITE, random.Random(seed))
    assert {one.case for one in mutations} == before.keys()
    assert results(tmp_path, changed(SUITE, mutations)) == {case: {"failure"} for case in before}


VALUES = st.sampled_from(
    ["1", "-.5", "'ü'", "b''", "True", "None", "[]", "(1,)", "{}", "{1, 2}", "f(1)", "...", "[*a]"]
)
LINES = st.sampled_from(
    ["assert {0}", "assert {0} == {0}", "self.assertEqual({0}, {0})", "f({0})", "if f: assert {0}", 'x = """{0}\n"""']
)
STATEMENTS = st.builds(lambda line, value: line.replace("{0}", value), LINES, VALUES)
BODIES = st.lists(STATEMENTS, min_size=1, max_size=3).flatmap(
    lambda lines: st.sampled_from(["\n    ".join(lines), "\r\n    ".join(lines) + "  # ü"])
)


@given(st.lists(BODIES, max_size=4), st.randoms(use_true_random=False))
def test_a_changed_suite_parses_and_has_the_same_tests(bodies: list[str], chance: random.Random) -> None:
    text = "\n\n".join(f"def test_{number}(self):\n    {body}\n" for number, body in enumerate(bodies))
    after = changed(text, python_mutations(text, chance))
    names = [node.name for node in ast.parse(after).body if isinstance(node, ast.FunctionDef)]
    assert names == [f"test_{number}" for number in range(len(bodies))]
    assert (after == text) == (not bodies)
