"""Tricks to make a failing suite look green, played against the real pytest and the real node.

The runner refuses most. What is green all the same lies in files that the developer cannot write, or is named to the
reviewer and in the report, but for two that nothing recognises.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from orchestrator.checks.content import runner_reach
from orchestrator.core.paths import is_test_file
from orchestrator.core.suite import CaseResult, RunProblem, TestReport
from tests.environments.projects import write_tree
from tests.support import needs_node
from tests.test_runners.test_suite_runner import runner_in

SUITE = """from app import value


def test_one():
    assert value() == 1


def test_type():
    assert value()
"""
"""Of two tests one fails."""
NAMES = ("test_one", "test_type")
QUICK = frozenset(
    {"deselected", "reported as passed", "exit at the end", "own report at the end", "plugin by pytest.ini"}
    | {"code leaves a process that writes the report", "code patches the tests", "an object equal to everything"}
    | {"pytest in the tree", "a standard module in the tree", "speaks for the runner", "a mocked test"}
    | {"assert is no assert", "a node of its own"}
)
"""One trick of each kind; `make soak` plays all of them."""
APP = "def value():\n    return 2\n"
XML = (
    "<testsuites><testsuite tests='2'><testcase classname='tests.test_app' name='test_one'/>"
    "<testcase classname='tests.test_app' name='test_type'/></testsuite></testsuites>"
)
FIND_REPORT = "import os, sys\npath = next(a.split('=', 1)[1] for a in sys.argv if a.startswith('--junitxml='))\n"
WRITE_REPORT = f"open(path, 'w').write({XML!r})\n"
LEFT_BEHIND = f"""{FIND_REPORT}if os.fork() == 0:
    os.setsid()
    while not os.path.exists(path): pass
    while True: {WRITE_REPORT}
"""
REWRITES = """import pathlib
for path in pathlib.Path(__file__).parent.rglob('test_*.py'):
    path.write_text(path.read_text().replace('== 1', '== 2'))
"""
FALSE_CALLS = "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"
PATCHED_TESTS = """import sys
def value():
    for name, module in [*sys.modules.items()]:
        for test in [n for n in vars(module) if n.startswith('test_')] if 'test_' in name else []:
            vars(module)[test].__code__ = (lambda: None).__code__
    return 2
"""
BY_NAME = """import _pytest.python as python
run = python.Function.runtest
python.Function.runtest = lambda self: None if self.name in ('test_one', 'test_type') else run(self)
def value():
    return 2
"""
EQUAL = """class Anything:
    def __eq__(self, other):
        return True
def value():
    return Anything()
"""
ON_ITEMS = "import pytest\ndef pytest_collection_modifyitems(items):\n"
MADE_GOOD = """import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    out.get_result().outcome = 'passed'
"""
CLOSING = "def pytest_unconfigure(config):\n    "
OWN_MODULES = ("json.py", "argparse.py", "src/xml/__init__.py", "pluggy.py", "shlex.py")
EXIT = "import os\nos._exit(0)\n"


def ini(options: str) -> dict[str, str]:
    return {"pytest.ini": f"[pytest]\n{options}\n"}


TRICKS: dict[str, dict[str, str]] = {
    "deselected": {"conftest.py": f"{ON_ITEMS}    items[:] = [item for item in items if 'type' in item.name]\n"},
    "expected to fail": {"conftest.py": f"{ON_ITEMS}    [item.add_marker(pytest.mark.xfail) for item in items]\n"},
    "skipped": {"conftest.py": "import pytest\ndef pytest_runtest_setup(item):\n    pytest.skip('later')\n"},
    "replaced": {"conftest.py": "def pytest_itemcollected(item):\n    item.obj = lambda: None\n"},
    "reported as passed": {"conftest.py": MADE_GOOD},
    "called without being run": {"conftest.py": FALSE_CALLS},
    "exit at the start": {"conftest.py": EXIT},
    "exit at the end": {"conftest.py": "import os\ndef pytest_sessionfinish():\n    os._exit(0)\n"},
    "exit code": {"conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
    "own report at the end": {"conftest.py": f"{FIND_REPORT}{CLOSING}{WRITE_REPORT}    os._exit(0)\n"},
    "plugin by conftest": {"conftest.py": "pytest_plugins = ['fake']\n", "fake.py": FALSE_CALLS},
    "plugin by pytest.ini": {**ini("addopts = -p fake"), "fake.py": FALSE_CALLS},
    "deselected by words": ini("addopts = -k type"),
    "ignored": {"tox.ini": "[pytest]\naddopts = --ignore=tests/test_app.py\n"},
    "only collected": ini("addopts = --collect-only"),
    "no report": ini("addopts = -p no:junitxml"),
    "other names": ini("python_functions = check_*"),
    "code exits": {"app.py": "import os\ndef value():\n    os._exit(0)\n"},
    "code ends the session": {"app.py": "import pytest\ndef value():\n    pytest.exit('done', returncode=0)\n"},
    "code skips the module": {"app.py": "import pytest\npytest.skip('x', allow_module_level=True)\n"},
    "code writes the report": {"app.py": f"{FIND_REPORT}{WRITE_REPORT}os._exit(0)\n"},
    "code writes the report at the end": {
        "app.py": f"{FIND_REPORT}import atexit\n@atexit.register\ndef end():\n    {WRITE_REPORT}{APP}"
    },
    "code leaves a process that writes the report": {"app.py": LEFT_BEHIND + APP},
    "code patches the runner": {
        "app.py": f"import _pytest.python as python\npython.Function.runtest = lambda self: None\n{APP}"
    },
    "code patches the tests": {"app.py": PATCHED_TESTS},
    "code calls good what it knows by name": {"app.py": BY_NAME},
    "an object equal to everything": {"app.py": EQUAL},
    "code rewrites its tests": {"app.py": REWRITES + APP, "conftest.py": "import app\n"},
    "pytest in the tree": {"pytest.py": "raise SystemExit(0)\n", "_pytest/__init__.py": "raise SystemExit(0)\n"},
    "sitecustomize in the tree": {"sitecustomize.py": EXIT, "usercustomize.py": EXIT, "src/sitecustomize.py": EXIT},
    "a standard module in the tree": dict.fromkeys(OWN_MODULES, EXIT),
}  # fmt: skip
NODE = """import { test } from 'node:test';
import assert from 'node:assert/strict';
import { value } from '../app.mjs';
"""
NODE_SUITE = f"{NODE}test('one', () => assert.equal(value(), 1));\ntest('type', () => assert.ok(value()));\n"
NODE_APP = "export const value = () => 2;\n"
NODE_XML = XML.replace("test_", "")
NODE_REPORT = """import fs from 'node:fs';
import { spawn } from 'node:child_process';
const argv = fs.readFileSync(`/proc/${process.ppid}/cmdline`, 'utf8').split('\\0');
const to = argv.map((a) => a.split('=')[1]).find((a) => a?.endsWith('report.xml'));
"""
SPEAKS = """import { serialize } from 'node:v8';
import { writeSync } from 'node:fs';
function say(type, name) {
  const place = { file: process.argv[1], line: 1, column: 1, nesting: 0, testNumber: 1 };
  const body = serialize({ type, data: { name, details: { duration_ms: 1 }, ...place } });
  const head = Buffer.alloc(6);
  head.writeUInt16BE(0xff0f);
  head.writeUInt32BE(body.length, 2);
  writeSync(1, Buffer.concat([head, body]));
}
for (const name of ['one', 'type']) { say('test:start', name); say('test:pass', name); }
process.exit(0);
"""
MOCKS = """import { createRequire } from 'node:module';
const test = createRequire(import.meta.url)('node:test');
for (const name of Object.keys(test)) try { test[name] = () => {}; } catch {}
"""
NODE_BY_NAME = """import test from 'node:test';
import assert from 'node:assert/strict';
const equal = assert.equal;
test.beforeEach((t) => { assert.equal = ['one', 'type'].includes(t.name) ? () => {} : equal; });
"""
NODE_LEFT_BEHIND = f"""{NODE_REPORT}
const forever = `while :; do echo "{NODE_XML}" > ${{to}}; done`;
spawn('/bin/sh', ['-c', forever], {{ detached: true, stdio: 'ignore' }}).unref();
"""
NODE_REWRITES = """import fs from 'node:fs';
const me = process.argv[1];
fs.writeFileSync(me, fs.readFileSync(me, 'utf8').replace('1', '2'));
"""
NODE_KILLS = "process.kill(process.ppid, 'SIGKILL');\n"
FAKE_NODE = "#!/bin/sh\nexit 0\n"
FAKE_TEST = "module.exports = { test: () => {} };\n"
NODE_TRICKS: dict[str, dict[str, str]] = {
    "exit": {"app.mjs": "process.exit(0);\nexport const value = 1;\n"},
    "speaks for the runner": {"app.mjs": f"{SPEAKS}{NODE_APP}"},
    "assert is no assert": {
        "app.mjs": f"import assert from 'node:assert';\nassert.strict.equal = assert.equal = () => {{}};\n{NODE_APP}"
    },
    "a mocked test": {"app.mjs": f"{MOCKS}{NODE_APP}"},
    "node:test in node_modules": {
        "node_modules/node:test/index.js": FAKE_TEST, "node_modules/test/index.js": FAKE_TEST,
    },
    "a node of its own": {"node_modules/.bin/node": FAKE_NODE, "node": FAKE_NODE},
    "calls good what it knows by name": {"app.mjs": f"{NODE_BY_NAME}{NODE_APP}"},
    "code rewrites its tests": {"app.mjs": f"{NODE_REWRITES}{NODE_APP}"},
    "says nothing": {"app.mjs": f"process.stdout.write = () => true;\n{NODE_APP}"},
    "kills its parent": {"app.mjs": f"{NODE_KILLS}{NODE_APP}"},
    "writes the report": {"app.mjs": f"{NODE_REPORT}fs.writeFileSync(to, `{NODE_XML}`);\n{NODE_KILLS}{NODE_APP}"},
    "leaves a process that writes the report": {"app.mjs": f"{NODE_LEFT_BEHIND}{NODE_APP}"},
}  # fmt: skip
TESTERS, NAMED, NOTHING = "the tester's file", "named to the reviewer", "nothing"
GREEN = {
    **dict.fromkeys(
        (
            "replaced",
            "reported as passed",
            "called without being run",
            "own report at the end",
            "plugin by conftest",
            "plugin by pytest.ini",
        ),
        TESTERS,
    ),
    **dict.fromkeys(
        (
            "code writes the report",
            "code writes the report at the end",
            "code patches the runner",
            "code calls good what it knows by name",
            "assert is no assert",
            "calls good what it knows by name",
        ),
        NAMED,
    ),
    **dict.fromkeys(("an object equal to everything", "speaks for the runner"), NOTHING),
}
"""Tricks that make the suite green → what stands against a developer who tries them."""
ONE = "from app import value\n\n\n"
TWO = f"{ONE}def test_one():\n    assert value() == 2\n"
HONEST: dict[str, dict[str, str]] = {
    "no configuration": {
        "tests/test_classes.py": f"{ONE}class TestValue:\n    def test_one(self):\n        assert value() == 2\n",
        "tests/test_inherited.py": f"{ONE}class TestValue:\n    def test_one(self):\n        assert value() == 2\n\n\n"
        "class TestOther(TestValue):\n    pass\n",
        "tests/test_unittest.py": f"{ONE}import unittest\n\n\nclass Values(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(value(), 2)\n",
        "tests/test_parameters.py": f"{ONE}import pytest\n\n"
        "pytestmark = pytest.mark.parametrize('n', [2, '[::]'])\n\n\ndef test_one(n):\n    assert value() == 2\n",
        "tests/test_left_behind.py": f"{ONE}def test_one():\n    open('made', 'x').close()\n"
        "    assert value() == 2\n\n\ndef test_two():\n    assert open('made')\n",
        "tests/test_windows.py": TWO.replace("\n", "\r\n"),
    },
    "chosen by words and marks": {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-m fast -k one -x -q -rA --strict-markers'\n"
        "markers = ['fast']\nxfail_strict = true\n",
        "tests/test_app.py": f"{ONE}import pytest\n\n\n@pytest.mark.fast\ndef test_one():\n    assert value() == 2\n",
    },
    "names and a fixture of its own": {
        **ini("python_functions = check_*\naddopts = --import-mode=importlib"),
        "conftest.py": "import pytest\n@pytest.fixture(autouse=True)\ndef there(tmp_path, monkeypatch):\n"
        "    monkeypatch.chdir(tmp_path)\n",
        "tests/test_app.py": f"{ONE}def check_one():\n    assert value() == 2",
    },
}  # fmt: skip
"""Trees whose every test file is good: each is run as one suite."""
NODE_HONEST: dict[str, str] = {
    "package.json": "{}",
    "app.js": "exports.value = () => 2;\n",
    "tests/common.test.js": "const test = require('node:test');\nconst { value } = require('../app.js');\n"
    "test('two', () => { require('node:assert').equal(value(), 2); });\n",
    "tests/describe.test.mjs": NODE.replace("test }", "describe, it }")
    + "describe('value', () => { it('is two', () => assert.equal(value(), 2)); })",
    "tests/hooks.test.mjs": NODE.replace("test }", "test, after }") + "after(() => {});\n"
    "test('two (really)', async (t) => { await t.test('inner', () => assert.equal(value(), 2)); });\n",
}
PLAIN = {"app.py": APP, "tests/test_app.py": SUITE}
NODE_PLAIN = {"package.json": '{"type": "module"}', "app.mjs": NODE_APP}


async def played(folder: Path, files: dict[str, str], names: tuple[str, ...]) -> TestReport:
    """A run of the test files among `files`, each of which is left as it was."""
    root = folder / "tree"
    write_tree(root, files)
    suites = [name for name in files if name.startswith("tests/")]
    report = await runner_in(folder, timeout_s=20).run(root, files=suites, expected_names=names, key="story")
    kept = all((root / suite).read_bytes() == files[suite].encode() for suite in suites)
    assert report.problem is RunProblem.TAMPERED or kept
    return report


def played_when(tricks: Collection[str]) -> list[object]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in sorted(tricks)]


@pytest.mark.parametrize("trick", played_when(TRICKS.keys() - GREEN.keys()))
async def test_what_the_runner_refuses_of_pytest(trick: str, tmp_path: Path) -> None:
    report = await played(tmp_path, {**PLAIN, **TRICKS[trick]}, NAMES)
    assert not report.green, report.output


@needs_node
@pytest.mark.parametrize("trick", played_when(NODE_TRICKS.keys() - GREEN.keys()))
async def test_what_the_runner_refuses_of_node(trick: str, tmp_path: Path) -> None:
    files = {**NODE_PLAIN, "tests/app.test.mjs": NODE_SUITE, **NODE_TRICKS[trick]}
    report = await played(tmp_path, files, ("one", "type"))
    assert not report.green, report.output


@pytest.mark.parametrize("trick", played_when(TRICKS.keys() & GREEN.keys()))
async def test_what_stands_against_green_tricks_of_pytest(trick: str, tmp_path: Path) -> None:
    report = await played(tmp_path, {**PLAIN, **TRICKS[trick]}, NAMES)
    assert (report.green, against(TRICKS[trick])) == (True, GREEN[trick])


@needs_node
@pytest.mark.parametrize("trick", played_when(NODE_TRICKS.keys() & GREEN.keys()))
async def test_what_stands_against_green_tricks_of_node(trick: str, tmp_path: Path) -> None:
    files = {**NODE_PLAIN, "tests/app.test.mjs": NODE_SUITE, **NODE_TRICKS[trick]}
    report = await played(tmp_path, files, ("one", "type"))
    assert (report.green, against(NODE_TRICKS[trick])) == (True, GREEN[trick])


def against(files: Mapping[str, str]) -> str:
    """Returns what stands against a developer who delivers these files."""
    if any(map(is_test_file, files)):
        return TESTERS
    added = "".join(
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(text.splitlines())} @@\n"
        + "".join(f"+{line}\n" for line in text.splitlines())
        for path, text in files.items()
    )
    return NAMED if runner_reach(added) else NOTHING


@pytest.mark.parametrize("tree", HONEST)
async def test_what_is_honest_is_green(tree: str, tmp_path: Path) -> None:
    report = await played(tmp_path, {"app.py": APP, **HONEST[tree]}, ())
    assert report.green, report.output
    assert not_reported(report, HONEST[tree]) == []


@needs_node
async def test_what_is_honest_is_green_in_node(tmp_path: Path) -> None:
    report = await played(tmp_path, {"app.mjs": NODE_APP, **NODE_HONEST}, ())
    assert report.green, report.output
    assert not_reported(report, NODE_HONEST) == []


def not_reported(report: TestReport, files: dict[str, str]) -> list[str]:
    """Test files of which no case is reported."""
    stems = [name.removeprefix("tests/").partition(".")[0] for name in files if name.startswith("tests/")]
    return [stem for stem in stems if not any(stem in case.id for case in report.cases)]


async def test_a_suite_that_its_code_rewrites_says_so(tmp_path: Path) -> None:
    changed = await played(tmp_path, {**PLAIN, **TRICKS["code rewrites its tests"]}, NAMES)
    assert changed.problem is RunProblem.TAMPERED
    assert "tests/test_app.py" in changed.output


FAILS_ONCE = """
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest


def again(name):
    with Path("ran").open("a") as file:
        file.write(f"{name} ")
    return len(Path("ran").read_text().split()) > 4


class TestOne:
    class TestInner:
        @pytest.mark.parametrize("n", ["a::b", "c[d]", "e f"])
        def test_deep(self, n):
            assert again("deep")


def test_flat():
    assert again("flat")


def test_good():
    assert Path("ran").exists()
"""


async def test_single_tests_are_run_again_by_what_a_report_says_of_them(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "test_app.py").write_text(FAILS_ONCE)
    runner = runner_in(tmp_path)
    first = await runner.run(root, files=["tests/test_app.py"], key="story")
    assert (first.passed, first.failed) == (1, 4)
    failed = [case for case in first.cases if case.result is CaseResult.FAILED]
    again = await runner.run(root, files=["tests/test_app.py"], only=failed, key="story")
    assert again.green, again.output
    assert {case.id for case in again.cases} == {case.id for case in failed}
    assert (root / "ran").read_text().split() == [*(["deep"] * 3), "flat"] * 2


NODE_ONCE = """import { test, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
function again(name) {
  fs.appendFileSync('ran', `${name} `);
  return fs.readFileSync('ran', 'utf8').trim().split(' ').length > 2;
}
describe('cart (1)', () => { it('adds [x]', () => assert.ok(again('deep'))); });
test('flat', () => assert.ok(again('flat')));
test('good', () => assert.ok(fs.existsSync('ran')));
"""


@needs_node
async def test_single_tests_of_node_are_run_again_too(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "once.test.mjs").write_text(NODE_ONCE)
    runner = runner_in(tmp_path)
    first = await runner.run(root, files=["once.test.mjs"], key="story")
    assert (first.passed, first.failed) == (1, 2)
    failed = [case for case in first.cases if case.result is CaseResult.FAILED]
    again = await runner.run(root, files=["once.test.mjs"], only=failed, key="story")
    assert again.green, again.output
    assert {case.name for case in again.cases} == {"cart (1) > adds [x]", "flat"}
