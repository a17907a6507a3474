"""Doctests that are changed so that they must fail: run for real by pytest."""

import subprocess
import sys
from pathlib import Path
from random import Random

from orchestrator.code.mutations import doctest_mutations
from orchestrator.core.suite import CaseResult
from orchestrator.test_runners.proof import mutate
from orchestrator.test_runners.report import parse_junit
from tests.code.mutated import WITHOUT_PLUGINS

WORDS = '''"""Words.

>>> words("a b")
2
"""

def words(text):
    r"""As in:

    >>> words("a")
    1

    That was it."""
    return len(text.split())

class Text:
    def size(self):
        \'\'\'
        >>> Text().size()
        0\'\'\'
        return 0

    def one(self):
        ">>> number = 1"

def none():
    """No example, and none is added: ä."""
'''
FILES = {
    "src/shop/words.py": WORDS,
    "src/shop/__init__.py": "",
    "docs/use.rst": "Use\n===\n\n>>> 1 + 1\n2\n",
    "pytest.ini": "[pytest]\naddopts = --doctest-modules --doctest-glob=*.rst\npythonpath = src\n",
}


def run(root: Path) -> dict[str, CaseResult]:
    argv = [*(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1")]
    subprocess.run([*argv, f"--junitxml={root}/r.xml", "."], cwd=root, capture_output=True, env=WITHOUT_PLUGINS)
    return {case.name: case.result for case in parse_junit((root / "r.xml").read_bytes())}


def test_each_doctest_that_pytest_reports_can_be_made_to_fail(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    names = ["shop.words", "shop.words.words", "shop.words.Text.size", "shop.words.Text.one", "use.rst"]
    first = run(tmp_path)
    assert first == dict.fromkeys(names, CaseResult.PASSED)
    cases = parse_junit((tmp_path / "r.xml").read_bytes())
    texts = {name: FILES[name] for name in ("src/shop/words.py", "docs/use.rst")}
    suite = mutate(texts, cases, secret="one of three is left alone")
    for name, text in suite.texts.items():
        (tmp_path / name).write_text(text)
    second = run(tmp_path)
    assert {name for name, result in second.items() if result is CaseResult.FAILED} == {one for _, one in suite.mutated}
    assert len(suite.mutated) == 3
    assert {name for name, result in second.items() if result is CaseResult.PASSED} == {one for _, one in suite.kept}


def test_what_is_not_reported_stays_as_it_is() -> None:
    assert doctest_mutations("src/shop/words.py", WORDS, ["test_words"], Random(1)) == ()
    assert doctest_mutations("README.md", "no example", ["README.md"], Random(1)) == ()
    assert doctest_mutations("a.go", "package a", ["TestA"], Random(1)) == ()
