import pytest

from orchestrator.adapters.runner_choice import choose_runner
from orchestrator.domain.findings import Finding


@pytest.mark.parametrize(
    ("command", "root_files", "suite", "runner"),
    [
        ("pytest", [], [], "pytest"),
        (" pytest ", [], ["odd.txt"], "pytest"),
        (None, ["pyproject.toml"], ["tests/cart.py"], "pytest"),
        ("", ["requirements-dev.txt"], [], "pytest"),
        (None, ["README.md"], ["tests/test_cart.py", "cart_test.py"], "pytest"),
        ("node", ["pyproject.toml"], ["odd.txt"], "node"),
        (None, [], ["tests/cart.test.mjs", "shop.test.cjs"], "node"),
        (None, ["package.json"], ["tests/cart.js"], "node"),
        (None, ["package.json", "pyproject.toml"], ["tests/cart.test.js"], "node"),
        (None, ["package.json", "pyproject.toml"], ["tests/test_cart.py"], "pytest"),
        (None, ["package.json", "pyproject.toml"], [], None),
        (None, [], ["tests/cart.spec.js"], None),
        (None, [], ["cart.test.js", "test_cart.py"], None),
        (None, ["pyproject.toml"], ["cart.test.ts"], None),
        ("jest", ["pyproject.toml"], ["tests/test_cart.py"], None),
        (None, ["pyproject.toml"], ["cart.test.js"], "node"),
        (None, ["package.json"], ["tests/cart.py"], None),
        (None, ["package.json"], ["tests/test_cart.py"], "pytest"),
        (None, [], [], None),
    ],
)
def test_setting_then_manifest_then_name_never_a_default(
    command: str | None, root_files: list[str], suite: list[str], runner: str | None
) -> None:
    choice = choose_runner(command, root_files, suite)
    if runner is not None:
        assert choice == runner
    else:
        assert isinstance(choice, Finding)
        assert choice.code == "test.no_runner"
        assert choice.severity.blocks
