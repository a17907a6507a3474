"""Suites of Node projects and of projects with both kinds of tests, run for real."""

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, RunProblem
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings, TestSettings
from orchestrator.test_runners.suite_runner import ProjectRunner
from orchestrator.test_runners.tests_in_tree import kinds_of_tests
from tests.environments.projects import project_runner, write_tree
from tests.sandboxes import best, plain
from tests.support import needs_node, needs_typescript

NODE = shutil.which("node") or ""
PATH = f"{Path(NODE).parent}:/usr/bin:/bin" if NODE else "/usr/bin:/bin"
HEAD = "import { test, describe, it } from 'node:test';\nimport assert from 'node:assert/strict';\n"
PYTHON = "def test_python():\n    assert 1 + 1 == 2\n"


def runner_in(
    folder: Path, *, command: str | None = None, timeout_s: float = 30, path: str = PATH, box: Sandbox | None = None
) -> ProjectRunner:
    """In the strongest tier of this machine; with another PATH, in the plain one."""
    box = box or (best(PATH) if path == PATH else plain())
    run = LimitedCommandRunner(CommandSettings(timeout_s=60), path, sandbox=box)
    return project_runner(folder, run, TestSettings(timeout_s=timeout_s, command=command), path=path)


def tree(folder: Path, files: dict[str, str]) -> Path:
    return write_tree(folder / "a story's tree", {"package.json": '{"type": "module"}', **files})


@needs_node
async def test_every_result_of_a_node_suite_by_its_whole_name(tmp_path: Path) -> None:
    text = f"""{HEAD}import {{ total }} from '../shop.js';
test('adds [1] "two" <three> & four', () => assert.equal(total(), 3));
describe('cart', () => {{
  it('is empty', () => assert.ok(true));
  describe('when full', () => it('fails', () => assert.equal(1, 2)));
  it.skip('is skipped', () => {{}});
  it('is to do', {{ todo: true }}, () => assert.fail('not yet'));
}});
test('parent', async (t) => {{ await t.test('child', () => {{}}); assert.fail('late'); }});
"""
    root = tree(tmp_path, {"shop.js": "export const total = () => 3;\n", "tests/cart.test.js": text})
    before = set(root.rglob("*"))
    names = ("cart > is empty", "cart > is skipped", "gone")
    report = await runner_in(tmp_path).run(root, files=["tests/cart.test.js"], expected_names=names, key="story")
    assert {case.name: case.result for case in report.cases} == {
        'adds [1] "two" <three> & four': CaseResult.PASSED,
        "cart > is empty": CaseResult.PASSED,
        "cart > when full > fails": CaseResult.FAILED,
        "cart > is skipped": CaseResult.SKIPPED,
        "cart > is to do": CaseResult.SKIPPED,
        "parent > child": CaseResult.PASSED,
        "parent": CaseResult.FAILED,
    }
    assert {case.file for case in report.cases} == {"tests/cart.test.js"}
    assert (report.problem, report.missing_names) == (RunProblem.MISSING_NAMES, ("cart > is skipped", "gone"))
    failed = next(case for case in report.cases if case.name.endswith("fails"))
    assert failed.id == "tests/cart.test.js::cart > when full > fails"
    assert "(tests/cart.test.js:7:" in failed.message
    assert str(root) not in failed.message, "the same failure reads the same in every folder"
    assert "is empty" in report.output
    assert set(root.rglob("*")) == before, "a run leaves nothing in the tree"


@needs_node
@pytest.mark.parametrize(
    ("code", "problem", "told"),
    [
        ("process.exit(0);\n", None, "without reporting a test"),
        ("test('a', () => {\n", None, "SyntaxError"),
        ("import './gone.js';\ntest('a', () => {});\n", None, "gone.js"),
        ("test('a', () => { process.exit(0); });\n", None, "without reporting a test"),
        ("test('b', () => {});\n", RunProblem.MISSING_NAMES, ""),
        ("setInterval(() => {}, 1000);\ntest('a', () => {});\n", RunProblem.TIMEOUT, ""),
    ],
)
async def test_endings_that_show_nothing(tmp_path: Path, code: str, problem: RunProblem | None, told: str) -> None:
    root = tree(tmp_path, {"tests/cart.test.js": HEAD + code})
    runner = runner_in(tmp_path, timeout_s=1 if problem is RunProblem.TIMEOUT else 30)
    report = await runner.run(root, files=["tests/cart.test.js"], expected_names=["a"], key="story")
    assert not report.green, report.output
    if problem is not None:
        assert report.problem is problem
    assert told in "".join(case.message for case in report.cases)


@needs_node
async def test_the_whole_suite_runs_every_kind_of_test_there_is(tmp_path: Path) -> None:
    files = {"tests/test_a.py": PYTHON, "tests/a.test.js": f"{HEAD}test('node', () => assert.ok(1));\n"}
    root = tree(tmp_path, {**files, "test/helper.js": "export const help = 1;\n"})
    runner = runner_in(tmp_path)
    report = await runner.run(root, expected_names=["test_python", "node"], key="merge")
    assert report.green, report.output
    assert {case.name for case in report.cases} == {"test_python", "node"}
    missing = await runner.run(root, expected_names=["gone"], key="merge")
    assert (missing.problem, missing.missing_names) == (RunProblem.MISSING_NAMES, ("gone",))
    (root / "tests" / "test_a.py").write_text("def test_python():\n    assert 1 == 2\n")
    red = await runner.run(root, key="merge")
    assert (red.problem, red.failed, red.passed, red.exit_code) == (None, 1, 1, 1)
    only = await runner_in(tmp_path, command="node").run(root, key="merge")
    assert [case.name for case in only.cases] == ["node"]


def test_which_runners_a_tree_needs(tmp_path: Path) -> None:
    root = tree(tmp_path, {"web/app.test.js": "test('of jest', () => {});\n"})
    assert kinds_of_tests(root) == ("pytest",), "another runner's tests are not node's"
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "node_modules" / "x" / "x.test.js").write_text(HEAD)
    assert kinds_of_tests(root) == ("pytest",)
    (root / "brought").mkdir()
    (root / "brought" / "package.json").write_text('{"devDependencies": {"vitest": "^3"}}')
    (root / "brought" / "test-setup.js").write_text("export const seen = [];\n")
    assert kinds_of_tests(root) == ("pytest",), "vitest finds no test in a helper"
    (root / "web" / "real.test.mjs").write_text(HEAD)
    assert kinds_of_tests(root) == ("node",)
    (root / "pyproject.toml").write_text("")
    assert kinds_of_tests(root) == ("pytest", "node")


async def test_no_runner_for_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    root = tree(tmp_path, {"tests/a.test.js": HEAD, "tests/a_test.rb": ""})
    runner = runner_in(tmp_path, path=str(tmp_path / "bin"))
    absent = await runner.run(root, files=["tests/a.test.js"], key="story")
    assert (absent.problem, absent.exit_code) == (RunProblem.MISSING_RUNNER, None)
    assert "node" in absent.output
    odd = await runner.run(root, files=["tests/a_test.rb"], key="story")
    assert odd.problem is RunProblem.MISSING_RUNNER
    assert "a_test.rb" in odd.output
    assert (await runner_in(tmp_path, command="jest").run(root, key="story")).problem is RunProblem.MISSING_RUNNER
    old = tmp_path / "bin" / "node"
    old.write_text("#!/bin/sh\necho v18.2.0\n")
    old.chmod(0o755)
    runner = runner_in(tmp_path, path=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert "20 or newer" in (await runner.run(root, files=["tests/a.test.js"], key="story")).output


TYPED = f"""{HEAD}import {{ total, type Price }} from '../shop.ts';
test('adds', () => {{ const prices: Price[] = [{{ cents: 1 }}, {{ cents: 2 }}]; assert.equal(total(prices), 3); }});
"""
SHOP = """export interface Price { cents: number }
export const total = (prices: Price[]): number => prices.reduce((sum: number, price) => sum + price.cents, 0);
"""


def fake_node(folder: Path, strips: str) -> str:
    """A PATH with a node that says of itself what `strips` says, and prints how it was called."""
    folder.mkdir()
    node = folder / "node"
    node.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo v22.7.0 ;; -p) echo {strips} ;; *) echo called: "$@" ;; esac\n'
    )
    node.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


async def test_typescript_is_run_as_the_node_there_can_and_told_when_it_cannot(tmp_path: Path) -> None:
    root = tree(tmp_path, {"shop.ts": SHOP, "tests/shop.test.ts": TYPED, "tests/a.test.js": HEAD})
    old = runner_in(tmp_path, path=fake_node(tmp_path / "old", "never"))
    for files in (["tests/shop.test.ts"], None):
        report = await old.run(root, files=files, key="story")
        assert (report.problem, report.green) == (RunProblem.NO_TYPESCRIPT, False)
        assert "tests/shop.test.ts" in report.output
    assert (await old.run(root, files=["tests/a.test.js"], key="story")).problem is RunProblem.NO_REPORT
    asked = runner_in(tmp_path, path=fake_node(tmp_path / "asked", "asked"))
    whole = (await asked.run(root, key="story")).output
    assert "called: --experimental-strip-types --test" in whole
    assert "**/*[._-]test.?(c|m)[jt]s" in whole
    javascript = await asked.run(root, files=["tests/a.test.js"], key="story")
    assert "called: --test" in javascript.output
    always = runner_in(tmp_path, path=fake_node(tmp_path / "always", "always"))
    assert "called: --test" in (await always.run(root, key="story")).output


@needs_typescript
async def test_a_typescript_suite_runs(tmp_path: Path) -> None:
    root = tree(tmp_path, {"shop.ts": SHOP, "tests/shop.test.ts": TYPED})
    for files in (["tests/shop.test.ts"], None):
        report = await runner_in(tmp_path).run(root, files=files, expected_names=["adds"], key="story")
        assert report.green, report.output
        assert [(case.name, case.file) for case in report.cases] == [("adds", "tests/shop.test.ts")]


@needs_node
async def test_refused_packages_stop_suite_and_command(tmp_path: Path) -> None:
    manifest = json.dumps({"dependencies": ["left"]})
    root = tree(tmp_path, {"package.json": manifest, "tests/a.test.js": HEAD})
    runner = runner_in(tmp_path)
    report = await runner.run(root, files=["tests/a.test.js"], key="story")
    assert report.problem is RunProblem.INSTALL_FAILED
    assert "`dependencies` is no object" in report.output
    command = await runner.command(root, "echo ran", key="story")
    assert (command.exit_code, "ran\n" in command.output) == (1, False)
    python = await runner_in(tmp_path, command="pytest").command(root, "echo ran", key="story")
    assert python.output == "ran\n"
