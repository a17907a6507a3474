import pytest

from orchestrator.core.finding import Finding
from orchestrator.test_runners.choice import choose_runner


@pytest.mark.parametrize(
    ("command", "suite", "runner"),
    [
        (" pytest ", ["odd.txt"], "pytest"),
        ("django", ["shop/tests.py"], "django"),
        ("node", ["odd.txt"], "node"),
        ("jest", ["tests/test_cart.py"], None),
        (None, ["tests/test_cart.py", "cart.py"], "pytest"),
        ("", ["tests/cart.test.mjs", "shop.tsx"], "node"),
        (None, ["cart.test.js", "test_cart.py"], None),
        (None, ["cart_test.go"], None),
    ],
)
def test_setting_then_language_never_a_default(command: str | None, suite: list[str], runner: str | None) -> None:
    choice = choose_runner(command, suite)
    if runner is not None:
        assert choice == runner
    else:
        assert isinstance(choice, Finding)
        assert (choice.code, choice.severity.blocks) == ("test.no_runner", True)
