"""Both versions of the tests that were changed, for the report (pure)."""

import difflib
import re
from collections.abc import Sequence

from orchestrator.domain.outcome import TestRewritten

MOST_LINES = 200
"""Of one file's differences; report.json has both versions whole."""


def rewritten_tests(rewritten: Sequence[TestRewritten]) -> str:
    """A section with what was taken away and what was added, per file and with its reason; "" for none."""
    return "\n\n".join(["### Tests that were changed", *map(_one, rewritten)]) if rewritten else ""


def _one(test: TestRewritten) -> str:
    reason = " ".join(test.reason.split()).replace("<", "&lt;") or "no reason given"
    lines = [
        *difflib.unified_diff(test.before.splitlines(), test.after.splitlines(), "before", "after", lineterm="", n=3)
    ]
    left = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {left} more lines: report.json has both versions"] if left > 0 else [])]
    text = "\n".join(shown)
    bar = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"`{test.file}`: {reason}\n\n{bar}diff\n{text}\n{bar}"
