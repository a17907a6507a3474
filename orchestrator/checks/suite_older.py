"""A suite under the name of a file that is there already: older tests stay as they are (spec 1 C6)."""

import ast
import re
from collections.abc import Iterator

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.testing import TestSuite
from orchestrator.syntax import python_source


def check_older(suite: TestSuite, older: str | None) -> list[Finding]:
    """A major finding when the suite would take or change anything of `older`, the present text of its file.

    Adding is fine. None stands for a file that cannot be read as text, or read at all: nothing may replace it.
    """
    if older is not None and not set(_parts(older)) - set(_parts(suite.test_content)):
        return []
    return [
        major(
            "suite.older_test",
            f"`{suite.test_file}` is there already, and this would change or remove what it holds",
            where=Where(file=suite.test_file),
            fix="Choose a name that is not taken yet.",
        )
    ]


def _parts(text: str) -> Iterator[str]:
    """Every statement at the top of a module as it is written, imports name by name; the whole of a broken text."""
    tree = python_source.parse(text)
    if tree is None:
        yield text
        return
    lines = re.split(r"\r\n|\r|\n", text)
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name} as {alias.asname}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                f"from {node.level} {node.module} import {alias.name} as {alias.asname}" for alias in node.names
            )
        else:
            first = min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))
            yield "\n".join(lines[first - 1 : node.end_lineno])
