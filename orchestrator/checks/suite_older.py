"""A suite under the name of a file that is there already: older tests stay as they are."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from orchestrator.checks.file_paths import tidy
from orchestrator.domain.delivery import FileChange
from orchestrator.domain.findings import Finding, Where, blocking, major
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


def read_changed(
    value: object, older: Collection[str], suite_file: str
) -> tuple[tuple[FileChange, ...], list[Finding]]:
    """The older test files in an answer's `changed_tests`, by path; a major finding for what is none of `older`."""
    changed: dict[str, FileChange] = {}
    findings = []
    for entry in value if isinstance(value, list) else ():
        path = tidy(str(entry.get("path", ""))) if isinstance(entry, Mapping) else ""
        content = entry.get("content") if isinstance(entry, Mapping) else None
        if path not in older or path == suite_file or not isinstance(content, str) or not content.strip():
            message = f"`{path[:200] or entry!s:.200}` is no older test file to be rewritten with its whole text"
            fix = "Rewrite only the older test files that are given, each whole, and none twice."
            findings.append(major("suite.changed_test", message, where=Where(file=path or None), fix=fix))
        else:
            changed[path] = FileChange(path=path, content=content)
    return tuple(changed.values()), findings


def check_changed(
    suite: TestSuite, older: Mapping[str, str], check: Callable[[TestSuite], list[Finding]]
) -> list[Finding]:
    """What `check` refuses in the rewritten older tests and did not refuse in them before."""
    found: list[Finding] = []
    for change in suite.changed:
        before = check(TestSuite(test_file=change.path, test_content=older.get(change.path, "")))
        known = {finding.code for finding in blocking(before)}
        now = blocking(check(TestSuite(test_file=change.path, test_content=change.content)))
        found += [finding for finding in now if finding.code not in known]
    return found
