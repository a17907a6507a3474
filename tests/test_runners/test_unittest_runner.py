"""Python tests that pytest cannot serve: which they are, and unittest's and Django's runners at work."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, ReportedCase
from orchestrator.test_runners.pytest_runner import tools_of, unittest_argv
from orchestrator.test_runners.python import Part
from orchestrator.test_runners.report import Selection, parse_junit
from tests.test_runners.test_pytest_runner import runner_in, tree

MANAGE = "import os, sys\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n"
CASES = "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(1, 1)\n"
TOX = """[testenv]
setenv =
    DJANGO_SETTINGS_MODULE = tests.settings
commands = python -b -W always -m coverage run -m django test -v2 {posargs:tests}
"""
"""As django-debug-toolbar has it."""


@pytest.mark.parametrize(
    ("packages", "files", "forced", "expected"),
    [
        ("Django", {"manage.py": MANAGE}, "", [("django", "manage.py", "", ())]),
        ("django", {"src/manage.py": MANAGE}, "", [("django", "src/manage.py", "", ())]),
        ("django", {"tox.ini": TOX, "tests/x.py": ""}, "", [("django", "", "tests.settings", ("tests",))]),
        ("django", {"Makefile": "test:\n\tpython manage.py test --settings=a.b\n"}, "", [("django", "", "a.b", ())]),
        ("django", {"example/manage.py": MANAGE, "tests/test_a.py": CASES}, "", [("pytest", "", "", ())]),
        ("django pytest_django", {"manage.py": MANAGE}, "", [("pytest", "", "", ())]),
        ("django", {"manage.py": MANAGE}, "pytest", [("pytest", "", "", ())]),
        ("", {"manage.py": MANAGE}, "django", [("django", "manage.py", "", ())]),
        ("", {"tests/test_a.py": CASES}, "unittest", [("unittest", "", "", ())]),
        ("", {"shop/tests.py": CASES}, "", [("pytest", "", "", ()), ("unittest", "", "", ())]),
        ("", {"shop/tests.py": CASES, "pytest.ini": "[pytest]\n"}, "", [("pytest", "", "", ())]),
        ("", {"shop/testing.py": CASES.partition("    def")[0] + "    x = 1\n"}, "", [("pytest", "", "", ())]),
    ],
)  # fmt: skip
def test_what_runs_the_tests_of_a_tree(
    packages: str, files: dict[str, str], forced: str, expected: list[tuple[object, ...]], tmp_path: Path
) -> None:
    root = tree(tmp_path, files)
    layer = tmp_path / "packages"
    for name in packages.split():
        (layer / f"{name}-5.0.dist-info").mkdir(parents=True)
    found = [tool for tool, _ in tools_of(root, Part(""), layer if packages else None, forced)]
    assert [(one.name, one.manage, one.settings, one.labels) for one in found] == expected
    assert all(one.why for one in found)


OLD = {
    "shop/__init__.py": "",
    "shop/words.py": "def words(text):\n    '''\n    >>> words('a b')\n    2\n    '''\n    return len(text.split())\n",
    # As more-itertools has it.
    "tests/test_docs.py": """
        import doctest
        from unittest import TestCase
        from shop import words

        def load_tests(loader, tests, ignore):
            tests.addTests(doctest.DocTestSuite(words))
            return tests

        class Plain(TestCase):
            def test_plain(self):
                self.assertEqual(words.words("a"), 1)
    """,
    "shop/tests.py": """
        from unittest import TestCase, skip
        from shop.words import words

        class Old(TestCase):
            def test_old(self):
                for text in ("a", "a b"):
                    with self.subTest(text=text):
                        self.assertEqual(words(text), 1)

            @skip("not now")
            def test_skipped(self):
                self.fail()

        class Broken(TestCase):
            @classmethod
            def setUpClass(cls):
                raise RuntimeError("no table")

            def test_of_it(self):
                pass
    """,
    "other/tests.py": f"import gone\n{CASES}",
    "tests/test_new.py": "from shop.words import words\n\ndef test_new():\n    assert words('a b c') == 3\n",
}


async def test_what_pytest_leaves_out_unittest_runs(tmp_path: Path) -> None:
    root, runner = tree(tmp_path, OLD), runner_in(tmp_path)
    before = {*root.rglob("*")}
    whole = await runner.run(root, Selection("story"))
    assert {case.id: (case.file, case.result) for case in whole.cases} == {
        "tests.test_new::test_new": ("tests/test_new.py", CaseResult.PASSED),
        "tests.test_docs.Plain::test_plain": ("tests/test_docs.py", CaseResult.PASSED),
        "shop.words::shop.words.words": ("shop/words.py", CaseResult.PASSED),
        "shop.tests.Old::test_old": ("shop/tests.py", CaseResult.FAILED),
        "shop.tests.Old::test_skipped": ("shop/tests.py", CaseResult.SKIPPED),
        "shop.tests.Broken::test_of_it": ("shop/tests.py", CaseResult.ERROR),
        "::other.tests": ("other/tests.py", CaseResult.ERROR),
    }, whole.output
    assert whole.ran_with == (
        "pytest: the tests are in Python",
        "unittest: pytest would not run what other/tests.py defines",
    )
    messages = {case.name: case.message for case in whole.cases}
    assert messages["test_old"].startswith("(text='a b')\nTraceback")
    assert "no table" in messages["test_of_it"]
    assert str(root) not in messages["test_old"]
    story = await runner.run(root, Selection("story", ["tests/test_new.py"], ["test_new"]))
    assert story.green
    assert story.ran_with == ("pytest: the tests are in Python",)
    chosen = [case for case in whole.cases if case.name in {"test_old", "test_new"}]
    again = await runner.run(root, Selection("story", only=chosen))
    assert {case.id for case in again.cases} == {case.id for case in chosen}
    assert await runner.collect(root, key="story") == 6
    assert {*root.rglob("*")} == before, "a run leaves nothing in the tree"


SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
"""
DJANGO = {
    "site/manage.py": f"{MANAGE}from django.core.management import execute_from_command_line\n"
    "if __name__ == '__main__':\n    execute_from_command_line(sys.argv)\n",
    "site/shop/__init__.py": "",
    "site/shop/settings.py": SETTINGS,
    "site/cart/__init__.py": "",
    "site/cart/tests.py": """
        from django.contrib.auth.models import User
        from django.test import TestCase

        class Users(TestCase):
            def test_one(self):
                User.objects.create(username="ann")
                self.assertEqual(User.objects.count(), 1)

            def test_none(self):
                self.assertEqual(User.objects.count(), 1)

            async def test_awaited(self):
                self.assertEqual(await User.objects.acount(), 0)
    """,
    "site/cart/test_new.py": "from django.test import SimpleTestCase\n\n\nclass New(SimpleTestCase):\n"
    "    def test_new(self):\n        self.assertEqual(1, 1)\n",
}


def test_a_django_project_is_tested_by_its_own_manage_py(tmp_path: Path) -> None:
    root, report = tree(tmp_path, DJANGO), tmp_path / "report.xml"

    def run(part: Part) -> list[ReportedCase]:
        [(tool, same)] = tools_of(root, part, None, "django")
        argv = unittest_argv(tool, Path(sys.executable), root, same, report)
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True)
        assert report.exists(), done.stderr
        cases = list(parse_junit(report.read_bytes()))
        report.unlink()
        return cases

    cases = run(Part(""))
    assert {case.name: case.result for case in cases} == {
        "test_one": "passed", "test_none": "failed", "test_awaited": "passed", "test_new": "passed",
    }  # fmt: skip
    assert {case.id.partition("::")[0] for case in cases} == {"site.cart.tests.Users", "site.cart.test_new.New"}
    assert {case.file for case in cases} == {"site/cart/tests.py", "site/cart/test_new.py"}
    (new,) = run(Part("", ("site/cart/test_new.py",)))
    assert (new.name, new.result) == ("test_new", "passed")
    one = next(case for case in cases if case.name == "test_one")
    assert [case.id for case in run(Part("", only=(one,)))] == [one.id]
