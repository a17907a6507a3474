"""The proof that a green suite can fail where it ran (spec 1 C6).

What runs in a test runner can report what it likes: a hook that calls every test good, code that patches the runner or
its assertions, a report written beforehand. So a suite that came back green gets one more test, in its own file and
under a name nobody could foresee, that has to fail. When it is not reported as failed, the green shows nothing.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.adapters.safe_files import write_below
from orchestrator.adapters.tree_reading import read_text
from orchestrator.domain.base import Value
from orchestrator.domain.testing import CaseResult, ReportedCase, TestReport

_PYTHON = """

def {name}({parameters}):
    import unittest as _unittest

    import pytest as _pytest

    def _plain():
        assert _unittest is None

    def _compared():
        _unittest.TestCase().assertEqual(1, 2)

    def _unraised():
        with _pytest.raises(ValueError):
            pass

    for _check in (_plain, _compared, _unraised):
        try:
            _check()
        except BaseException as _error:
            if not isinstance(_error, (AssertionError, _pytest.fail.Exception)):
                return
        else:
            return
    raise AssertionError("{name}")
"""
_NODE = """
;import('node:test').then(({{ test }}) => test('{name}', async () => {{
  const assert = (await import('node:assert')).default;
  for (const own of [assert, assert.strict]) {{
    const checks = [
      () => own(false), () => own.ok(0), () => own.equal(1, 2), () => own.notEqual(1, 1), () => own.strictEqual(1, 2),
      () => own.notStrictEqual(1, 1), () => own.deepEqual([1], [2]), () => own.deepStrictEqual([1], [2]),
      () => own.match('a', /b/), () => own.throws(() => {{}}), () => own.rejects(async () => {{}}),
    ];
    for (const check of checks) {{
      let passed = true;
      try {{ await check(); }} catch {{ passed = false; }}
      if (passed) return;
    }}
  }}
  throw new Error('{name}');
}}));
"""


_SHARED_PARAMETERS = re.compile(r"^pytestmark\b.*?parametrize\(\s*[\"']([\w, ]+)[\"']", re.MULTILINE | re.DOTALL)
"""Arguments that every test of a module has to take."""


class Proof(Value):
    """A test that must fail, for one suite."""

    name: str
    """What it is reported under, without its file."""
    text: str
    """What is written behind the suite's own text."""

    def case(self, file: str) -> ReportedCase:
        """How the runner of `file` reports it."""
        place = file.removesuffix(".py").replace("/", ".") if file.endswith(".py") else file
        return ReportedCase(name=self.name, id=f"{place}::{self.name}", file=file, result=CaseResult.FAILED)

    def holds(self, report: TestReport, others: Sequence[str]) -> bool:
        """Whether this test, run by itself, was reported as not passed, and none of the `others`: they were not run."""
        results = {case.name: case.result for case in report.cases if case.result is not CaseResult.SKIPPED}
        own = results.pop(self.name, CaseResult.PASSED)
        return own is not CaseResult.PASSED and not results.keys() & set(others)


def proof_for(file: str, text: str, names: Sequence[str]) -> Proof:
    """A proof for the suite `text`; its name begins like one of `names`, so that what selects those selects it."""
    mark = secrets.token_hex(8)
    if not file.endswith(".py"):
        return Proof(name=f"proof {mark}", text=_NODE.format(name=f"proof {mark}"))
    name = f"{next((name for name in names if name.isidentifier()), 'test')}_{mark}"
    shared = _SHARED_PARAMETERS.search(text)
    return Proof(name=name, text=_PYTHON.format(name=name, parameters=shared[1] if shared else ""))


class Copies:
    """The texts of test files before a run. Its methods block, follow no link, and raise WorkspaceError."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._root = root
        self.texts = {file: text for file in files if (text := read_text(root, file)) is not None}

    def changed(self) -> tuple[str, ...]:
        """The files that are not as they were."""
        return tuple(file for file, text in self.texts.items() if read_text(self._root, file) != text)

    def extend(self, file: str, more: str) -> None:
        """Write `more` behind what a file held."""
        write_below(self._root, [(file, (self.texts[file] + more).encode())])

    def extend_all(self, more: Mapping[str, str]) -> None:
        """`extend` for each file."""
        for file, text in more.items():
            self.extend(file, text)

    def put_back(self) -> None:
        """Make the files what they were."""
        write_below(self._root, [(file, self.texts[file].encode()) for file in self.changed()])
