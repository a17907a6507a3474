"""A suite that came as a file and nothing else: its name, its tests, and which criterion each of them shows."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orchestrator.checks.paths import tidy
from orchestrator.checks.suite import is_suite
from orchestrator.code.javascript.tests import test_names
from orchestrator.code.javascript.tree import SUFFIXES as JAVASCRIPT
from orchestrator.code.python.tests import test_functions
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import is_test_file, unsafe_reason

_CRITERION = re.compile(r"\bcriterion\s+#?(\d{1,3})\b", re.IGNORECASE)


def test_file_of(story_id: str, files: Collection[str]) -> str:
    """Returns the path that a story's suite has where nothing better is named, in the language of its files."""
    name = re.sub(r"[^a-z0-9]+", "_", story_id.lower()).strip("_") or "story"
    scripts = [path for path in files if path.lower().endswith(JAVASCRIPT)]
    typed = any(path.lower().endswith((".ts", ".tsx", ".mts", ".cts")) for path in scripts)
    if scripts and not any(path.lower().endswith(".py") for path in files):
        return f"tests/{name}.test.{'ts' if typed else 'js'}"
    return f"tests/test_{name}.py"


test_file_of.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def holds_tests(path: str, text: str) -> bool:
    """Returns whether a text holds tests that the runner of this file collects."""
    return bool(test_functions(text) if path.endswith(".py") else test_names(text, path))


def suite_of_files(
    value: Mapping[str, Any], older: Collection[str], criteria: Sequence[str]
) -> tuple[dict[str, Any] | None, Sequence[Finding]]:
    """Returns the suite in an answer of whole files as JSON: one file with tests, beside it older ones to change."""
    files = {tidy(str(file["path"])): str(file["content"]) for file in value["files"]}
    own = [path for path in files if path not in older and holds_tests(path, files[path])]
    if len(own) != 1:
        fix = "Answer with one file that holds the tests."
        return None, [major("suite.shape", f"a suite is one file with tests, {len(own)} came", fix=fix)]
    (path,) = own
    changed = [{"path": name, "content": text} for name, text in files.items() if name in older]
    cases = _cases(path, files[path], criteria)
    as_json = {"test_file": path, "test_content": files[path], "test_cases": cases}
    return {**as_json, **({"changed_tests": changed} if changed else {})}, ()


def with_file_name(value: Any, test_file: str) -> tuple[Any, Sequence[Finding]]:
    """Returns a suite as JSON under `test_file` where it names none that a runner collects; its cases may be left out.

    What is named well is kept: the project's own place for tests is better than ours.
    """
    if not isinstance(value, dict) or not isinstance(content := value.get("test_content"), str):
        return value, ()
    cases = value["test_cases"] if isinstance(value.get("test_cases"), list) else []
    named = value.get("test_file")
    path = tidy(named) if isinstance(named, str) else ""
    if (path and unsafe_reason(path) is None and is_suite(path) and is_test_file(path)) or not holds_tests(
        test_file, content
    ):
        return ({**value, "test_cases": cases} if holds_tests(path or test_file, content) else value), ()
    message = f"the test file `{path[:200]}` is now `{test_file}`" if path else f"the test file is `{test_file}`"
    where, fix = Where(file=test_file), f'Give "test_file": "{test_file}".'
    renamed = {**value, "test_file": test_file, "test_cases": cases}
    return renamed, [minor("suite.file_name", message, where=where, fix=fix)]


def _cases(path: str, text: str, criteria: Sequence[str]) -> list[dict[str, str]]:
    """Returns the tests with the criteria that comments number; a single criterion is shown by all of them."""
    names = test_functions(text) if path.endswith(".py") else test_names(text, path)
    cases, begin = [], 0
    for name in names:
        at = text.find(name.rsplit(" > ", 1)[-1], begin)
        if at < 0:
            at = begin
        line_end = text.find("\n", at)
        behind = text[line_end + 1 :].lstrip()[:200] if line_end >= 0 else ""
        docstring = behind.split("\n", 1)[0] if behind[:1] in {'"', "'"} else ""
        said = [*_CRITERION.findall(text[begin:at])[-1:], *_CRITERION.findall(docstring)[:1]]
        number = int(said[0]) if said else 1 if len(criteria) == 1 else 0
        cases.append({"name": name, "criterion": criteria[number - 1] if 0 < number <= len(criteria) else ""})
        begin = at + len(name)
    return cases
