"""Advice about shipped code that reaches into the test runner it is tested by.

Code under test runs in the runner's process and can make a run look green. These are ways that were tried; each has
honest uses as well, so they are shown to the reviewer and never refuse a change.
"""

import re
from collections.abc import Iterator

from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.paths import is_test_file

_PYTHON = re.compile(
    r"\b_pytest\b|\bimport pytest\b|\bfrom pytest\b|\bsys\.modules\b|\bos\._exit\b|\bPYTEST_\w+|junitxml|"
    r"\bTestCase\.\w+\s*=(?!=)|\b__builtins__\b|\bbuiltins\.\w+\s*=(?!=)"
)
_NODE = re.compile(
    r"\bprocess\.(?:execArgv|ppid)\b|\bNODE_TEST_CONTEXT\b|['\"]node:test['\"]|test-reporter|"
    r"\bassert(?:\.strict)?\.\w+\s*=(?![=>])"
)
_PATTERNS = {"py": _PYTHON} | dict.fromkeys(("js", "mjs", "cjs", "ts", "mts", "cts"), _NODE)
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def runner_reach(diff: str) -> list[Finding]:
    """One finding per line that a unified git diff adds to shipped code and that reaches into the runner."""
    return [
        minor(
            "delivery.reaches_runner",
            f"shipped code reaches into the test runner or its process: `{found}`",
            where=Where(file=path, line=line),
            fix="look whether the task needs it: code under test can make its own tests look green this way",
        )
        for path, line, text in _added(diff)
        if not is_test_file(path) and (found := _reach(path, text))
    ]


def _reach(path: str, text: str) -> str:
    pattern = _PATTERNS.get(path.rpartition(".")[2])
    found = pattern.search(text) if pattern else None
    return found[0] if found else ""


def _added(diff: str) -> Iterator[tuple[str, int, str]]:
    """(path, line in the new file, text) of each added line."""
    path, line, in_hunk = "", 0, False
    for text in diff.split("\n"):
        if text.startswith("diff --git "):
            in_hunk = False
        elif not in_hunk and text.startswith("+++ "):
            path = text[4:].strip().removeprefix("b/")
        elif hunk := _HUNK.match(text):
            line, in_hunk = int(hunk[1]), True
        elif in_hunk and text.startswith("+"):
            yield path, line, text[1:]
            line += 1
        elif in_hunk and text.startswith(" "):
            line += 1
