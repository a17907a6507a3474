import pytest

from orchestrator.checks.content import runner_reach


def diff_of(path: str, *added: str) -> str:
    lines = "".join(f"+{line}\n" for line in added)
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -3,2 +3,{len(added) + 1} @@ def f():\n"
    return f"{head}     before\n-    gone = sys.modules\n{lines}"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("shop/cart.py", "import _pytest.python"),
        ("shop/cart.py", "for name in list(sys.modules):"),
        ("shop/cart.py", "    os._exit(0)"),
        ("shop/cart.py", "path = [a for a in sys.argv if a.startswith('--junitxml')]"),
        ("shop/cart.py", "unittest.TestCase.assertEqual = lambda *_: None"),
        ("src/cart.mjs", "if (process.execArgv.length) fake();"),
        ("src/cart.js", "assert.strict.equal = () => {};"),
        ("src/cart.ts", "import { test } from 'node:test';"),
    ],
)
def test_what_reaches_into_the_runner_is_named_with_its_line(path: str, line: str) -> None:
    (finding,) = runner_reach(diff_of(path, "x = 1", line))
    assert (finding.severity, finding.where.file, finding.where.line) == ("major", path, 5)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("tests/test_cart.py", "import pytest"),
        ("shop/cart.py", "import sys, os"),
        ("src/cart.js", "if (assert.ok === x) y();"),
        ("README.md", "Run it with --junitxml"),
        ("src/cart.js", "const equal = (a, b) => a === b;"),
    ],
)
def test_other_code_is_not(path: str, line: str) -> None:
    assert runner_reach(diff_of(path, line)) == []
