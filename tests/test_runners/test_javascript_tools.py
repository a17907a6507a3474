"""vitest, jest and mocha: which one a project uses, how it is called, and what its report comes to."""

import json
import os
import shutil
from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, RunProblem, Tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.settings.model import CommandSettings
from orchestrator.test_runners.suite_runner import ProjectRunner
from orchestrator.test_runners.tests_in_tree import command, tool_in, tool_of
from tests.environments.projects import project_runner, write_tree
from tests.sandboxes import CONFINED, sandbox
from tests.support import needs_node

PATH = f"{os.path.dirname(shutil.which('node') or '/usr/bin/node')}:/usr/bin:/bin"


def tree(folder: Path, files: dict[str, str]) -> Path:
    return write_tree(folder / "root", files)


@pytest.mark.parametrize(
    ("script", "name", "options", "words", "env"),
    [
        ("vitest", "vitest", [], [], {}),
        ("vitest run --coverage --config=ci.ts", "vitest", ["--config=ci.ts"], [], {}),
        ("npm run lint && jest --watch -c jest.ci.js tests/unit", "jest", ["-c", "jest.ci.js"], ["tests/unit"], {}),
        ("cross-env NODE_ENV=test TZ=UTC jest --ci -i", "jest", ["-i"], [], {"NODE_ENV": "test", "TZ": "UTC"}),
        ("node --flag node_modules/jest/bin/jest.js", "jest", [], [], {"NODE_OPTIONS": "--flag"}),
        ("xo && ava --serial && tsd", "ava", ["--serial"], [], {}),
        ("nyc mocha -r esm 'test/**/*.js' --exit; echo done", "mocha", ["-r", "esm", "--exit"], ["test/**/*.js"], {}),
    ],
)
def test_it_is_called_as_its_people_call_it(
    script: str, name: str, options: list[str], words: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    root = tree(tmp_path, {"package.json": json.dumps({"scripts": {"test": script}})})
    found = tool_in(root, "")
    assert found is not None
    assert (found.name, found.options, found.words, found.env) == (name, (*options,), (*words,), env)
    assert found.why == "the script `test` of package.json"
    assert "tests/a.js" not in command(found, name, tmp_path, (), ())
    assert words == [] or words[0] not in command(found, name, tmp_path, ("tests/a.js",), ())


def test_the_nearest_manifest_that_says_so_decides(tmp_path: Path) -> None:
    files = {
        "package.json": json.dumps({"scripts": {"test": "npm test --workspaces"}, "devDependencies": {"jest": "29"}}),
        "packages/a/package.json": json.dumps({"scripts": {"test:unit": "mocha"}}),
        "packages/b/package.json": json.dumps({"name": "b"}),
        "packages/c/package.json": json.dumps({"scripts": {"test": "node --test"}, "devDependencies": {"vitest": "1"}}),
        "packages/d/package.json": "{}",
        "packages/d/vitest.config.ts": "",
        "packages/e/package.json": "{",
    }
    root = tree(tmp_path, files)
    found = {one: tool_of(root, f"packages/{one}/test/x.test.js") for one in "abcde"}
    assert {one: tool and (tool.name, tool.folder) for one, tool in found.items()} == {
        "a": ("mocha", "packages/a"),
        "b": ("jest", ""),
        "c": ("jest", ""),
        "d": ("vitest", "packages/d"),
        "e": ("jest", ""),
    }


JEST = """#!/usr/bin/env node
const fs = require('fs'), path = require('path'), words = [...process.argv]
const option = (name) => words.find((one) => one.startsWith(`--${name}=`)).slice(name.length + 3)
const behind = (name) => (words.includes(name) ? words.slice(words.indexOf(name) + 1) : undefined)
const chosen = behind('--runTestsByPath') ?? ['a.test.js']
const pattern = new RegExp(behind('--testNamePattern')?.[0] ?? '.')
const form = /it\\('(.*?)', \\(\\) => \\{ expect\\((\\d+)\\)\\.toBe\\((.*?)\\)/g
const results = chosen.map((file) => {
  const found = [...fs.readFileSync(file, 'utf8').matchAll(form)]
  const assertionResults = found.map(([, title, is, wanted]) => {
    const good = is === wanted
    return {
      ancestorTitles: ['adds'], title, fullName: `adds ${title}`,
      failureMessages: good ? [] : [`\\u001b[31mError\\u001b[0m at ${path.resolve(file)}:3`],
      status: !pattern.test(`adds ${title}`) ? 'pending' : good ? 'passed' : 'failed',
    }
  })
  return { name: path.resolve(file), status: 'passed', message: '', assertionResults }
})
fs.writeFileSync(path.join(option('cacheDirectory'), 'cache'), '')
setImmediate(() => {
  if ('NO_COLOR' in process.env) process.exit(3)
  fs.writeFileSync(option('outputFile'), JSON.stringify({ success: true, testResults: results }))
  process.exit(results.some((one) => one.assertionResults.some((each) => each.status === 'failed')) ? 1 : 0)
})
"""
"""Reads the options that jest reads, and writes what jest 30 writes for tests of one form."""
SUITE = """const { add } = require('./add')
describe('adds', () => {
  it('one', () => { expect(1).toBe(1) })
  it('two (2)', () => { expect(2).toBe(2) })
  it('wrong', () => { expect(3).toBe(4) })
})
"""


def runner_in(folder: Path, tier: Tier = CONFINED[0]) -> ProjectRunner:
    machine = {**os.environ, "PATH": PATH}
    run = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier, PATH), network=FetchNetwork(machine))
    return project_runner(folder, run, None, machine, path=PATH)


@needs_node
async def test_a_projects_own_runner_tells_each_case(tmp_path: Path) -> None:
    files = {"package.json": '{"scripts": {"test": "jest"}}', "a.test.js": SUITE, "node_modules/.bin/jest": JEST}
    submodule = '[submodule "data"]\n\tpath = tests/data\n\turl = https://example.org/data.git\n'
    root = tree(tmp_path, {**files, ".gitmodules": submodule})
    (root / "node_modules/.bin/jest").chmod(0o755)
    runner = runner_in(tmp_path)
    for chosen in (None, ["a.test.js"]):
        report = await runner.run(root, files=chosen, key="S")
        assert [(case.id, case.result, case.message) for case in report.cases] == [
            ("a.test.js::adds > one", CaseResult.PASSED, ""),
            ("a.test.js::adds > two (2)", CaseResult.PASSED, ""),
            ("a.test.js::adds > wrong", CaseResult.FAILED, "Error at a.test.js:3"),
        ]
        assert report.ran_with == ("jest: the script `test` of package.json",)
        assert report.output.startswith("[submodules are not fetched: tests/data; environment.setup ")
    again = await runner.run(root, files=["a.test.js"], only=report.cases[1:2], key="S")
    assert [case.name for case in again.cases] == ["adds > two (2)"]
    assert again.green
    missing = await runner.run(root, files=["a.test.js"], expected_names=["adds > three"], key="S")
    assert (missing.problem, missing.missing_names) == (RunProblem.MISSING_NAMES, ("adds > three",))
    shutil.rmtree(root / "node_modules")
    absent = await runner.run(root, files=["a.test.js"], key="S")
    assert absent.problem is RunProblem.MISSING_RUNNER
    assert "`jest` is not among the packages" in absent.output


REAL = {
    "vitest": (
        {"type": "module", "devDependencies": {"vitest": "^4"}},
        "import { describe, expect, it } from 'vitest'\nimport { add } from '../add'\n",
        "tests/add.spec.ts",
        {"add.ts": "export const add = (a: number, b: number): number => a + b\n"},
    ),
    "jest": (
        {"scripts": {"test": "jest --coverage"}, "devDependencies": {"jest": "^30"}},
        "const { add } = require('../add')\n",
        "__tests__/add.js",
        {"add.js": "exports.add = (a, b) => a + b\n"},
    ),
    "mocha": (
        {"scripts": {"test": "mocha --recursive"}, "devDependencies": {"mocha": "^11", "chai": "^4"}},
        "const { expect } = require('chai')\nconst { add } = require('../add')\n",
        "test/add.js",
        {"add.js": "exports.add = (a, b) => a + b\n"},
    ),
}


@pytest.mark.soak
@needs_node
@pytest.mark.usefixtures("open_network")
@pytest.mark.parametrize("tier", CONFINED)
@pytest.mark.parametrize("name", [*REAL])
async def test_the_real_ones(name: str, tier: Tier, tmp_path: Path) -> None:
    manifest, head, file, sources = REAL[name]
    be = "to.equal" if name == "mocha" else "toBe"
    text = head + f"describe('adds', () => {{\n  it('two', () => {{ expect(add(1, 2)).{be}(3) }})\n"
    text += f"  describe('more', () => {{ it('of [any] kind?', () => {{ expect(add(2, 2)).{be}(4) }}) }})\n}})\n"
    root = tree(tmp_path, {"package.json": json.dumps(manifest), file: text, **sources})

    runner = runner_in(tmp_path, tier)
    wanted = ["adds > two", "adds > more > of [any] kind?"]
    report = await runner.run(root, files=[file], expected_names=wanted, key="S")
    assert report.green, report.output
    assert sorted(case.id for case in report.cases) == sorted(f"{file}::{one}" for one in wanted)
    only = await runner.run(root, files=[file], only=report.cases[1:], key="S")
    assert (len(only.cases), only.green) == (1, True)
    assert (await runner.run(root, expected_names=wanted, key="S")).green
    (root / file).write_text(text.replace("(3)", "(5)"))
    red = await runner.run(root, files=[file], key="S")
    assert [case.name for case in red.cases if case.result is CaseResult.FAILED] == ["adds > two"]
    (root / file).write_text("nonsense(\n")
    broken = await runner.run(root, files=[file], key="S")
    assert not broken.green
    assert sorted(path.name for path in root.iterdir()) == sorted({"package.json", file.split("/")[0], *sources})
