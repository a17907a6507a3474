"""A Node project from a plan to a merge: no manifest from a registry, node's own test runner."""

import json

import pytest

from tests.support import NODE_RUNS_TYPESCRIPT, Played, Team, make_repo, needs_node, play, write_backlog

MANIFEST = json.dumps({"name": "shop", "version": "1.0.0", "type": "module", "private": True})
SUITE = """import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { total } from '../src/cart.js';

describe('cart', () => {
  it('adds what is in it', () => assert.equal(total([1, 2]), 3));
  it('is worth nothing when empty', () => assert.equal(total([]), 0));
});
"""
TYPED = """import { test } from 'node:test';
import assert from 'node:assert/strict';
import { total } from '../src/typed.ts';

test('adds what is in it', () => assert.equal(total([1, 2] as number[]), 3));
"""
EMPTY = "import { total } from '../src/cart.js';\n\nexport const sum = total([1, 2]);\n"
WRONG = "export const total = (prices) => prices.length;\n"
RIGHT = "export const total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n"


def cart(team: Team) -> None:
    """Files that do not parse, a suite without tests, code that is wrong once and mended."""
    team.plan("CART", ["package.json", "src/cart.js"])
    team.deliver("CART", 1, {"package.json": MANIFEST, "src/cart.js": "export const total = (prices => {\n"})
    team.deliver("CART", 1, {"package.json": MANIFEST, "src/cart.js": WRONG})
    team.suite("CART", EMPTY, "tests/cart.test.js")
    names = ("adds what is in it", "cart > is worth nothing when empty")
    cases = [{"name": name, "criterion": f"criterion {number}"} for number, name in enumerate(names)]
    answer = {"story_id": "CART", "test_file": "tests/cart.test.js", "test_content": SUITE, "test_cases": cases}
    team.say("jordan", "CART", "suite", answer)
    team.analyse("CART", ("src/cart.js", "add the prices up"))
    team.deliver("CART", 1, {"package.json": MANIFEST, "src/cart.js": RIGHT})


def quits(team: Team) -> None:
    """Code that ends the run before its tests are told."""
    team.plan("QUITS", ["src/quits.js"])
    for _ in range(2):
        team.deliver("QUITS", 1, {"src/quits.js": "process.exit(0);\nexport const value = () => 1;\n"})
        team.analyse("QUITS", ("src/quits.js", "do not exit"))
    text = SUITE.replace("total } from '../src/cart.js'", "value } from '../src/quits.js'").replace("total(", "value(")
    team.suite("QUITS", text, "tests/quits.test.js")


def typed(team: Team) -> None:
    """TypeScript that does not parse, that imports a package that nobody allows, and that is right."""
    team.plan("TYPED", ["src/typed.ts"])
    right = "export const total = (prices: number[]): number => prices.reduce((sum, price) => sum + price, 0);\n"
    team.deliver("TYPED", 1, {"src/typed.ts": "export const total = (prices: number[] => 0;\n"})
    team.deliver("TYPED", 1, {"src/typed.ts": f"import x from 'left-pad';\n{right}"})
    team.say("mike", "TYPED", "amendment", {"files": [], "dependencies": {}, "reason": "padding is built in"})
    team.deliver("TYPED", 1, {"src/typed.ts": right})
    cases = [{"name": "adds what is in it", "criterion": "one"}]
    answer = {"story_id": "TYPED", "test_file": "tests/typed.test.ts", "test_content": TYPED, "test_cases": cases}
    team.say("jordan", "TYPED", "suite", answer)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder, team = tmp_path_factory.mktemp("node"), Team()
    cart(team)
    quits(team)
    typed(team)
    team.good("SNAKE")
    backlog = write_backlog(folder / "backlog.csv", "CART", "SNAKE < CART", "QUITS < CART", "TYPED < CART")
    repo = make_repo(folder / "repo", {"README.md": "Shop\n"})
    return play(folder, team, backlog, "test.max_attempts=2", repo=repo)


@needs_node
def test_a_node_story_is_mended_and_merged_beside_python(played: Played) -> None:
    story = played.story("CART")
    assert (played.status("CART"), story.attempts) == ("done", 2), story.findings
    assert played.sent_back("CART") == ["delivery.syntax", "suite.no_tests"]
    assert {case.name: (case.criterion, case.result) for case in story.tests.cases} == {
        "cart > adds what is in it": ("criterion 0", "passed"),
        "cart > is worth nothing when empty": ("criterion 1", "passed"),
    }
    first = played.told_of("CART", "tests_finished")[0]
    assert [case["id"] for case in first.data["failing"]] == ["tests/cart.test.js::cart > adds what is in it"]
    assert played.status("SNAKE") == "done", played.story("SNAKE").findings
    assert set(played.tree("result")) - {"src/typed.ts", "tests/typed.test.ts"} == {
        *("README.md", "package.json", "src/cart.js", "tests/cart.test.js", "snake.py", "tests/test_snake.py")
    }
    assert played.status("QUITS") == "needs_attention"
    assert played.story("QUITS").tests.passed == 0


@needs_node
def test_a_typescript_story_is_merged_or_says_what_is_missing(played: Played) -> None:
    assert played.sent_back("TYPED") == ["delivery.syntax", "contract.import"]
    assert played.asked("TYPED", "jordan") == ["suite 1"]
    assert played.story("TYPED").attempts == 1
    if NODE_RUNS_TYPESCRIPT:
        assert played.status("TYPED") == "done", played.story("TYPED").findings
    else:
        assert played.status("TYPED") == "needs_attention"
        finding = played.finding("TYPED", "test.no_typescript")
        assert "install Node 22.18 or newer" in finding.message
