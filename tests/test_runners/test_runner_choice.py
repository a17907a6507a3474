import pytest

from orchestrator.core.finding import Finding
from orchestrator.test_runners.choice import choose_runner, recorded_runner


@pytest.mark.parametrize(
    ("command", "root_files", "suite", "stack", "runner"),
    [
        (" pytest ", [], ["odd.txt"], [], "pytest"),
        ("django", ["package.json"], ["shop/tests.py"], [], "django"),
        (None, ["pyproject.toml"], ["tests/cart.py"], [], "pytest"),
        ("", ["requirements-dev.txt"], [], [], "pytest"),
        (None, ["README.md"], ["tests/test_cart.py", "cart_test.py"], [], "pytest"),
        ("node", ["pyproject.toml"], ["odd.txt"], [], "node"),
        (None, [], ["tests/cart.test.mjs", "shop.test.cjs"], [], "node"),
        (None, ["package.json"], ["tests/cart.js"], [], "node"),
        (None, ["package.json", "pyproject.toml"], ["tests/cart.test.js"], [], "node"),
        (None, ["package.json", "pyproject.toml"], [], [], None),
        (None, [], ["cart.test.js", "test_cart.py"], [], None),
        (None, ["pyproject.toml"], ["cart.test.ts", "shop.test.mts"], [], "node"),
        ("jest", ["pyproject.toml"], ["tests/test_cart.py"], [], None),
        (None, ["pyproject.toml"], ["cart.test.js"], [], "node"),
        (None, ["package.json"], ["tests/cart.py"], [], None),
        (None, [], [], [], None),
        # A recorded stack comes behind the setting and before the manifests.
        (None, [], ["checks/cart.py"], ["Python"], "pytest"),
        (None, ["pyproject.toml"], [], ["Node"], "node"),
        ("pytest", [], [], ["Node"], "pytest"),
        (None, ["package.json"], ["tests/test_cart.py"], ["Node"], "pytest"),
        (None, ["package.json"], [], ["Python and Node"], "node"),
        (None, [], ["checks/cart.py"], ["Node"], None),
    ],
)
def test_setting_then_stack_then_manifest_then_name_never_a_default(
    command: str | None, root_files: list[str], suite: list[str], stack: list[str], runner: str | None
) -> None:
    choice = choose_runner(command, root_files, suite, stack)
    if runner is not None:
        assert choice == runner
    else:
        assert isinstance(choice, Finding)
        assert (choice.code, choice.severity.blocks) == ("test.no_runner", True)


@pytest.mark.parametrize(
    ("stack", "runner"),
    [
        (["Python 3.11, pytest"], "pytest"),
        (["language: Python\nframework: FastAPI"], "pytest"),
        (["Express.js on Node.js"], "node"),
        (["Python backend\nJavaScript frontend"], None),
        (["Node, tests with Jest"], "node"),
        (["Node, tests with Jasmine"], None),
        (["Python without Node"], None),
        (["instead of the old Python code"], None),
        (["Python 3, no external packages, pytest"], "pytest"),
        (["nodes of a graph, pythonic"], None),
        (["Python and Node", "Node"], "node"),
        (["Python", "Node"], "pytest"),
        ([], None),
    ],
)
def test_a_recorded_stack_decides_only_when_it_is_clear(stack: list[str], runner: str | None) -> None:
    assert recorded_runner(stack) == runner
